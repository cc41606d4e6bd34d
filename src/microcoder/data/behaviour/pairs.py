"""Which forms of a problem are put beside which forms of benchmark problems, before anything runs.

Their values have the same kinds in some order, and their known outputs may be of one program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations

from microcoder.data.behaviour.forms import Form, find_forms
from microcoder.data.behaviour.views import (
    Symbols,
    ViewedLayout,
    find_shifted,
    find_symbols,
    find_turned,
    find_views,
    find_width,
    rename,
    write_values,
)
from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.layouts import Values

# Orders grow with the factorial of the number of values.
_MOST_ORDERS = 24
"""Orders of the values in which a pair of forms is tried."""
_MOST_FORMS = 5
"""Forms of a problem that are compared, the likeliest."""
_LEAST_FITTING = 0.9
"""Share of a problem's inputs that a benchmark's program can be given."""
_LEAST_SHAPES = 2
"""Fewest outputs from which it is told that another program gives other ones."""


@dataclass(frozen=True, slots=True)
class BehaviourIndex:
    """Forms of benchmark problems, and their indices by the kinds of their values."""

    forms: tuple[Form, ...]
    by_kinds: dict[str, tuple[int, ...]]
    """By the keys of `_keys`."""
    symbols: tuple[Symbols | None, ...]
    """Of each form, the few symbols that its texts consist of."""
    widths: tuple[int, ...]
    """Of each form, the width of its table's rows; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A form of the problem, a form of a benchmark problem, and how their values correspond."""

    own: Form
    other: Form
    order: tuple[int, ...]
    """For each value of the benchmark's form, the index of the problem's own value."""

    @property
    def swapped(self) -> Pair:
        """The pair with the problem and the benchmark's problem swapped."""
        places = range(len(self.order))
        return Pair(
            self.other,
            self.own,
            tuple(map(self.order.index, places)),
        )

    def arrange(self, values: Values) -> Values:
        """Return the problem's values in the benchmark's order."""
        return tuple(values[place] for place in self.order)

    @property
    def bits(self) -> float:
        """Evidence that the views cost."""
        return self.own.bits + self.other.bits

    def render(self, values: Values) -> object | None:
        """Return the problem's values as an input of the benchmark's program.

        The input is a list of arguments, or a text for stdin. None if the program has no such
        input.
        """
        return render(self.other, self.arrange(values))


def render(form: Form, values: Values) -> object | None:
    """Return the input of a form's program that holds these values; None if there is none."""
    try:
        return form.layout.render(values)
    except (ValueError, TypeError, KeyError, IndexError):
        # A view that is turned back wants values of its shape.
        return None


def index_behaviour(benchmark: Iterable[Candidate]) -> BehaviourIndex:
    """Index the forms of benchmark problems for `find_behaviour`; nothing is run."""
    forms: list[Form] = []
    for problem in benchmark:
        forms += _find_all_views(problem)
    numbers_by_kinds: dict[str, list[int]] = defaultdict(list)
    for number, form in enumerate(forms):
        for key in _keys(form.kinds):
            numbers_by_kinds[key].append(number)
    by_kinds = {key: tuple(numbers) for key, numbers in numbers_by_kinds.items()}
    return BehaviourIndex(
        tuple(forms),
        by_kinds,
        tuple(map(find_symbols, forms)),
        tuple(map(find_width, forms)),
    )


def _find_all_views(candidate: Candidate) -> list[Form]:
    """Return the likeliest forms of a problem, each with its views."""
    views: dict[str, Form] = {}
    for form in find_forms(candidate)[:_MOST_FORMS]:
        for view in find_views(form):
            # Two readings may have the same view.
            views.setdefault(write_values(view), view)
    return list(views.values())


def _keys(kinds: Sequence[str]) -> set[str]:
    """Return index keys that do not depend on the order of kinds.

    `E`, only empty lists, may be any kind of list.
    """
    if "E" not in kinds:
        return {"".join(sorted(kinds))}
    keys = set()
    for kind_of_list in "NSTR":
        filled = "".join(kinds).replace("E", kind_of_list)
        keys.add("".join(sorted(filled)))
    return keys


def find_pairs(candidate: Candidate, index: BehaviourIndex) -> list[Pair]:
    """Return the pairs of forms whose values have the same kinds, if either form has a program."""
    pairs: list[Pair] = []
    for view in _find_all_views(candidate):
        for own in (view, *find_shifted(view)):
            pairs += _find_pairs_of(own, index)
        for own in find_turned(view):
            pairs += _find_pairs_of(own, index, width=find_width(own))
    return pairs


def _find_pairs_of(
    own: Form,
    index: BehaviourIndex,
    *,
    width: int = 0,
) -> Iterator[Pair]:
    """Yield the pairs of a form; with a width, only those with tables of that width."""
    # A dict, as a set that keeps its order.
    numbers: dict[int, None] = {}
    # Sorted, since a set of texts has another order in each process.
    for key in sorted(_keys(own.kinds)):
        of_these_kinds = index.by_kinds.get(key, ())
        numbers.update(dict.fromkeys(of_these_kinds))
    own_symbols = find_symbols(own)
    renamed: dict[Symbols, list[Form]] = {}
    for number in numbers:
        other = index.forms[number]
        # Without any program there is nothing to run.
        if not (other.program or own.program) or not _may_agree(own, other):
            continue
        if width and index.widths[number] != width:
            continue
        yield from _pair_up(own, other)
        symbols = index.symbols[number]
        if own_symbols is None or symbols is None:
            continue
        if symbols not in renamed:
            renamed[symbols] = rename(own, own_symbols, symbols)
        for form in renamed[symbols]:
            yield from _pair_up(form, other)


def _may_agree(own: Form, other: Form) -> bool:
    """Whether the known outputs of two forms may be of one program.

    Where one gives numbers alone and the other lists alone, nothing need be run.
    """
    if min(len(own.cases), len(other.cases)) < _LEAST_SHAPES:
        return True
    if not own.shapes or not other.shapes:
        return True
    return not own.shapes.isdisjoint(other.shapes)


def _pair_up(own: Form, other: Form) -> list[Pair]:
    """Return pairs of two forms: for the first orders of values in which the kinds are the same."""
    # Another story may name the same values in another order.
    orders = permutations(range(len(own.kinds)))
    fitting = (
        order
        for order in orders
        if _fits(
            own.kinds,
            other.kinds,
            order,
        )
    )
    pairs = []
    for order in islice(fitting, _MOST_ORDERS):
        pair = Pair(
            own,
            other,
            order,
        )
        # The problem's own inputs are all of them, the benchmark's may be more than these.
        own_share = _share_that_fits(pair)
        if own_share >= _LEAST_FITTING and _share_that_fits(pair.swapped) > 0:
            pairs.append(pair)
    return pairs


def _share_that_fits(pair: Pair) -> float:
    """Return the share of known inputs of the first form that can be inputs of the other's program.

    A sum of two is no sum of a list, if none of the known lists has two items.
    """
    if not isinstance(pair.other.layout, ViewedLayout):
        return 1.0
    num_fitting = 0
    for case in pair.own.cases:
        if pair.render(case.values) is not None:
            num_fitting += 1
    return num_fitting / len(pair.own.cases)


def _fits(
    own: Sequence[str],
    other: Sequence[str],
    order: Sequence[int],
) -> bool:
    """Whether values in this order have the same kinds."""
    for place, kind in zip(order, other, strict=True):
        kinds = {own[place], kind}
        # Only empty lists fit any list.
        has_empty = "E" in kinds and kinds <= set("ENSTR")
        if len(kinds) > 1 and not has_empty:
            return False
    return True
