"""Which made tests a problem gets: those that catch wrong programs, then a mix."""

from collections import Counter
from collections.abc import Collection, Sequence

from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.data.inputs.traits import Pair, Trait, find_traits
from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.made import MadeTest
from microcoder.data.testgen.programs import knows_slow
from microcoder.data.testgen.settings import (
    MOST_CHOSEN,
    MOST_LARGE,
    MOST_LARGE_FOR_SLOW,
    MOST_OF_LARGE_ALONE,
    MOST_OF_MAKER,
    GenerateSettings,
)
from microcoder.data.testgen.trials import Trial
from microcoder.judge.core.files import take_in_turn

STEP = "generate/3"
"""Name and version of the step in the lineage of a candidate."""
_GIVEN = Origin(kind="given")
_TIMES_COVERED = 3
"""How many chosen tests are to catch an attempt or mutant, as other mistakes are only like it."""
_THOUGHT_OF = ("package", "model", "between")
"""Ways of making inputs that aim at something, so that some of each are kept."""
_NAMES = {
    "submission": "wrong submissions",
    "attempt": "attempts",
    "mutant": "mutants",
}
"""What the kinds of tried programs are called."""


def add_chosen(
    answering: Answering,
    settings: GenerateSettings,
    tests: Sequence[MadeTest],
    trials: Sequence[Trial],
    detail: str,
) -> Candidate:
    """Return a candidate with those made tests that catch most wrong programs.

    Args:
        answering: what found the tests' answers.
        settings: settings of the stage.
        tests: made tests.
        trials: what wrong programs fail of them.
        detail: how they were made.
    """
    candidate = answering.candidate
    given = candidate.tests
    most = max(MOST_CHOSEN, settings.min_hidden_tests)
    numbers = choose_tests(
        tests,
        trials,
        most=most,
        num_large=MOST_LARGE_FOR_SLOW if knows_slow(candidate) else MOST_LARGE,
        least=settings.min_hidden_tests,
    )
    chosen = [tests[number] for number in numbers]
    # Without origins, all tests are the source's own.
    origins = list(candidate.origins or [_GIVEN] * len(given))
    origins += [made.origin for made in chosen]
    # A row without groups stays without them.
    groups = list(candidate.groups)
    if groups:
        groups += [made.group for made in chosen]
    return candidate.change(
        "generate",
        STEP,
        f"{detail}; {len(chosen)} kept; {_describe(trials)}",
        tests=(*given, *(made.test for made in chosen)),
        origins=tuple(origins),
        groups=tuple(groups),
    )


def _describe(trials: Sequence[Trial]) -> str:
    """Return how many wrong programs pass all tests that were tried on them."""
    tried: Counter[str] = Counter()
    passing: Counter[str] = Counter()
    for trial in trials:
        tried[trial.wrong.kind] += 1
        passing[trial.wrong.kind] += not trial.failed
    counts = []
    for kind, name in _NAMES.items():
        # Few builds have attempts.
        if tried[kind] or kind != "attempt":
            counts.append(f"{passing[kind]} of {tried[kind]} {name}")
    return f"{', '.join(counts[:-1])} and {counts[-1]} pass all tried tests"


def choose_tests(
    tests: Sequence[MadeTest],
    trials: Sequence[Trial],
    *,
    most: int,
    num_large: int,
    least: int = 0,
) -> list[int]:
    """Return the indices of the tests to keep.

    They are some large tests, the tests that wrong programs fail, and a mix of the rest.

    Args:
        tests: made tests.
        trials: what wrong programs fail of them.
        most: how many tests are kept.
        num_large: how many large tests are kept whatever they catch.
        least: how many tests are asked for, so that large ones fill up to them.
    """
    failed: dict[str, list[Collection[int]]] = {kind: [] for kind in _NAMES}
    for trial in trials:
        failed[trial.wrong.kind].append(trial.failed)
    # Each test once, by the first reason to keep it.
    ranked = dict.fromkeys(_mix_large(tests)[:num_large])
    ranked.update(dict.fromkeys(_cover(tests, failed["submission"], ranked, times=1)))
    # A model's mistakes are those that the tests will meet.
    for kind in ("attempt", "mutant"):
        ranked.update(dict.fromkeys(_cover(tests, failed[kind], ranked, times=_TIMES_COVERED)))
    chosen = list(ranked)[:most]
    # What no known mistake asked for may still catch the mistakes of a model.
    for maker in _THOUGHT_OF:
        of_maker = []
        for number, made in enumerate(tests):
            if made.origin.kind.startswith(f"{maker}/"):
                of_maker.append(number)
        chosen += _fill(tests, chosen, of_maker, most=min(MOST_OF_MAKER, most - len(chosen)))
    chosen += _fill(tests, chosen, range(len(tests)), most=most - len(chosen))
    # Some generators make large ones only.
    large = [number for number in _mix_large(tests) if number not in chosen]
    wanted = min(most, max(MOST_OF_LARGE_ALONE, least))
    num_more = max(0, wanted - len(chosen))
    return sorted(chosen + large[:num_more])


def _fill(
    tests: Sequence[MadeTest],
    chosen: Sequence[int],
    candidates: Sequence[int],
    *,
    most: int,
) -> list[int]:
    """Return further tests of some: the first is always the one with most that is new.

    A trait counts for half with each chosen test that has it.
    """
    left = [number for number in candidates if number not in chosen]
    # Long ones are chosen by their kinds, and reading them would take long.
    left = [number for number in left if not tests[number].is_large]
    left.sort(key=lambda number: len(tests[number].test.input))
    looked_at = [*chosen, *left]
    pairs = [Pair(tests[number].test.input, tests[number].test.output) for number in looked_at]
    traits = dict(zip(looked_at, find_traits(pairs), strict=True))
    values = {trait: 1.0 for number in left for trait in traits[number]}
    for number in chosen:
        _halve(values, traits[number])
    added: list[int] = []
    while left and len(added) < most:
        number = max(left, key=lambda place: sum(values[trait] for trait in traits[place]))
        left.remove(number)
        added.append(number)
        _halve(values, traits[number])
    return added


def _halve(values: dict[Trait, float], traits: Collection[Trait]) -> None:
    """Halve the values of traits that one more chosen test has."""
    for trait in traits:
        if trait in values:
            values[trait] /= 2


def _cover(
    tests: Sequence[MadeTest],
    failed_by_program: Sequence[Collection[int]],
    chosen: Collection[int],
    *,
    times: int,
) -> list[int]:
    """Return further tests until every program fails so many, as far as it fails any.

    A greedy cover: the next test is always the one that catches most programs that are caught too
    seldom; of equal ones, the one that catches more in all, then the cheaper.
    """
    totals: Counter[int] = Counter()
    for failed in failed_by_program:
        totals.update(failed)
    added: list[int] = []
    while True:
        taken = {*chosen, *added}
        catches: Counter[int] = Counter()
        for failed in failed_by_program:
            if len(taken.intersection(failed)) < times:
                catches.update(set(failed) - taken)
        if not catches:
            return added
        ranks = []
        for number, num_caught in catches.items():
            cost = (tests[number].seconds, len(tests[number].test.input))
            ranks.append((-num_caught, -totals[number], cost, number))
        added.append(min(ranks)[-1])


def _mix_large(tests: Sequence[MadeTest]) -> list[int]:
    """Return the indices of the large tests, one of each kind in turn, longest first."""
    by_kind: dict[str, list[int]] = {}
    for number in _longest_first(tests):
        if tests[number].is_large:
            of_kind = by_kind.setdefault(tests[number].origin.kind, [])
            of_kind.append(number)
    return take_in_turn(by_kind.values())


def _longest_first(tests: Sequence[MadeTest]) -> list[int]:
    return sorted(range(len(tests)), key=lambda number: -len(tests[number].test.input))
