"""Says whether a statement can be understood without its pictures.

Most pictures are decoration, or show an example that the text gives as well. One carries meaning
where the text says so, "moves along the lines of the picture", or stops at a colon before it,
"consider the following algorithm:". A picture inside a sentence stands for a formula.
"""

import re

from microcoder.data.clean.sections import Sections

IMAGE = re.compile(
    r"!\[[^\]\n]{0,500}\]\([^)\n]|<image>|\\includegraphics|\[image\]|<img\b", re.IGNORECASE
)
"""A picture, in Markdown, HTML or TeX."""
_DISPLAYED = re.compile(
    r"^[ \t]*(?:!\[[^\]\n]{0,500}\]\([^)\n]{1,1000}\)|<image>|\[image\]|<img\b[^>\n]{0,1000}>"
    r"|\\includegraphics[^\n]{1,300})",
    re.IGNORECASE | re.MULTILINE,
)
"""A picture at the beginning of a line of its own."""
_PICTURE = r"(?:pictures?|figures?|images?|diagrams?|drawings?|illustrations?)"
_THE = r"(?:the|this|these)(?: following| above| attached)?(?: [a-z]+)?"
_BY_PICTURE = re.compile(
    rf"\b(?:as|like|looks?|exactly)\b[^.\n]{{0,40}}\b(?:in|on|by|from) {_THE} {_PICTURE}\b"
    rf"|\blike {_THE} {_PICTURE} (?:below|above)\b"
    rf"|\b(?:are|is) (?:shown|given|depicted|drawn|defined|described|indicated|numbered|labell?ed)"
    rf" (?:in|on|by) {_THE} {_PICTURE}\b"
    rf"|\b(?:the )?ones? (?:shown )?in the {_PICTURE}\b(?! of)"
    rf"|\b(?:along|on|by|to) the \w+ (?:of|in|on) the {_PICTURE}\b(?! of)"
    # The shapes shown in Figure 1; see the image for the layout.
    r"|\b(?:shown|given|depicted|drawn|defined|described|listed) (?:in|on|by) "
    r"(?:fig(?:ure|\.)|picture|image|diagram) ?\d"
    rf"|\b(?:see|refer to|look at|consult|study|check) {_THE} {_PICTURE}\b[^.\n]{{0,20}}"
    r"\b(?:for the|to (?:learn|understand|find|know|see))\b"
    rf"|\bthe {_PICTURE}(?: below| above)? (?:shows?|gives?|defines?|describes?|lists?|tells?)"
    r" (?:how|what|which|where|the (?:rules?|layout|arrangement|orders?|shapes?|scheme|map|values?"
    r"|costs?|prices?|weights?|network|formula|definition|meaning|connections?)\b)",
    re.IGNORECASE,
)
"""Words by which a text leaves something to its picture."""
_SHOWN_BELOW = re.compile(
    r"\b(?:shown|drawn|given|depicted|listed|described|defined|displayed|(?:in|by|to|with|of) the"
    r" (?:table|list|formula|rules?|map|scheme|layout|shapes?|code)) (?:just )?below[ ]?[.,;]?$"
    r"|\b(?:is|are|in|by|like) (?:the following|as follows|this)(?: \w+)?[ ]?[.,;]?$",
    re.IGNORECASE,
)
"""The end of a sentence whose rest is a picture."""
_IN_PLACE = re.compile(
    r"\b(?:like this|as follows|this way|by the (?:formula|rule))[ ]?:?[ ]?(?:<image>|!\[)",
    re.IGNORECASE,
)
"""A picture inside a sentence that stands for more than a letter."""
_SHADED = re.compile(
    r"\b(?:area|perimeter|size|length|volume) of the (?:shaded|hatched|highlighted|gr[ea]y|dashed)"
    r" (?:region|area|part|shape|figure|line)s?\b",
    re.IGNORECASE,
)
"""What can only be seen."""
_SHOWN_ABOVE = re.compile(r"\bas shown above\b", re.IGNORECASE)
_NOTHING_ABOVE = 80
"""Characters of a statement's beginning above which nothing but a picture can have stood."""
_EXAMPLE = re.compile(
    r"\b(?:examples?|samples?|illustrat\w+|instance|e\.g|suppose|let the|valid|some|possible"
    r"|cases?|looks? as follows|moves? from)\b",
    re.IGNORECASE,
)
"""Words of a sentence whose picture only shows what the text says."""
_SHOWS_EXAMPLE = re.compile(r"^#{1,6}[^\n]*\b(?:example|sample|explanation|note)", re.IGNORECASE)
_CAPTION = re.compile(r"^[*_](?![*_ ])[^\n]*(?:\n[^\n]+){0,8}?(?<![*_ ])[*_]$", re.MULTILINE)
"""A paragraph in italics, as stands under a picture."""
_HEADING = re.compile(r"^#{1,6} ")
_LINE_BREAK = re.compile(r"(?<![.:!?])\n(?=[^\n#*!-])")
"""A line break inside a sentence."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_PRINTED = re.compile(r"\b(?:input|output|print(?:s|ed)?|format)\b", re.IGNORECASE)
_NAMED_SHAPE = re.compile(
    r"\ban? (?:regular [a-z]+|circle|cube|square|triangle|rectangle|tetrahedron)(?: [A-Z])?"
    r" is (?:shown|given|depicted|drawn)\b",
    re.IGNORECASE,
)
"""A shape that everybody can draw: its picture only gives it a name."""
_ANNOUNCED = re.compile(r"^(?P<what>[^\n]{1,80}):[ \t*_]*\n+(?P<item>[^\n]+)\n+[^\n]", re.MULTILINE)
"""A short line that ends in a colon, with what it announces on lines of their own."""
_ON_PICTURE = re.compile(rf"\b(?:{_PICTURE}|shown)\b", re.IGNORECASE)
_THING = re.compile(r"[^\W\d_]{5,}")
"""A word that may name a thing."""
_MOST_THINGS = 3
"""Words before those that speak of a picture which may name what is on it."""
_AS_DATA = re.compile(r"\b(?:pixels?|matrix|grid of|bitmap|photo\w*)\b", re.IGNORECASE)
"""Words of a problem about pictures."""


def needs_picture(sections: Sections) -> bool:
    """Whether a statement leaves something to a picture that its text does not say."""
    text = _without_examples(sections)
    if _stops_at_a_picture(text):
        return True
    if _SHOWN_ABOVE.search(_DISPLAYED.sub("", text).lstrip()[:_NOTHING_ABOVE]):
        return True
    # There a picture is what the program is given.
    if _AS_DATA.search(text):
        return False
    is_displayed = _DISPLAYED.search(text) is not None
    for sentence in _SENTENCE_END.split(_LINE_BREAK.sub(" ", text)):
        if _EXAMPLE.search(sentence) or _NAMED_SHAPE.search(sentence):
            continue
        if _IN_PLACE.search(sentence) or (is_displayed and _SHADED.search(sentence)):
            return True
        found = _BY_PICTURE.search(sentence)
        if found is not None and not _is_spelled_out(sentence[: found.start()], text):
            return True
    return False


def _is_spelled_out(before: str, text: str) -> bool:
    """Whether a list of the text says what the picture shows.

    "One row of a keyboard like the image below" is whole where "In the keyboard:" is followed by
    the rows.

    Args:
        before: the sentence up to its words about the picture.
        text: the statement.
    """
    things = [word.lower() for word in _THING.findall(before)][-_MOST_THINGS:]
    for list_found in _ANNOUNCED.finditer(text):
        announced = list_found["what"].lower()
        # A picture below the colon, or named before it, is the one that is asked for.
        of_picture = IMAGE.search(list_found["item"]) or _ON_PICTURE.search(announced)
        if of_picture is None and any(thing in announced for thing in things):
            return True
    return False


def _without_examples(sections: Sections) -> str:
    """Return what a statement asks, without captions and what an example's heading stands over."""
    kept = []
    is_example = False
    for line in "\n".join((sections.statement, sections.input, sections.output)).split("\n"):
        if _HEADING.match(line):
            is_example = _SHOWS_EXAMPLE.match(line) is not None
        elif not is_example:
            kept.append(line)
    # What a caption says, it says of its picture.
    return _CAPTION.sub("", "\n".join(kept)).strip()


def _stops_at_a_picture(text: str) -> bool:
    """Whether a picture ends a sentence that is no example: "as follows:", "shown below."."""
    for picture in _DISPLAYED.finditer(text):
        before = text[: picture.start()].rstrip()
        sentence = _SENTENCE_END.split(_LINE_BREAK.sub(" ", before))[-1]
        if not before.endswith(":") and not _SHOWN_BELOW.search(sentence):
            continue
        if not _EXAMPLE.search(sentence) and not _PRINTED.search(sentence):
            return True
    return False
