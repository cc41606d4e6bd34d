"""A checker program: decides a test's assertions about what an answer returned, in a process the answer never enters.

Called with the files input, output and answer. Ends with 0 where every assertion holds, with 1 where one does not.
"""

from __future__ import annotations

import json
import math
import random
import sys
from typing import Any, NoReturn

MARK = "\x1eresults "
STUB_MARK = "\x1estub "
DEFAULT_TOLERANCE, RELATIVE_TOLERANCE = 1e-6, 1e-7


class Other:
    """Stands for a returned object that `caller.py` could not encode; it equals nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


def main() -> None:
    """Check the claims in the answer file against the values in the output file; exit with 0 if all hold, else 1."""
    sys.set_int_max_str_digits(0)
    paths = sys.argv[1:4]
    with (
        open(paths[1], encoding="utf-8", errors="replace") as output,
        open(paths[2], encoding="utf-8") as answer,
    ):
        printed, asked = output.read(), json.load(answer)
    note_stub(printed)
    results = read_results(printed)
    names: dict[str, Any] = {"__name__": "test", "inf": math.inf, "nan": math.nan, "_agree": agree}
    exec(compile(asked.get("prelude", ""), "prelude.py", "exec"), names)
    if "replay" in asked:
        replay(asked["replay"], names, results)
    for claim in asked.get("claims", ()):
        names["_r"] = results
        decide(claim, names)
    sys.exit(0)


def note_stub(output: str) -> None:
    """Write that the answer leaves the prompt's function as it is, if it does: a refusal is then read behind it."""
    for line in output.split("\n"):
        name = line[len(STUB_MARK) :]
        if line.startswith(STUB_MARK) and name.isidentifier():
            print(
                f"the answer does not define {name[:60]}, so the prompt's own was called;",
                file=sys.stderr,
            )


def read_results(output: str) -> list[Any]:
    """Return the values that the answer's calls returned, decoded; exit with 1 if they cannot be read."""
    lines = [line for line in output.split("\n") if line.startswith(MARK)]
    if not lines:
        refuse("the program ended before it returned a value")
    try:
        return [decode(value) for value in json.loads(lines[-1][len(MARK) :])]
    except Exception:  # the line is the program's: anything may be in it
        refuse("the returned values cannot be read from the program's output")


def decide(claim: str, names: dict[str, Any]) -> None:
    """Exit with code 1 unless the claim, a Python expression, is true; `names` are its variables."""
    try:
        holds = bool(eval(compile(claim, "claim.py", "eval"), names))
    except Exception as error:
        refuse(f"{claim[:200]}: {type(error).__name__}: {error}")
    if not holds:
        refuse(f"not true: {claim[:200]} where _r = {show(names['_r']):.200}")


def show(results: list[Any]) -> str:
    """Return values as text; Python writes no integer of more than 4,300 digits."""
    try:
        return repr(results)
    except ValueError:
        return "values with an integer that is too long to print"


def replay(test: str, names: dict[str, Any], results: list[Any]) -> None:
    """Run a whole test in which the n-th call of the answer returns the n-th result; exit with 1 if it fails."""
    values = iter(results)

    def candidate(*arguments: Any, **options: Any) -> Any:
        return next(values)

    random.seed(0)
    exec(compile(test, "test.py", "exec"), names)
    try:
        names["check"](candidate)
    except Exception as error:
        refuse(f"the test ended with {type(error).__name__}: {error}")


def agree(value: Any, expected: Any, tolerance: float) -> bool:
    """Whether values agree by EvalPlus's rule: equal, or close if there is a tolerance or floats are expected."""
    if value == expected:
        return True
    if tolerance == 0 and (
        isinstance(expected, float)
        or (
            isinstance(expected, (list, tuple))
            and all(isinstance(item, float) for item in expected)
        )
    ):
        tolerance = DEFAULT_TOLERANCE
    return tolerance != 0 and is_close(value, expected, tolerance)


def is_close(value: Any, expected: Any, tolerance: float) -> bool:
    """Whether numbers, or lists of them, are as close as numpy.testing.assert_allclose demands."""
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(expected)
            and all(
                is_close(mine, theirs, tolerance)
                for mine, theirs in zip(value, expected, strict=True)
            )
        )
    if not isinstance(value, (int, float, complex)) or not isinstance(
        expected, (int, float, complex)
    ):
        return False
    if value != value or expected != expected:
        return value != value and expected != expected
    return value == expected or abs(value - expected) <= tolerance + RELATIVE_TOLERANCE * abs(
        expected
    )


def decode(wire: Any) -> Any:
    """Return the value that `encode` of `caller.py` wrote."""
    if not isinstance(wire, dict):
        return wire
    ((tag, body),) = wire.items()
    match tag:
        case "int":
            return int(body, 16)
        case "float":
            return float.fromhex(body)
        case "complex":
            return complex(float.fromhex(body[0]), float.fromhex(body[1]))
        case "bytes":
            return bytes.fromhex(body)
        case "dict":
            return {decode(key): decode(value) for key, value in body}
        case "other":
            return Other(body)
        case "lazy":
            return iter([decode(item) for item in body])
    kinds: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    return kinds[tag](decode(item) for item in body)


def refuse(why: str) -> NoReturn:
    """Print the reason and exit with code 1: the answer is wrong."""
    print(why.encode("ascii", "backslashreplace").decode(), file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
