"""What comparing costs the judge: `python benchmarks/comparison_cost.py [case...]`. One JSON object a line.

Right outputs in another spelling, and outputs that are made to be slow or large: CPU seconds, and the most memory that
the comparison held beside the texts (by `tracemalloc`, in a second run). Each case is a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

from microcoder.judge import Comparison, compare_output, compare_value
from microcoder.judge.compare.values import MalformedWire, decode_value
from microcoder.judge.core.types import Checker

MIB = 1 << 20
DEFAULT, FLOAT, LINES = Checker(), Checker(type="float"), Checker(type="unordered")
TOKENS, NEARLY = Checker(type="unordered", by="tokens"), Checker(type="unordered", absolute=1e-5)
SHORT = "".join(f"{number * 7919 % 100_003}\n" for number in range(17_000))
LONG = SHORT * 10


def write_list(count: int, separator: str) -> str:
    """Return a list of integers."""
    return "[" + separator.join(str(number * 7919 % 1_000_003) for number in range(count)) + "]"


def write_table(count: int, step: int) -> str:
    """Return a dict of texts."""
    return str({number: str(number) for number in range(count)[::step]})


OUTPUTS: dict[str, Callable[[], tuple[str, str, Checker]]] = {
    "right: 3 MB list": lambda: (write_list(430_000, ","), write_list(430_000, ", "), DEFAULT),
    "right: 3 MB of tuples": lambda: (
        str([(n, n) for n in range(200_000)]),
        str([[n, n] for n in range(200_000)]),
        DEFAULT,
    ),
    "right: 3 MB dict": lambda: (write_table(170_000, 1), write_table(170_000, 1).replace(" ", ""), DEFAULT),
    "right: 3 MB dict backwards": lambda: (write_table(170_000, -1), write_table(170_000, 1), DEFAULT),
    "right: 3 MB of strings": lambda: (
        str([str(n) for n in range(300_000)]),
        json.dumps([str(n) for n in range(300_000)]),
        DEFAULT,
    ),
    "right: 3 MB of reals": lambda: (
        "\n".join(f"{n / 7:.7f}" for n in range(230_000)),
        "\n".join(f"{n / 7:.9f}" for n in range(230_000)),
        DEFAULT,
    ),
    "right: 3 MB of halves": lambda: ("0.50\n" * 700_000, "0.5\n" * 700_000, FLOAT),
    "right: 3 MB of words": lambda: ("Yes\n" * 700_000, "YES\n" * 700_000, DEFAULT),
    "right: 3 MB of value lines": lambda: ("[1,2]\n" * 400_000, "[1, 2]\n" * 400_000, DEFAULT),
    "right: 3 MB of value lines, tuples": lambda: ("(1,2)\n" * 400_000, "[1, 2]\n" * 400_000, DEFAULT),
    "right: 16 MiB of tokens": lambda: ("1\n" * (8 * MIB), "1 " * (8 * MIB), DEFAULT),
    "right: 3 MB unordered": lambda: (
        "\n".join(map(str, range(450_000))),
        "\n".join(map(str, range(449_999, -1, -1))),
        LINES,
    ),
    "right: 20,000 reals unordered": lambda: (
        "\n".join(f"{n / 7:.7f} {n}" for n in range(20_000)),
        "\n".join(f"{n / 7:.9f} {n}" for n in range(19_999, -1, -1)),
        NEARLY,
    ),
    "wrong at the end: 3 MB list": lambda: (write_list(430_000, ",")[:-2] + "x]", write_list(430_000, ", "), DEFAULT),
    "wrong at the end: 3 MB dict": lambda: (write_table(170_000, 1)[:-1] + ", 1: 2}", write_table(170_000, 1), DEFAULT),
    "16 MiB of [": lambda: ("[" * 16 * MIB, write_list(143_000, ", "), DEFAULT),
    "16 MiB of digits": lambda: ("9" * 16 * MIB, "9" * MIB + ".5", DEFAULT),
    "16 MiB of digits, float": lambda: ("9" * 16 * MIB, "9" * MIB, FLOAT),
    "16 MiB of emoji": lambda: ("\U0001f600" * 4 * MIB, LONG, DEFAULT),
    "16 MiB and one emoji": lambda: ("1 " * 8 * MIB + "\U0001f600", LONG, DEFAULT),
    "16 MiB of quotes": lambda: ("[" + "'" * 16 * MIB + "]", write_list(143_000, ", "), DEFAULT),
    "16 MiB of escapes": lambda: ("'" + "\\" * 16 * MIB + "'", "'" + "a" * MIB + "'", DEFAULT),
    "16 MiB of \\r": lambda: ("1" + "\r" * 16 * MIB + "1", LONG, DEFAULT),
    "16 MiB of spaces": lambda: ("1" + " " * 16 * MIB + "1", LONG, DEFAULT),
    "8 million lines": lambda: ("1\n" * 8 * MIB, LONG, DEFAULT),
    "8 million lines, words": lambda: ("yes\n" * 4 * MIB, "YES\n" * (MIB // 4), DEFAULT),
    "one line of 16 MiB": lambda: ("1 " * 8 * MIB, LONG.replace("\n", " "), DEFAULT),
    "8 million lines, unordered": lambda: (LONG + "1\n" * 7 * MIB, LONG, LINES),
    "8 million tokens, unordered": lambda: ("1 " * 8 * MIB, LONG, TOKENS),
    "7 MB against 100 KB, unordered": lambda: ("\n".join(map(str, range(1_000_000))), SHORT, LINES),
    "16 MiB set": lambda: ("{" + "1," * 8 * MIB + "}", "{" + write_list(143_000, ", ")[1:-1] + "}", DEFAULT),
    "16 MiB of commas and spaces": lambda: ("[" + ", " * 8 * MIB + "]", write_list(143_000, ", "), DEFAULT),
    "16 MiB of commas": lambda: ("[" + "1," * 8 * MIB + "]", write_list(143_000, ", "), DEFAULT),
}

VALUES: dict[str, Callable[[], tuple[bytes, object, Checker]]] = {
    "right value: 3 MB": lambda: (json.dumps(list(range(430_000))).encode(), list(range(430_000)), DEFAULT),
    "right value: 100,000 reals": lambda: (
        json.dumps([{"float": (n / 7 + 1e-9).hex()} for n in range(100_000)]).encode(),
        [n / 7 for n in range(100_000)],
        DEFAULT,
    ),
    "value of 3 MB of []": lambda: (b"[" + b"[]," * MIB + b"[]]", list(range(20_000)), DEFAULT),
    "value of 3 MB of []s inside, any order": lambda: (
        b"[" + b"[[],[]]," * (MIB // 3) + b"[]]",
        [[] for _ in range(MIB // 3 + 1)],
        Checker(type="unordered", lists="all"),
    ),
    "2,000 like items within a tolerance": lambda: (
        json.dumps([[1, n] for n in range(2000)]).encode(),
        [[1.0, n + 0.5] for n in range(2000)],
        Checker(type="unordered", absolute=0.4),
    ),
}


def compare(name: str) -> Callable[[], Comparison]:
    """Return a case, ready to be compared."""
    if name in OUTPUTS:
        output, expected, checker = OUTPUTS[name]()
        return lambda: compare_output(output, expected, checker)
    wire, value, value_checker = VALUES[name]()

    def run() -> Comparison:
        try:
            return compare_value(decode_value(wire), value, value_checker)
        except MalformedWire as error:
            return Comparison(False, "", str(error))

    return run


def measure(name: str) -> dict[str, object]:
    """Compare twice: once for the time, once for the memory."""
    run = compare(name)
    started = time.process_time()
    comparison = run()
    seconds = time.process_time() - started
    tracemalloc.start()
    run()
    mib = tracemalloc.get_traced_memory()[1] / MIB
    return {
        "case": name,
        "cpu_seconds": round(seconds, 2),
        "memory_mib": round(mib),
        "accepted": comparison.accepted,
        "method": comparison.method,
    }


def main() -> None:
    """Measure the named cases, or all, each in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])), flush=True)
        return
    for name in sys.argv[1:] or [*OUTPUTS, *VALUES]:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    main()
