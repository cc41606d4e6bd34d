"""Noise removal: encoding damage, HTML, TeX layout.

Parts that are no prose (code, formulae) are left alone. Pages are read in `pages`, documents in
`tex`; `powers` restores superscripts.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from microcoder.data.clean.markdown import outside, replace_between
from microcoder.data.clean.pages import (
    decode_entities,
    drop_embedded,
    html_to_markdown,
    looks_like_html,
)
from microcoder.data.clean.tex import looks_like_tex, tex_to_markdown

_CODEFORCES_FORMULA = re.compile(r"(?<!\$)\$\$\$(?!\$)([^$]{1,500}?)\$\$\$(?!\$)")
_IMAGE_SIZE = re.compile(r"(!\[[^\]\n]{0,300}\]\([^)\n]{0,300}\))\{[^}\n]{0,100}\}")
"""A picture, and the size in braces that stands behind it."""
# Soft hyphens, zero-width spaces and joiners, direction marks, byte-order marks.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufff9-\ufffc]")
_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces of other widths."""
# From the first space of a run on: anywhere else, a long run would cost its square.
_SPACES_AT_END = re.compile(r"(?<![ \t\f\v])[ \t\f\v]++(?=\n)")
_MAX_ROUNDS = 12
"""Rounds of cleaning; a text that still changes then is taken as it is."""


class CleanText(NamedTuple):
    """A clean text, and the steps that changed it."""

    text: str
    steps: tuple[str, ...]
    """Names of the steps that changed something, in order."""


def repair_encoding(text: str) -> str:
    """Return the text without mojibake, control and invisible characters.

    Full-width signs, which are Chinese, stay.
    """
    import ftfy

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Lone surrogates cannot be written as UTF-8.
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    # Entities wait for `decode_entities`, which leaves code and problems about entities alone.
    text = ftfy.fix_text(
        text,
        unescape_html=False,
        uncurl_quotes=False,
        fix_character_width=False,
        fix_latin_ligatures=True,
        normalization="NFC",
    )
    # Letters that an invisible character kept apart can now be one.
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    return text.replace("\x85", "\n")


def strip_html(text: str) -> str:
    """Return the text with HTML turned into Markdown and entities decoded.

    Without tags it keeps its `<`.
    """
    # Before tags are looked for: those in a comment are none.
    text = outside(text, lambda piece: replace_between(piece, "<!--", "-->"))
    if looks_like_html(text):
        text = html_to_markdown(text)
    return decode_entities(text)


def strip_tex(text: str) -> str:
    """Return the text as Markdown if it is a TeX document.

    Codeforces' `$$$n$$$` and `\\(n\\)` become `$n$`.
    """
    if looks_like_tex(text):
        text = tex_to_markdown(text)
    text = _CODEFORCES_FORMULA.sub(lambda formula: f"${' '.join(formula[1].split())}$", text)
    text = _IMAGE_SIZE.sub(r"\1", text)
    # What is left of Codeforces' marks: formulae over several lines.
    text = text.replace("$$$$$$", "$$").replace("$$$", "$")
    return outside(text, lambda piece: re.sub(r"\\\((.{1,200}?)\\\)", r"$\1$", piece))


def tidy_whitespace(text: str) -> str:
    """Return the text with plain spaces, none at line ends, and at most one empty line.

    Code keeps its own.
    """
    if not text.strip():
        return ""

    def tidy(piece: str) -> str:
        piece = _SPACES.sub(" ", piece)
        piece = piece.replace("\u2028", "\n").replace("\u2029", "\n")
        piece = _SPACES_AT_END.sub("", piece)
        return re.sub(r"\n{3,}", "\n\n", piece)

    return outside(text, tidy).strip() + "\n"


STEPS: tuple[Callable[[str], str], ...] = (
    drop_embedded,
    repair_encoding,
    strip_html,
    strip_tex,
    tidy_whitespace,
)
"""Steps of cleaning in their order; the lineage of a row has their names."""


def clean(text: str, *, keeps_tags: bool = False) -> CleanText:
    """Return the text without noise, cleaned until no step changes it, at most twelve times.

    Args:
        keeps_tags: tags in it are what it speaks of (see `has_tags_as_data`).
    """
    done: list[str] = []
    steps = list(STEPS)
    if keeps_tags:
        # Signs are decoded all the same: `n &lt;= 10`.
        steps[steps.index(strip_html)] = decode_entities
    # What one step uncovers, such as a decoded sign, may be work for one before it.
    for _ in range(_MAX_ROUNDS):
        before = text
        for step in steps:
            changed = step(text)
            if changed != text and step.__name__ not in done:
                done.append(step.__name__)
            text = changed
        if text == before:
            break
    return CleanText(text, tuple(done))
