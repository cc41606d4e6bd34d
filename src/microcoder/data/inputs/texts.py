"""Makes inputs from known ones by changes of their text, whatever its layout.

`mutating.py` changes values of a layout that was understood. These changes need none: they move
lines, tokens and letters. Most of them keep a relation inside the input that wrong programs miss: a
copy with exactly so many edits, one fault twice, a near-tie, an equal key. What they make may be no
input at all, so they are for problems with a validator.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from microcoder.data.inputs.finding import INTEGER
from microcoder.data.inputs.lines import Lines, Place, get, join_lines, lines_like, places_of, put
from microcoder.data.inputs.redrawing import rebuild, redraw, shuffle

_ATTEMPTS = 4
"""How often a change is tried that may change nothing, before there is none."""
_MOST_EDITS = 3
"""Most edits of a copied word."""
_MOST_CHANGES = 3
"""Most changes that make one input of another."""
_CONSTANT_SHARE = 0.25
"""Share of the changes that write a constant, if there are any."""
_MOST_PART = 4
"""Most letters of a word that are put into another."""
_MOST_BLOCK = 6
"""Most lines that are repeated together."""
_DISTANCES = (-20, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20)
"""How far numbers are moved."""


TextChange = Callable[[Lines, Random], None]
"""Changes an input in place; changes nothing where it has no part of that kind."""


def _choose_two(
    lines: Lines,
    source: Random,
    *,
    are_numbers: bool,
) -> tuple[Place, Place] | None:
    """Return two random places of numbers, or of words; None if there are fewer."""
    places = places_of(lines, are_numbers=are_numbers)
    if len(places) < 2:
        return None
    first, second = source.sample(places, 2)
    return first, second


def edit(
    word: str,
    letters: Sequence[str],
    num_edits: int,
    source: Random,
) -> str:
    """Return a word with so many letters replaced by others, or with some left out or put in.

    Args:
        word: the word; not empty.
        letters: those that may be written.
        num_edits: how many places are replaced, all of them different.
        source: decides every choice.
    """
    edited = list(word)
    way = source.choice(("replace", "replace", "replace", "insert", "leave out"))
    if way == "insert":
        for _ in range(num_edits):
            edited.insert(source.randint(0, len(edited)), source.choice(letters))
        return "".join(edited)
    if way == "leave out" and len(edited) > num_edits:
        for _ in range(num_edits):
            edited.pop(source.randrange(len(edited)))
        return "".join(edited)
    for place in source.sample(range(len(edited)), min(num_edits, len(edited))):
        others = [letter for letter in letters if letter != edited[place]]
        if others:
            edited[place] = source.choice(others)
    return "".join(edited)


def _letters(lines: Lines) -> list[str]:
    """Return the letters of all words, in order."""
    found: set[str] = set()
    for place in places_of(lines, are_numbers=False):
        found.update(get(lines, place))
    return sorted(found)


def _near_copy(lines: Lines, source: Random) -> None:
    """Replace a word by a copy of another with exactly so many edits, none included."""
    chosen = _choose_two(lines, source, are_numbers=False)
    if chosen is not None:
        kept, replaced = chosen
        num_edits = max(0, source.randint(-2, _MOST_EDITS))
        copied = edit(get(lines, kept), _letters(lines), num_edits, source)
        put(lines, replaced, copied)


def _all_near(lines: Lines, source: Random) -> None:
    """Replace every word of a column by a near copy of one word, each with edits of its own."""
    words = places_of(lines, are_numbers=False)
    if len(words) < 2:
        return
    kept = get(lines, source.choice(words))
    letters = _letters(lines)
    column = source.choice(words).column
    for place in words:
        if place.column == column and source.random() < 0.7:
            num_edits = source.randint(0, _MOST_EDITS)
            put(lines, place, edit(kept, letters, num_edits, source))


def _same_fault(lines: Lines, source: Random) -> None:
    """Make one edit at two places of a word, or in two words."""
    words = places_of(lines, are_numbers=False)
    if not words:
        return
    letters = _letters(lines)
    fault = source.choice(letters)
    for _ in range(2):
        place = source.choice(words)
        word = get(lines, place)
        at = source.randrange(len(word))
        put(lines, place, word[:at] + fault + word[at + 1 :])


def _graft(lines: Lines, source: Random) -> None:
    """Put a part of a word into a word once more: what was counted once is there twice."""
    words = places_of(lines, are_numbers=False)
    if not words:
        return
    part_of = get(lines, source.choice(words))
    start = source.randrange(len(part_of))
    part = part_of[start : start + source.randint(1, _MOST_PART)]
    place = source.choice(words)
    word = get(lines, place)
    at = source.randint(0, len(word))
    # Either the word grows, or keeps its length.
    rest = at if source.random() < 0.5 else at + len(part)
    put(lines, place, word[:at] + part + word[rest:])


def _tie(lines: Lines, source: Random) -> None:
    """Replace a number by another one, or by a neighbour of it."""
    chosen = _choose_two(lines, source, are_numbers=True)
    if chosen is not None:
        kept, replaced = chosen
        number = int(get(lines, kept)) + source.choice((0, 0, 1, -1))
        put(lines, replaced, str(number))


def _equal_keys(lines: Lines, source: Random) -> None:
    """Replace all tokens that equal one by another token of their kind."""
    are_numbers = source.random() < 0.5
    chosen = _choose_two(lines, source, are_numbers=are_numbers)
    if chosen is not None:
        old = get(lines, chosen[0])
        new = get(lines, chosen[1])
        # The first line holds sizes as a rule, which change with what they count.
        for tokens in lines[1:]:
            tokens[:] = [new if token == old else token for token in tokens]


def _copy_line(lines: Lines, source: Random) -> None:
    """Replace a line by a copy of another one of its kind, all but one token at times.

    Of a kind are lines with numbers at the same places, and all lines without numbers.
    """
    first = source.randrange(len(lines))
    alike = lines_like(lines, first)
    if not alike:
        return
    second = source.choice(alike)
    copied = list(lines[first])
    is_as_long = len(copied) == len(lines[second])
    if is_as_long and len(copied) > 1 and source.random() < 0.5:
        kept = source.randrange(len(copied))
        copied[kept] = lines[second][kept]
    lines[second] = copied


def _copy_block(lines: Lines, source: Random) -> None:
    """Repeat some lines that stand together, and correct a number above that may count them."""
    start, end = _choose_block(lines, source)
    place = source.choice((start, end, source.randint(start, len(lines))))
    block = [list(tokens) for tokens in lines[start:end]]
    if source.random() < 0.5:
        # What names it may have to be another name.
        _rename(block, _letters(lines), source)
    counters = places_of(lines[:start], are_numbers=True)
    if counters:
        # A number of blocks stands at the top, as a rule.
        counter = counters[0] if source.random() < 0.6 else source.choice(counters)
        added = source.choice((1, len(block)))
        put(lines, counter, str(int(get(lines, counter)) + added))
    lines[place:place] = block


def _crowd(lines: Lines, source: Random) -> None:
    """Add a line that is like another one but for its numbers, which lie close by.

    Either all of them are moved together, so that what holds between them stays, or one is.
    """
    # The first line holds sizes as a rule.
    line = source.randrange(min(1, len(lines) - 1), len(lines))
    added = list(lines[line])
    columns = []
    for column, token in enumerate(added):
        if INTEGER.fullmatch(token):
            columns.append(column)
    if not columns:
        return
    moved = columns
    if source.random() < 0.5:
        moved = [source.choice(columns)]
    distance = source.choice(_DISTANCES)
    for column in moved:
        added[column] = str(int(added[column]) + distance)
    counters = _find_counters(lines, line)
    if counters:
        put(lines, counters[-1], str(int(get(lines, counters[-1])) + 1))
    lines.insert(source.randint(line, line + 1), added)


def _shift(lines: Lines, source: Random) -> None:
    """Move numbers of a line or column by the same distance: what holds between them stays."""
    places = places_of(lines, are_numbers=True)
    if not places:
        return
    first = source.choice(places)
    is_row = source.random() < 0.5
    moved = []
    for place in places:
        is_beside = place.line == first.line and place.column >= first.column
        is_below = place.column == first.column and place.line >= first.line
        if (is_row and is_beside) or (not is_row and is_below):
            moved.append(place)
    distance = source.choice(_DISTANCES)
    for place in moved[: source.randint(1, len(moved))]:
        put(lines, place, str(int(get(lines, place)) + distance))


def _choose_block(lines: Lines, source: Random) -> tuple[int, int]:
    """Return where a block of lines begins and ends: as a number at its head says, or anywhere."""
    heads = []
    for line, tokens in enumerate(lines[1:], start=1):
        if len(tokens) == 1 and INTEGER.fullmatch(tokens[0]):
            # The number may count all lines after it, or those after a name.
            for size in (int(tokens[0]) + 1, int(tokens[0]) + 2):
                if 1 < size <= len(lines) - line:
                    heads.append((line, line + size))
    if heads and source.random() < 0.5:
        return source.choice(heads)
    start = source.randrange(len(lines))
    return start, min(len(lines), start + source.randint(1, _MOST_BLOCK))


def _rename(
    block: Lines,
    letters: Sequence[str],
    source: Random,
) -> None:
    """Make one edit of the first word of some lines."""
    words = places_of(block, are_numbers=False)
    if words:
        word = get(block, words[0])
        put(block, words[0], edit(word, letters, 1, source))


def _swap(lines: Lines, source: Random) -> None:
    """Swap two tokens of a kind, or two lines."""
    if source.random() < 0.5:
        first = source.randrange(len(lines))
        alike = lines_like(lines, first)
        if alike:
            second = source.choice(alike)
            lines[first], lines[second] = lines[second], lines[first]
        return
    chosen = _choose_two(lines, source, are_numbers=source.random() < 0.5)
    if chosen is not None:
        before = get(lines, chosen[0])
        put(lines, chosen[0], get(lines, chosen[1]))
        put(lines, chosen[1], before)


def _step(lines: Lines, source: Random) -> None:
    """Make a number one more or one less, or make it small."""
    places = places_of(lines, are_numbers=True)
    if places:
        place = source.choice(places)
        number = int(get(lines, place))
        put(lines, place, str(source.choice((number + 1, number - 1, 0, 1, 2))))


def _resize(lines: Lines, source: Random) -> None:
    """Repeat or drop a line or a token, and correct a number that counts it."""
    line = source.randrange(len(lines))
    change = source.choice((-1, 1, 1))
    if source.random() < 0.5 and len(lines[line]) > 1:
        _resize_line(lines, line, change, source)
        return
    counters = _find_counters(lines, line)
    if counters:
        # The nearest one as a rule; one further up counts blocks.
        counter = counters[-1] if source.random() < 0.8 else source.choice(counters)
        counted = str(int(get(lines, counter)) + change)
        put(lines, counter, counted)
    if change > 0:
        lines.insert(line, list(lines[source.randint(min(line, 1), line)]))
    else:
        lines.pop(line)


def _resize_line(
    lines: Lines,
    line: int,
    change: int,
    source: Random,
) -> None:
    """Repeat or drop a token of a line, and correct a number before that says how many it has."""
    size = str(len(lines[line]))
    for tokens in reversed(lines[:line]):
        if size in tokens:
            tokens[tokens.index(size)] = str(len(lines[line]) + change)
            break
    column = source.randrange(len(lines[line]))
    if change > 0:
        lines[line].insert(column, source.choice(lines[line]))
    else:
        lines[line].pop(column)


def _find_counters(lines: Lines, line: int) -> list[Place]:
    """Return the numbers above a line that reach it if they count the lines after them."""
    counters = []
    for place in places_of(lines[:line], are_numbers=True):
        reached = place.line + int(get(lines, place))
        if line <= reached < len(lines):
            counters.append(place)
    return counters


TEXT_CHANGES: Mapping[str, TextChange] = {
    "near_copy": _near_copy,
    "tie": _tie,
    "resize": _resize,
    "copy_line": _copy_line,
    "copy_block": _copy_block,
    "same_fault": _same_fault,
    "equal_keys": _equal_keys,
    "all_near": _all_near,
    "swap_text": _swap,
    "step_text": _step,
    "crowd": _crowd,
    "shift": _shift,
    "shuffle": shuffle,
    "redraw": redraw,
    "rebuild": rebuild,
    "graft": _graft,
}
"""Changes of a text by name, in the order in which they are tried."""


def change_text(
    text: str,
    change: str,
    *,
    seed: int,
    constants: Sequence[str] = (),
) -> str | None:
    """Return an input made of another one's text; None if it stayed as it was.

    Args:
        text: the input that is changed.
        change: a name of `TEXT_CHANGES`; applied one to three times.
        seed: decides every choice.
        constants: texts and numbers of the problem, of which one is written into some inputs.
    """
    source = Random(seed)
    for _ in range(_ATTEMPTS):
        lines = _split(text, has_phrases=source.random() < 0.5)
        before = [list(tokens) for tokens in lines]
        for _ in range(source.randint(1, _MOST_CHANGES)):
            if constants and source.random() < _CONSTANT_SHARE:
                _place_constant(lines, source, source.choice(constants))
            else:
                TEXT_CHANGES[change](lines, source)
            if not lines or not any(lines):
                return None
        if lines != before:
            return join_lines(lines)
    return None


class Repeats(NamedTuple):
    """What occurs more than once in an input."""

    lines: bool
    tokens: bool
    """Whether a token does in its line."""


def find_text_repeats(text: str) -> Repeats:
    """Return what occurs more than once in an input."""
    lines = text.split("\n")
    has_tokens = False
    for line in lines:
        tokens = line.split()
        has_tokens |= len(set(tokens)) < len(tokens)
    return Repeats(len(set(lines)) < len(lines), has_tokens)


def _split(text: str, *, has_phrases: bool) -> Lines:
    """Return the tokens of each line; with `has_phrases`, a line without numbers is one token."""
    lines = []
    for line in text.rstrip("\n").split("\n"):
        tokens = line.split(" ")
        is_phrase = has_phrases and not any(map(INTEGER.fullmatch, tokens))
        lines.append([line] if is_phrase else tokens)
    return lines


def _place_constant(
    lines: Lines,
    source: Random,
    constant: str,
) -> None:
    """Replace a number by a constant that is one, or a word by one that is a text."""
    is_number = INTEGER.fullmatch(constant) is not None
    places = places_of(lines, are_numbers=is_number)
    if places:
        put(lines, source.choice(places), constant)
