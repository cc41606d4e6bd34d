"""Pairs of an output and what was expected, with the verdict that a careful judge gives:
written before the rules.

Most are the yardstick's, which other judges are asked too. Those here need a checker, or have
outputs that it leaves out: of several lines, or of characters that cannot be printed.
`read_decisions` reads the tables of docs/comparison.md.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from microcoder.judge.core.types import Checker
from microcoder.lab.yardstick.cases import load_suite

Pair = tuple[Checker, bool, str, str]

DEFAULT = Checker()
TOKENS = Checker(type="tokens")
EXACT = Checker(type="exact")
FLOAT = Checker(type="float")
UNORDERED = Checker(type="unordered")
HUNDREDTH = Checker(type="float", absolute=0.01)
TOLERANT = Checker(type="float", tolerance=0.01)
WORDS = Checker(type="unordered", by="tokens")

_RIGHT: Final[dict[Checker, list[tuple[str, str]]]] = {
    DEFAULT: [
        # Layout.
        ("1\n\n", "1"),
        ("", '""'),
        ("\n1", "1"),
        ("1\t2", "1 2"),
        ("1\r\n2\r\n", "1\n2\n"),
        ("1\r2", "1\n2"),
        ("1\n\n2", "1\n2"),
        ("1\n2", "1 2"),
        ("1\v2", "1 2"),
        ("1\f2", "1 2"),
        ("\ufeff1", "1"),
        ("\n\n", ""),
        ("a\u2003b", "a\u2003b\n"),
        ("a\x1cb", "a\x1cb "),
        # What each line, or all lines, are.
        ("1\n0.333333\n", "1\n0.3333333333\n"),
        ("Yes\nNo", "YES\nNO"),
        ("[\n1,\n2\n]", "[1, 2]"),
        ("[1,2]\n[3]", "[1, 2]\n[3]"),
        ("2\n[1,2]", "2\n[1, 2]"),
        ("[[1,2],\n[3,4]]", "[[1, 2], [3, 4]]"),
    ],
    FLOAT: [
        ("(0.5, 0.25)", "(0.5, 0.25)"),
        ("(0.5,0.25)", "[0.5, 0.25]"),
        ("[0.5, 0.25]", "(0.5, 0.25)"),
        ("[0.1, 0.30000000000000004]", "[0.1, 0.3]"),
        ("[0.1, 0.3]", "[0.1, 0.30000000000000004]"),
        ("[1, 2]", "[1.0, 2.0]"),
        ("[1.0, 2.0]", "[1, 2]"),
        ("[[0.5], [0.2500000001]]", "[[0.5], [0.25]]"),
        ("(1.0000001, 'a')", '[1, "a"]'),
        ("{'a': 0.5000000001}", '{"a": 0.5}'),
        ("2\n(0.1, 0.2000000001)", "2\n(0.1, 0.2)"),
        ("1e-9", "0"),
        ("0", "1e-9"),
        ("1e3", "1000"),
        ("1000001", "1000000"),
        ("3", "3.0000001"),
        ("+0.5", "0.5"),
        ("1000000", "1000000.5"),
        ("0.5 yes", "0.5 yes"),
        ("nan", "NaN"),
        ("0.5\n0.25", "0.5 0.25"),
    ],
    HUNDREDTH: [
        ("1.01", "1.00"),
        ("0.99", "1.00"),
        ("1", "1.005"),
        ("12345678.91", "12345678.90"),
        ("[1.01]", "[1.0]"),
    ],
    TOLERANT: [("1.005", "1"), ("1005", "1000")],
    Checker(type="float", relative=0.01): [("1005", "1000")],
    Checker(type="float", case_sensitive=False): [("YES 1.0000001", "yes 1")],
    TOKENS: [("1  2", "1 2"), ("1\n2", "1 2"), ("\t1", "1"), ("a\x1cb", "a\x1cb\n"), ("", "\n")],
    Checker(type="tokens", case_sensitive=False): [("Cat", "CAT")],
    EXACT: [("1", "1\n"), ("1\n", "1"), ("", "")],
    UNORDERED: [
        ("b\na", "a\nb"),
        ("2 1\n1 2", "1 2\n2 1"),
        ("a\n\nb", "b\na"),
        ("2.0\n1", "1\n2"),
        ("1\r\n2", "2\n1"),
        ("", "\n"),
    ],
    WORDS: [("3 1\n2", "1 2 3")],
    Checker(type="unordered", case_sensitive=False): [("B\na", "A\nb")],
}
_WRONG: Final[dict[Checker, list[tuple[str, str]]]] = {
    DEFAULT: [
        # Characters that only look like layout.
        ("0.5\u00a0", "0.5"),
        ("[[1, 2), 3]", "[[1, 2], 3]"),
        ("1\x1c2", "1 2"),
        ("1\x1d2", "1 2"),
        ("1\x1e2", "1 2"),
        ("1\x1f2", "1 2"),
        ("1\x852", "1 2"),
        ("1\u00a02", "1 2"),
        ("1\u20282", "1\n2"),
        ("1\u30002", "1 2"),
        ("1\x002", "1 2"),
        ("1\x00", "1"),
        ("1\x1c", "1"),
        ("\x1f1", "1"),
        ("\x1c", ""),
        ("\u00a0", ""),
        ("\u200b1", "1"),
        ("1\b", "1"),
        ("\x1b[0m1", "1"),
        ("[\x1c1]", "[1]"),
        ("[1,\x1f2]", "[1, 2]"),
        ("[1,\u00a02]", "[1, 2]"),
        ("'a\x1c'", '"a"'),
        # More, less, or in another order.
        ("1\n2", "2\n1"),
        ("1\n2", "1\n2\n3"),
        ("1\n1", "1"),
        ("1\nNone", "1"),
        ("1\n[Finished]", "1"),
        ("debug\n1", "1"),
        ("1 1 2", "1 2 2"),
        ("true story", "True story"),
        ("12345678901234567890", "12345678901234567891"),
        # Containers.
        ("[1, 2]\n[3]", "[1, 2]"),
        ("[1, 2]", "1 2"),
        ("{1: 2}", "{1, 2}"),
        ("{1: 2, 3: 5}", "{1: 2, 3: 4}"),
        ("[1, 1]", "{1}"),
        ("[1 2]\n[3 4]", "(1 2)\n(3 4)"),
        ("[1,2][3,4]\n[5]", "(1,2)(3,4)\n(5)"),
        ("[true]x\n[5]", "[True]x\n[5]"),
        ("(1,2]\n(3,4]", "[1,2)\n[3,4)"),
        ("(1,2]\n[3,4)", "[1,2]\n[3,4]"),
        ("[f[x]]\n[1]", "[f(x)]\n[1]"),
    ],
    FLOAT: [
        ("(0.5, 0.26)", "(0.5, 0.25)"),
        ("[0.25, 0.5]", "[0.5, 0.25]"),
        ("[0.5]", "[0.5, 0.25]"),
        ("0.5 0.25", "[0.5, 0.25]"),
        ("[0.5, 0.25, 0.25]", "[0.5, 0.25]"),
        ("{0.5, 0.25}", "[0.5, 0.25]"),
        ("(0.5, 0.25", "(0.5, 0.25)"),
        ("(0.5, 0.25]", "(0.5, 0.25)"),
        ("[[0.5], 0.25]", "[[0.5], [0.25]]"),
        ("0.50001", "0.5"),
        ("1.1", "1"),
        ("x", "1"),
        ("YES", "yes"),
        ("nan", "0"),
        ("inf", "1"),
        ("1 1", "1"),
        ("", "1"),
        ("0.5 no", "0.5 yes"),
    ],
    HUNDREDTH: [
        ("1.02", "1.00"),
        ("12345678.92", "12345678.90"),
        ("12345679", "12345678"),
        ("[1.02]", "[1.0]"),
        ("1005", "1000"),
    ],
    TOLERANT: [("1.02", "1")],
    TOKENS: [
        ("1.0", "1"),
        ("0.50", "0.5"),
        ("12", "1 2"),
        ("Yes", "YES"),
        ("1\x1f2", "1 2"),
        ("[1,2]", "[1, 2]"),
        ("1 2 3", "1 2"),
        ("", "1"),
    ],
    EXACT: [
        ("1 ", "1"),
        ("1\n\n", "1"),
        (" 1", "1"),
        ("1\r\n", "1\n"),
        ("1.0", "1"),
        ("\ufeff1", "1"),
    ],
    UNORDERED: [
        ("b a", "a b"),
        ("a\na", "a"),
        ("a", "a\na"),
        ("a\nb\nb", "a\na\nb"),
        ("1\x1c2", "1 2"),
        ("A\nb", "a\nb"),
        ("1\n2.5", "1\n2"),
    ],
    WORDS: [("3 1 1", "1 3 3")],
}


def _read_stored() -> Iterator[Pair]:
    for case in load_suite("pairs"):
        (_, write) = ast.parse(case.code).body
        output = ast.literal_eval(write.value.args[0])  # pyrefly: ignore[missing-attribute]
        yield DEFAULT, case.expect, output, case.tests[0][1].removesuffix("\n")


PAIRS: Final[list[Pair]] = [
    *_read_stored(),
    *((checker, True, *pair) for checker, pairs in _RIGHT.items() for pair in pairs),
    *((checker, False, *pair) for checker, pairs in _WRONG.items() for pair in pairs),
]
"""Checker, whether it is right, output, expected output."""


_VERDICT = r"(?P<verdict>right|wrong)(?:, `(?P<method>\w+)`)?"
_ROW = re.compile(rf"^\| (?P<outputs>[^|]+) \| (?P<expected>[^|]+) \| {_VERDICT}", re.MULTILINE)


def unescape(cell: str) -> str:
    """Return the text that a cell writes with escapes."""
    return ast.literal_eval('"' + cell.replace('"', '\\"') + '"')


def read_decisions(heading: str) -> list[tuple[str, str, bool, str]]:
    """Return the rows of a table: every output, what was expected, whether it is right,
    and by which method if said.
    """
    page = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text("utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = []
    for row in _ROW.finditer(section):
        outputs = re.findall("`([^`]*)`", row["outputs"]) or [""]
        expected = re.findall("`([^`]*)`", row["expected"]) or [""]
        expected = expected if len(expected) == len(outputs) else expected * len(outputs)
        rows += [
            (o, e, row["verdict"] == "right", row["method"] or "")
            for o, e in zip(outputs, expected, strict=True)
        ]
    return rows
