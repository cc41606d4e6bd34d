"""Writes parts of an input anew: tokens shuffled or drawn, tables and lists of another length.

Also inputs that lie between two others. Like the changes of `texts.py`, these need no layout, and
validators decide which of them are inputs.
"""

from collections.abc import Callable, Sequence
from random import Random

from microcoder.data.inputs.finding import INTEGER
from microcoder.data.inputs.lines import (
    Lines,
    Place,
    get,
    join_lines,
    lines_like,
    places_of,
    put,
    shape_of,
    split_lines,
)

_WIDTHS = (1, 2, 3, 5, 10, 30)
"""How far numbers that are drawn anew lie apart."""
_SHARE_OF_KNOWN = 0.35
"""Share of what is drawn that is drawn from what was there."""


def shuffle(lines: Lines, source: Random) -> None:
    """Shuffle tokens of a kind: those of a line, of a column, or of all lines; or whole lines."""
    first = source.randrange(len(lines))
    alike = [first, *lines_like(lines, first)]
    if source.random() < 0.25:
        kept = [lines[line] for line in alike]
        source.shuffle(kept)
        for line, tokens in zip(alike, kept, strict=True):
            lines[line] = tokens
        return
    places = _choose_region(lines, source)
    tokens = [get(lines, place) for place in places]
    source.shuffle(tokens)
    for place, token in zip(places, tokens, strict=True):
        put(lines, place, token)


def redraw(lines: Lines, source: Random) -> None:
    """Draw tokens of a line, of a column, or of all lines anew."""
    places = _choose_region(lines, source)
    if not places:
        return
    draw = _drawer([get(lines, place) for place in places], lines[0], source)
    for place in places:
        put(lines, place, draw(get(lines, place)))


def _drawer(
    known: Sequence[str],
    head: Sequence[str],
    source: Random,
) -> Callable[[str], str]:
    """Return what draws a token instead of one.

    Some drawers take few of the known tokens. Others make numbers between two bounds, which are
    the known ones, close together, or a number at the head; or words of few letters.

    Args:
        known: tokens of one kind; not empty.
        head: the first line of the input, where numbers often are bounds.
        source: decides every choice.
    """
    if source.random() < _SHARE_OF_KNOWN:
        distinct = sorted(set(known))
        few = source.sample(distinct, source.randint(1, len(distinct)))
        return lambda _: source.choice(few)
    if not all(map(INTEGER.fullmatch, known)):
        letters = sorted(set("".join(known)))
        if source.random() < 0.5:
            letters = source.sample(letters, min(2, len(letters)))
        return lambda token: "".join(source.choices(letters, k=len(token)))
    numbers = list(map(int, known))
    low = min(numbers)
    high = max(numbers)
    way = source.choice(("between", "close", "small", "head"))
    bounds = [int(token) for token in head if INTEGER.fullmatch(token)]
    if way == "close":
        low = source.choice(numbers)
        high = low + source.choice(_WIDTHS)
    elif way == "small":
        low = source.choice((0, 1, 1))
        high = low + source.choice(_WIDTHS)
    elif way == "head" and bounds:
        low = source.choice((0, 1, 1))
        high = max(low, source.choice(bounds) - 1 + low)
    return lambda _: str(source.randint(low, high))


def rebuild(lines: Lines, source: Random) -> None:
    """Write a table, a list or a word anew, of another length, and the number that counts it.

    A table may keep some of its rows instead.
    """
    first = source.randrange(len(lines))
    start, end = _find_table(lines, first)
    height = end - start
    length = source.randint(0, source.choice((2, 4, 8, 30, 2 * max(height, len(lines[first])))))
    if height > 1:
        rows = _write_rows(lines[start:end], length, lines[0], source)
        count_again(lines[:start], height, len(rows))
        lines[start:end] = rows
        return
    length = max(1, length)
    tokens = lines[first]
    if len(tokens) > 1:
        count_again(lines[:first], len(tokens), length)
        # Lists that are equally long are so by the same number.
        is_of_all = source.random() < 0.8
        for line in range(first, len(lines)):
            if line == first or (is_of_all and len(lines[line]) == len(tokens)):
                draw = _drawer(lines[line], lines[0], source)
                known = source.choices(lines[line], k=length)
                lines[line] = list(map(draw, known))
        return
    word = tokens[0]
    if word and not INTEGER.fullmatch(word):
        count_again(lines[:first], len(word), length)
        letters = source.sample(sorted(set(word)), source.randint(1, len(set(word))))
        lines[first] = ["".join(source.choices(letters, k=length))]


def _find_table(lines: Lines, line: int) -> tuple[int, int]:
    """Return where the table begins and ends in which a line is a row: lines of one kind."""
    shape = shape_of(lines[line])
    start = line
    while start > 0 and shape_of(lines[start - 1]) == shape:
        start -= 1
    end = line + 1
    while end < len(lines) and shape_of(lines[end]) == shape:
        end += 1
    # What counts the rows may look like one of them.
    is_headed = start == 0 and end > 1 and str(end - 1) in lines[0]
    return start + (is_headed and line > 0), end


def _write_rows(
    rows: Lines,
    length: int,
    head: Sequence[str],
    source: Random,
) -> Lines:
    """Return about so many rows: some of those of a table, or rows of drawn tokens."""
    if source.random() < _SHARE_OF_KNOWN:
        kept = sorted(source.sample(range(len(rows)), min(length, len(rows))))
        return [list(rows[number]) for number in kept]
    columns = [list(column) for column in zip(*rows, strict=True)]
    draws = [_drawer(column, head, source) for column in columns]
    written = []
    for _ in range(length):
        known = source.choice(rows)
        row = [draw(token) for draw, token in zip(draws, known, strict=True)]
        written.append(row)
    if source.random() < 0.5:
        # Rows may have to differ.
        written = list({tuple(row): row for row in written}.values())
    # A table that is sorted has to be, as a rule.
    if sorted(rows, key=_order_of) == rows:
        written.sort(key=_order_of)
    return written


def _order_of(row: Sequence[str]) -> list[tuple[int, str]]:
    """Return what rows are sorted by: numbers as numbers."""
    order = []
    for token in row:
        number = int(token) if INTEGER.fullmatch(token) else 0
        order.append((number, token))
    return order


def count_again(
    above: Lines,
    before: int,
    after: int,
) -> bool:
    """Correct the nearest number above that says how long something is; return if there is one."""
    for tokens in reversed(above):
        if str(before) in tokens:
            tokens[tokens.index(str(before))] = str(after)
            return True
    return False


def _choose_region(lines: Lines, source: Random) -> list[Place]:
    """Return the places of one kind in a line, in a column, or below the first line."""
    are_numbers = source.random() < 0.5
    places = places_of(lines, are_numbers=are_numbers)
    if not places:
        places = places_of(lines, are_numbers=not are_numbers)
    if not places:
        return []
    first = source.choice(places)
    way = source.choice(("line", "column", "all"))
    region = []
    for place in places:
        is_chosen = place.line > 0
        if way == "line":
            is_chosen = place.line == first.line
        elif way == "column":
            is_chosen = place.column == first.column and place.line >= min(first.line, 1)
        if is_chosen:
            region.append(place)
    return region


def blend(
    first: str,
    second: str,
    *,
    most: int,
    seed: int,
) -> list[str]:
    """Return inputs on a way from one input to another: each has more tokens of the second.

    A longer line keeps the tokens that the other has none for. The list is empty where the inputs
    differ in their number of lines.

    Args:
        first: where the way begins; it is not returned.
        second: where it leads.
        most: how many steps it has at most.
        seed: decides the order of the tokens.
    """
    lines = split_lines(first)
    target = split_lines(second)
    if len(lines) != len(target):
        return []
    places = []
    for number, (before, after) in enumerate(zip(lines, target, strict=True)):
        for column, (old, new) in enumerate(zip(before, after, strict=False)):
            if old != new:
                places.append(Place(number, column))
    Random(seed).shuffle(places)
    size = -(-len(places) // most)
    texts = []
    for number, place in enumerate(places, start=1):
        put(lines, place, get(target, place))
        if number % size == 0:
            texts.append(join_lines(lines))
    return texts
