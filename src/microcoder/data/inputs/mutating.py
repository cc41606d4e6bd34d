"""Makes inputs from known ones by a named, seeded mutation.

New inputs keep what all known ones share, which `models.py` learns. The calls on a random source,
their order included, decide which inputs a seed makes: a change of them changes every generated
test.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, cast

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.models import FACTS, InputModel, Relation, learn

_ATTEMPTS = 6
"""How often an input is made that may not fit, before there is none."""
_MOST_CHANGES = 3
"""Most changes that make one input of another."""
_CONSTANT_SHARE = 0.3
"""Share of the changes that place a constant, if there are any."""
_SMALL_ITEMS = 64
"""Items that any list may grow to."""
_MOST_GROWN_ITEMS = 10_000
"""Most items of a list that has grown.

A longer one makes a file of megabytes, and finds no other mistake.
"""
_MOST_LOOKED_AT = 50
"""Items of a list inside which values are changed."""
_SLOW = ("extreme", "grow")
"""Mutations whose inputs may make a program slow."""
Path = tuple[int, ...]
"""Indices that lead to a value inside lists, the outermost first."""
Items = list[Any]
"""The values of an input, or the items of a list."""
Mutation = Callable[[Items, Random], None]
"""Changes the values of an input in place."""
Change = Callable[[Items, Random], Items]
"""Returns a list made from one that is not empty; may change that one."""


def _paths_of(
    values: Sequence[Any],
    wanted: tuple[type, ...],
    depth: int,
    path: Path = (),
) -> list[Path]:
    """Return the paths of all values of these types but bools, inside up to `depth` lists."""
    paths: list[Path] = []
    for number, value in enumerate(values):
        if isinstance(value, wanted) and not isinstance(value, bool):
            paths.append((*path, number))
        if isinstance(value, list) and len(path) < depth:
            paths += _paths_of(
                value[:_MOST_LOOKED_AT],
                wanted,
                depth,
                (*path, number),
            )
    return paths


def find_repeats(values: Values) -> set[Path]:
    """Return the paths of lists in which a value occurs more than once.

    Only lists that are nested in up to two others are looked at.
    """
    is_distinct = FACTS["distinct"]
    repeating = set()
    for path in _paths_of(values, (list,), 2):
        if not is_distinct(_items_at(values, path)):
            repeating.add(path)
    return repeating


def _get(values: Sequence[Any], path: Path) -> object:
    for number in path:
        values = values[number]
    return values


def _items_at(values: Sequence[Any], path: Path) -> Items:
    """Return the list at one of the paths that `_paths_of` found."""
    return cast(Items, _get(values, path))


def _number_at(values: Sequence[Any], path: Path) -> float:
    """Return the number at one of the paths that `_paths_of` found."""
    return cast(float, _get(values, path))


def _set(
    values: Items,
    path: Path,
    value: object,
) -> None:
    parent = _items_at(values, path[:-1])
    parent[path[-1]] = value


def _on_list(change: Change) -> Mutation:
    """Return a mutation that applies `change` to a random list that is not empty.

    A text is a list of letters.
    """

    def mutate(values: Items, source: Random) -> None:
        paths = []
        for path in _paths_of(values, (list, str), 2):
            if _get(values, path):
                paths.append(path)
        if not paths:
            return
        chosen = source.choice(paths)
        items = cast(Items | str, _get(values, chosen))
        changed = change(list(items), source)
        if isinstance(items, str):
            _set(values, chosen, "".join(changed))
        else:
            _set(values, chosen, changed)

    return mutate


def _swap(items: Items, source: Random) -> Items:
    first = source.randrange(len(items))
    second = source.randrange(len(items))
    items[first], items[second] = items[second], items[first]
    return items


def _drop(items: Items, source: Random) -> Items:
    place = source.randrange(len(items))
    return items[:place] + items[place + 1 :]


def _repeat(items: Items, source: Random) -> Items:
    repeated = deepcopy(items[source.randrange(len(items))])
    items.insert(source.randrange(len(items) + 1), repeated)
    return items


def _overwrite(items: Items, source: Random) -> Items:
    # The new item is drawn before its place.
    chosen = deepcopy(source.choice(items))
    items[source.randrange(len(items))] = chosen
    return items


def _reorder(items: Items, source: Random) -> Items:
    way = source.choice(("sorted", "reversed", "shuffled"))
    if way == "shuffled":
        return source.sample(items, len(items))
    if way == "sorted":
        # Items of several types have no order among each other, their texts have.
        return sorted(items, key=repr)
    return items[::-1]


def _level(items: Items, source: Random) -> Items:
    chosen = source.choice(items)
    # Each a list of its own: a later change of one must not change them all.
    return [deepcopy(chosen) for _ in items]


def _grow(items: Items, source: Random) -> Items:
    doubled = min(2 * len(items), _MOST_GROWN_ITEMS)
    num_items = source.randint(1, max(_SMALL_ITEMS, doubled))
    chosen = source.choices(items, k=num_items)
    return [deepcopy(item) for item in chosen]


def _step(values: Items, source: Random) -> None:
    """Make a random number one more or one less."""
    paths = _paths_of(values, (int, float), 3)
    if paths:
        path = source.choice(paths)
        number = _number_at(values, path)
        _set(
            values,
            path,
            number + source.choice((-1, 1)),
        )


def _extreme(values: Items, source: Random) -> None:
    """Replace a random number by an extreme one.

    Extreme are another number or its negative, twice the number, zero, one, and numbers up to a
    power of ten.
    """
    paths = _paths_of(values, (int, float), 3)
    if not paths:
        return
    path = source.choice(paths)
    other = _number_at(values, source.choice(paths))
    # Numbers at which programs overflow, divide by zero, or leave an array.
    double = 2 * _number_at(values, path)
    most = 10 ** source.randint(1, 9)
    numbers = (other, 0, 1, double, -other, most, source.randrange(most))
    _set(values, path, source.choice(numbers))


def _place_constant(
    values: Items,
    source: Random,
    constant: int | str,
) -> None:
    """Place a constant in a random value of its type.

    A number is replaced by the constant or by a neighbour of it. A text is replaced by it, or has
    it written in.
    """
    wanted = (int, float) if isinstance(constant, int) else (str,)
    paths = _paths_of(values, wanted, 3)
    if not paths:
        return
    path = source.choice(paths)
    if isinstance(constant, int):
        # The constant itself as often as its two neighbours together.
        offset = source.choice((-1, 0, 0, 1))
        _set(values, path, constant + offset)
        return
    text = cast(str, _get(values, path))
    start = source.randint(0, len(text))
    # Inserted, or written over as many letters.
    end = source.choice((start, start + len(constant)))
    written = text[:start] + constant + text[end:]
    _set(
        values,
        path,
        source.choice((constant, written)),
    )


def _echo(values: Items, source: Random) -> None:
    """Replace a value by a part of another text or list, or a number by an item of another list."""
    places = []
    for place, value in enumerate(values):
        if isinstance(value, list | str) and value:
            places.append(place)
    if not places:
        return
    echoed = values[source.choice(places)]
    first = source.randrange(len(echoed))
    second = source.randint(1, len(echoed))
    start, end = sorted((first, second))
    # The first value of a type that fits, in random order.
    for place in source.sample(range(len(values)), len(values)):
        value = values[place]
        if type(value) is type(echoed) and value is not echoed:
            values[place] = deepcopy(echoed[start:end] or echoed)
            return
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and isinstance(echoed[start], int):
            values[place] = echoed[start]
            return


MUTATIONS: Mapping[str, Mutation] = {
    "step": _step,
    "extreme": _extreme,
    "swap": _on_list(_swap),
    "drop": _on_list(_drop),
    "repeat": _on_list(_repeat),
    "overwrite": _on_list(_overwrite),
    "level": _on_list(_level),
    "reorder": _on_list(_reorder),
    "grow": _on_list(_grow),
    "echo": _echo,
}
"""Mutations by name, in the order in which they are tried.

Each changes a list of values in place; the `Origin` of a test names its mutation.
"""


def mutate(
    model: InputModel,
    parent: Values,
    mutation: str,
    *,
    seed: int,
    constants: Sequence[int | str] = (),
) -> Values | None:
    """Return an input made from another one; None if no attempt fits the model and differs from it.

    Args:
        model: what all known inputs have in common.
        parent: the input that is changed.
        mutation: a name of `MUTATIONS`; applied one to three times.
        seed: decides every choice.
        constants: one of them is placed instead at about every third of these times.
    """
    source = Random(seed)
    for _ in range(_ATTEMPTS):
        # A copy all the way down, since mutations change values in place.
        values = deepcopy(list(parent))
        for _ in range(source.randint(1, _MOST_CHANGES)):
            # Without constants nothing is drawn for them.
            if constants and source.random() < _CONSTANT_SHARE:
                _place_constant(values, source, source.choice(constants))
            else:
                MUTATIONS[mutation](values, source)
        # Else most changes of a list would be lost: its length is stated somewhere.
        restate_lengths(model, values)
        made = tuple(values)
        if made != parent and model.fits(made):
            return made
    return None


def vary(
    known: Sequence[Values],
    *,
    num: int,
    seed: str,
) -> list[Values]:
    """Return up to `num` new inputs that have everything that the known inputs have in common."""
    if not known or num == 0:
        return []
    model = learn(known)
    source = Random(seed)
    # Both programs of a comparison run on these inputs, within little time.
    names = [name for name in MUTATIONS if name not in _SLOW]
    # As texts, since the lists among the values have no hash.
    known_texts = {repr(values) for values in known}
    varied: dict[str, Values] = {}
    # Bounded, since a model may allow fewer inputs than are asked for.
    for _ in range(num * _ATTEMPTS):
        parent = source.choice(known)
        name = source.choice(names)
        made = mutate(
            model,
            parent,
            name,
            seed=source.getrandbits(40),
        )
        if made is not None and repr(made) not in known_texts:
            varied.setdefault(repr(made), made)
        if len(varied) == num:
            break
    return list(varied.values())


def restate_lengths(model: InputModel, values: Items) -> None:
    """Correct the numbers that state lengths after a list or text was changed."""
    for relation in model.relations:
        if relation.operator == "==":
            _restate(values, relation)
            # Either side may be the number: only that one is changed.
            swapped = Relation(
                relation.right,
                "==",
                relation.left,
                -relation.add,
            )
            _restate(values, swapped)


def _restate(values: Items, relation: Relation) -> None:
    """Set the number on the left to the length on the right, if they are a number and a length."""
    number = relation.left
    size = relation.right
    if not number.isdigit() or not size.endswith("#"):
        return
    if isinstance(values[int(number)], int):
        measured = values[int(size.removesuffix("#"))]
        values[int(number)] = int(len(measured) + relation.add)
