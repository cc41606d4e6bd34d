"""What a translation must not touch goes out as placeholders and comes back as it was. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from microcoder.dataset.process.spans import FENCE, INLINE_CODE, MATH

_IN_TERM = r"[A-Za-z0-9_.\[\]()^*+|-]"
_TERM = rf"{_IN_TERM}++"
_KEPT = re.compile(
    "|".join(
        (
            FENCE,
            INLINE_CODE,
            MATH,
            r"!?\[[^\]\n]{0,200}\]\([^)\n]{1,400}\)",  # images and links
            r"https?://[^\s)\"'<>]+",
            rf"(?<!{_IN_TERM}){_TERM}(?:\s*(?:<=|>=|==|!=|<|>|≤|≥|=)\s*{_TERM})+",  # 1 <= n <= 100
            r"\"[^\"\n]{1,60}\"",
            # identifiers, elements, calls
            r"\b[A-Za-z]+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\[[^\]\n]{1,30}\]|\b[A-Za-z_]\w*\([^()\n]{0,40}\)",
            r"^\#{1,6} (?:Input|Output|Constraints|Examples?|Example \d+|Note)[ \t]*$|^(?:Input|"
            r"Output|Explanation):[ \t]*$",
        )
    ),
    re.DOTALL | re.MULTILINE,
)
_MARKS = "PQXKZWVTRY"


class Protected(NamedTuple):
    """A text whose code, formulae, identifiers and samples are placeholders."""

    text: str
    kept: tuple[str, ...]
    """What each placeholder stands for, by number."""
    mark: str
    """What placeholders begin with: something that the text does not hold."""


def protect(text: str) -> Protected:
    """Return the text with placeholders such as `[[P0]]`; equal pieces share one."""
    mark = next((f"[[{letter}" for letter in _MARKS if f"[[{letter}" not in text), "")
    length = 2
    while not mark:
        mark = "" if "[[" + "P" * length in text else "[[" + "P" * length
        length += 1
    numbers: dict[str, int] = {}

    def replace(match: re.Match[str]) -> str:
        return f"{mark}{numbers.setdefault(match[0], len(numbers))}]]"

    return Protected(_KEPT.sub(replace, text), tuple(numbers), mark)


def restore(text: str, protected: Protected) -> str:
    """Return the text with every placeholder replaced by what it stands for."""

    def back(match: re.Match[str]) -> str:
        number = int(match[1])
        return protected.kept[number] if number < len(protected.kept) else match[0]

    return re.sub(rf"{re.escape(protected.mark)}([0-9]+)\]\]", back, text)


def find_damage(translated: str, protected: Protected) -> list[str]:
    """Return what a translation did to the placeholders and numbers, in words; nothing where all are there."""
    pattern = rf"{re.escape(protected.mark)}[0-9]+\]\]"
    before, after = Counter(re.findall(pattern, protected.text)), Counter(re.findall(pattern, translated))
    damage = [f"{name} is missing" for name in sorted(before.keys() - after.keys())]
    damage += [f"{name} was made up" for name in sorted(after.keys() - before.keys())]
    left, found = (_numbers(re.sub(pattern, " ", text)) for text in (protected.text, translated))
    damage += [f"the number {number} is missing" for number in sorted(left.keys() - found.keys())]
    return damage


def _numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"(?<![\w.])\d{2,}(?:\.\d+)?(?![\w])", text, re.ASCII))
