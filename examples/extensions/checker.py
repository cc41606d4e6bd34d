"""A checker of your own is a program, whose text is the `code` of a problem's checker:

    Checker(type="program", code=Path("checker.py").read_text(), arguments=("2",))

It runs in the sandbox, so it imports nothing but the standard library. It ends with 0 to accept;
`sys.exit` with a text that says why refuses.
"""

import sys
from pathlib import Path


def find_fault(output: str, answer: str, most: int) -> str:
    """Return why an output is no whole number at most so far from the answer; empty if it is."""
    try:
        found = int(output)
    except ValueError:
        return "no whole number"
    return "" if abs(found - int(answer)) <= most else f"{found} is too far off"


if __name__ == "__main__":
    _, output, answer = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:4])
    sys.exit(find_fault(output, answer, int(sys.argv[4])) or 0)
