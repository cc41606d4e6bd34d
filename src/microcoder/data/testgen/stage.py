"""The generate stage: a problem with few hidden tests gets more.

package's own -> mutated, changed, tiny, largest -> a model's -> certified by validators
-> answered by agreeing references -> tried on wrong submissions and mutants -> chosen
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from microcoder.data.clean.shown import count_hidden
from microcoder.data.completions import Endpoint
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.testgen.answers import Answering, Judges
from microcoder.data.testgen.choice import STEP, add_chosen
from microcoder.data.testgen.differences import Settled, settle, vote
from microcoder.data.testgen.made import MadeInput, MadeTest
from microcoder.data.testgen.programs import (
    find_passing_references,
    find_references,
    knows_slow,
    read_programs,
)
from microcoder.data.testgen.search import InputSearch
from microcoder.data.testgen.settings import MOST_LARGE_FOR_SLOW, ROUNDS, GenerateSettings
from microcoder.data.testgen.trials import Trial, WrongProgram, find_wrong, try_tests
from microcoder.judge.core.types import Program

_LARGE_ENOUGH_BYTES = 100_000
"""Size of an input from which on slow compiled programs are caught too."""


def generate(
    candidate: Candidate,
    judges: Callable[[], Judges],
    settings: GenerateSettings,
    endpoint: Endpoint | None = None,
    responses: Sequence[str] = (),
) -> Candidate | Rejection:
    """Return a candidate with more tests if it has few.

    Return a rejection if it has none and none could be made.

    Args:
        candidate: from the filter stage.
        judges: starts or returns the judges; not called if there are enough tests.
        settings: settings of the stage.
        endpoint: the model to ask, where the settings name one.
        responses: a model's answers to it; tests are chosen that catch the wrong ones.

    Raises:
        ConfigError: the endpoint gave no answer at all.
        EvaluatorFault: a judge is closed.
    """
    # Nothing is started for a problem that has enough tests.
    has_tests = bool(candidate.tests) and _has_enough(candidate, settings)
    is_complete = has_tests and not _lacks_large(candidate)
    if settings.mode == "off" or is_complete:
        return candidate
    references = find_references(candidate)
    obstacle = _find_obstacle(candidate, references)
    if obstacle:
        return _without_tests(candidate, obstacle)
    answering = Answering(judges(), candidate, references)
    answering.references = find_passing_references(answering)
    if not answering.references:
        return _without_tests(candidate, "no accepted program passes the known tests")
    # A problem with tests enough came here for want of large ones.
    only_large = has_tests
    search = InputSearch(answering, settings, endpoint, only_large=only_large)
    inputs = search.find()
    settled = _answer(answering, inputs)
    if isinstance(settled, Rejection):
        return settled
    answering, tests = settled
    if not tests:
        return _without_tests(answering.candidate, _describe_made(answering, search, tests))
    trials: list[Trial] = []
    # Large tests alone are there for the slow.
    if not only_large:
        tests += _answer_between(answering, search, tests)
        wrong = find_wrong(answering, read_programs(candidate, responses))
        trials = _try_all(answering, search, tests, wrong)
    detail = _describe_made(answering, search, tests)
    return add_chosen(answering, settings, tests, trials, detail)


def _answer(answering: Answering, inputs: Sequence[MadeInput]) -> Settled | Rejection:
    """Return tests of the inputs, by what the accepted programs say of the comparison."""
    # Long runs are only paid for where a slow program is known to be caught by them.
    num_slow = MOST_LARGE_FOR_SLOW if knows_slow(answering.candidate) else 0
    tests = answering.answer_all(inputs, num_slow=num_slow)
    settled = settle(answering)
    if isinstance(settled, Rejection):
        return settled
    if settled is not answering.candidate:
        # By the comparison that they have shown, the same inputs have answers.
        again = Answering(answering.judges, settled, answering.references)
        return Settled(again, again.answer_all(inputs, num_slow=num_slow))
    voted = vote(answering, inputs)
    if voted is None:
        return Settled(answering, tests)
    return Settled(voted.answering, tests + voted.tests)


def _answer_between(
    answering: Answering,
    search: InputSearch,
    tests: Sequence[MadeTest],
) -> list[MadeTest]:
    """Return tests where the answer changes: pairs of inputs with little between them."""
    ways = search.find_between(tests)
    answered = answering.answer_all([made for way in ways for made in way], num_slow=0)
    by_input = {made.test.input: made for made in answered}
    kept: dict[str, MadeTest] = {}
    for way in ways:
        on_way = [by_input[made.text] for made in way if made.text in by_input]
        for before, after in pairwise(on_way):
            if before.test.output != after.test.output:
                kept[before.test.input] = before
                kept[after.test.input] = after
    # The lineage says what became of every input.
    answering.dropped["no other answer next to it"] += len(by_input) - len(kept)
    return list(kept.values())


def _describe_made(
    answering: Answering,
    search: InputSearch,
    tests: Sequence[MadeTest],
) -> str:
    """Return how many inputs were made and answered, and what was lost."""
    num_references = len(answering.references)
    made = f"{search.num_found} inputs made, {len(tests)} answered by {num_references} references"
    return f"{made}; lost: {_describe_dropped(answering.dropped)}"


def _try_all(
    answering: Answering,
    search: InputSearch,
    tests: list[MadeTest],
    wrong: Sequence[WrongProgram],
) -> list[Trial]:
    """Return what wrong programs fail of the made tests; of mutants, those that met no limit.

    While some fail none, more inputs are made of the known and made ones. Their tests are added to
    `tests`.
    """
    trials = try_tests(answering, wrong, tests)
    for number in range(1, ROUNDS + 1):
        trials = [trial for trial in trials if not trial.is_late]
        survivors = [trial for trial in trials if not trial.failed]
        # Most attempts that survive are right.
        if all(trial.wrong.kind == "attempt" for trial in survivors):
            break
        more = answering.answer_all(search.find_more(tests, number), num_slow=0)
        if not more:
            break
        tried = try_tests(answering, [trial.wrong for trial in survivors], more)
        for trial, repeated in zip(survivors, tried, strict=True):
            trial.failed = frozenset(len(tests) + place for place in repeated.failed)
            trial.is_late = repeated.is_late
        tests += more
    return [trial for trial in trials if not trial.is_late]


def _has_enough(candidate: Candidate, settings: GenerateSettings) -> bool:
    """Whether a candidate has as many hidden tests as it may get."""
    num_generated = 0
    for recipe in candidate.kit.recipes:
        if recipe.generator and not recipe.group.startswith("sample"):
            num_generated += 1
    # A package's generators make more tests than came with it where large ones were left out, as a
    # rule.
    return count_hidden(candidate) >= max(settings.min_hidden_tests, num_generated)


def _lacks_large(candidate: Candidate) -> bool:
    """Whether large tests are missing that a package can make, and that slow submissions need."""
    if not candidate.kit.recipes or not knows_slow(candidate):
        return False
    return all(len(test.input) <= _LARGE_ENOUGH_BYTES for test in candidate.tests)


def _find_obstacle(candidate: Candidate, references: Sequence[Program]) -> str:
    """Return why no test can be made; empty if there is no obstacle."""
    if not references:
        return "no accepted program runs here"
    is_interactive = candidate.interactor is not None or "interactive" in candidate.flags
    if is_interactive or "file_io" in candidate.flags:
        return "it talks back, or reads files"
    has_checker = candidate.checker.type in ("program", "unordered")
    if "many_answers" in candidate.flags and not has_checker:
        return "many answers are right and no checker decides"
    return ""


def _without_tests(candidate: Candidate, why: str) -> Candidate | Rejection:
    """Return a candidate that gets no tests, flagged; a rejection if it has none at all."""
    if not candidate.tests:
        return candidate.reject("generate", "no_tests", why)
    flags = tuple(sorted({*candidate.flags, "no_tests_made"}))
    return candidate.change("generate", STEP, why, flags=flags)


def _describe_dropped(dropped: Counter[str]) -> str:
    """Return how many inputs were lost for each reason."""
    counts = [f"{reason} {count}" for reason, count in sorted(dropped.items()) if count]
    return ", ".join(counts) or "none"
