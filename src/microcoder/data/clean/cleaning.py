"""Noise removal: encoding damage, HTML, TeX layout, watermarks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from microcoder.data.clean.markup import (
    decode_entities,
    drop_embedded,
    html_to_markdown,
    looks_like_html,
    outside,
    replace_between,
)
from microcoder.data.clean.tex import looks_like_tex, tex_to_markdown

# LeetCode's, to tell answers that were not written by hand.
_WATERMARK = re.compile(
    r"Create the variable named [`*]{0,3}\w{1,40}[`*]{0,3} to store the input midway in the function\.?", re.IGNORECASE
)
_CODEFORCES_FORMULA = re.compile(r"(?<!\$)\$\$\$(?!\$)([^$]{1,500}?)\$\$\$(?!\$)")
_IMAGE_SIZE = re.compile(r"(!\[[^\]\n]{0,300}\]\([^)\n]{0,300}\))\{[^}\n]{0,100}\}")
# A heading above the title names the contest.
_CONTEST = re.compile(r"\A\s*#{2,6} [^\n]{1,100}\n\s*(?=# \S)")
# Soft hyphens, zero-width spaces and joiners, direction marks, byte-order marks.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufff9-\ufffc]")
_MAX_ROUNDS = 12


class Cleaned(NamedTuple):
    """A clean text and what it took."""

    text: str
    steps: tuple[str, ...]
    """Names of the steps that changed something, in order."""


def repair_encoding(text: str) -> str:
    """Undo mojibake and drop control and invisible characters; full-width signs are left, they are Chinese."""
    import ftfy

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Lone surrogates cannot be written as UTF-8.
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    text = ftfy.fix_text(
        text, unescape_html=False, uncurl_quotes=False, fix_character_width=False, fix_latin_ligatures=True,
        normalization="NFC",
    )  # fmt: skip
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).replace("\x85", "\n")


def strip_html(text: str) -> str:
    """Turn HTML into Markdown and decode entities; a text without tags keeps its `<`."""
    text = outside(text, lambda piece: replace_between(piece, "<!--", "-->"))
    text = html_to_markdown(text) if looks_like_html(text) else text
    return decode_entities(text)


def strip_tex(text: str) -> str:
    """Turn a TeX document into Markdown; Codeforces' `$$$n$$$` and `\\(n\\)` become `$n$`."""
    text = tex_to_markdown(text) if looks_like_tex(text) else text
    text = _CODEFORCES_FORMULA.sub(lambda found: f"${' '.join(found[1].split())}$", text)
    text = _IMAGE_SIZE.sub(r"\1", text)
    text = text.replace("$$$$$$", "$$").replace("$$$", "$")
    return outside(text, lambda piece: re.sub(r"\\\((.{1,200}?)\\\)", r"$\1$", piece))


def strip_noise(text: str) -> str:
    """Drop the contest's name, and the watermark, which asks for a variable that means nothing."""
    return _WATERMARK.sub("", _CONTEST.sub("", text))


def tidy_whitespace(text: str) -> str:
    """Plain spaces, no trailing ones, at most one empty line; code keeps its lines."""

    def tidy(piece: str) -> str:
        piece = re.sub("[\u00a0\u2000-\u200a\u202f\u205f\u3000]", " ", piece)
        piece = re.sub(r"(?<![ \t\f\v])[ \t\f\v]++(?=\n)", "", piece.replace("\u2028", "\n").replace("\u2029", "\n"))
        return re.sub(r"\n{3,}", "\n\n", piece)

    return re.sub(r"\n{3,}", "\n\n", outside(text, tidy)).strip() + "\n" if text.strip() else ""


STEPS: tuple[Callable[[str], str], ...] = (
    drop_embedded,
    repair_encoding,
    strip_html,
    strip_tex,
    strip_noise,
    tidy_whitespace,
)


def clean(text: str) -> Cleaned:
    """Return the text without noise. Cleaning what is clean changes nothing."""
    done: list[str] = []
    for _ in range(_MAX_ROUNDS):
        before = text
        for step in STEPS:
            changed = step(text)
            if changed != text and step.__name__ not in done:
                done.append(step.__name__)
            text = changed
        if text == before:
            break
    return Cleaned(text, tuple(done))
