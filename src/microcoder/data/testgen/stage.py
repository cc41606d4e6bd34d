"""The generate stage: a problem with few hidden tests gets more, with answers of accepted programs.

package's own -> mutated from known ones -> a model's -> certified by validators -> answered by agreeing references
-> tried on known-wrong submissions -> chosen
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from microcoder.data.clean.samples import count_hidden
from microcoder.data.completions import Endpoint
from microcoder.data.formats.candidates import Candidate, Origin, Rejection
from microcoder.data.testgen.answers import (
    MOST_LARGE,
    MOST_TESTS,
    PACKAGE_INPUTS,
    Answering,
    GenerateSettings,
    Judges,
    MadeInput,
    MadeTest,
)
from microcoder.data.testgen.makers import (
    ask_for_inputs,
    certify,
    mutate_known,
    read_validators,
    run_kit,
    understand,
    widen,
    write_validators,
)
from microcoder.data.verify.plans import language_of
from microcoder.judge.core.files import take_in_turn
from microcoder.judge.core.types import Outcome, Program

STEP = "generate/1"
_SLOW = ("time_limit", "memory_limit", "partial")
_WRONG = ("wrong_answer", "runtime_error", "partial")
_GIVEN = Origin(kind="given")
_MOST_REFERENCES, _MOST_KNOWN_WRONG = 3, 12
"""Accepted programs that must agree on an answer, where there are so many; known-wrong, slow and partial submissions
that choose tests too (our choices)."""
_WRONG_SECONDS, _TIMES_SLOWEST = 1.0, 2.0
"""CPU seconds that a wrong submission gets for a test, or so many times those of the slowest reference."""
_SMALL_BYTES = 4096
"""On a longer input a program at a limit may just be slow; on a shorter one it is counted as wrong."""
_LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT)
_CANNOT_RUN = (Outcome.COMPILE_ERROR, Outcome.NO_CODE, Outcome.SANDBOX_FAULT)
_TRIAL_SECONDS = 20.0
_LARGE_ENOUGH_BYTES = 100_000
"""Size of an input from which on slow compiled programs are caught too."""


def generate(
    candidate: Candidate,
    judges: Callable[[], Judges],
    settings: GenerateSettings,
    endpoint: Endpoint | None = None,
) -> Candidate | Rejection:
    """Return a candidate with more tests where it has few; a rejection where it has none and none could be made.

    Args:
        candidate: from the filter stage.
        judges: starts or returns the judges; not called if there are enough tests.
        settings: settings of the stage.
        endpoint: the model to ask, where the settings name one.

    Raises:
        ConfigError: the endpoint gave no answer at all.
        EvaluatorFault: a judge is closed.
    """
    num_hidden = count_hidden(candidate)
    own = [
        recipe
        for recipe in candidate.kit.recipes
        if recipe.generator and not recipe.group.startswith("sample")
    ]
    # A package's generators make more tests than came with it where large ones were left out, as a rule.
    is_enough = num_hidden >= max(settings.min_hidden_tests, len(own))
    is_short = all(len(test.input) <= _LARGE_ENOUGH_BYTES for test in candidate.tests)
    lacks_large = is_short and knows_slow(candidate) and bool(candidate.kit.recipes)
    if settings.mode == "off" or (candidate.tests and is_enough and not lacks_large):
        return candidate
    references = find_references(candidate)
    obstacle = _find_obstacle(candidate, references)
    if obstacle:
        return _without_tests(candidate, obstacle)
    answering = Answering(judges(), candidate, references)
    references = answering.references = _passing(answering)[:_MOST_REFERENCES]
    if not references:
        return _without_tests(candidate, "no accepted program passes the known tests")
    is_large_alone = bool(candidate.tests) and is_enough
    inputs = _find_inputs(
        answering, settings, None if is_large_alone else endpoint, is_large_alone=is_large_alone
    )
    tests = answering.answer_all(inputs, num_slow=MOST_LARGE if knows_slow(candidate) else 0)
    said = ", ".join(f"{why} {count}" for why, count in sorted(answering.dropped.items()) if count)
    what = f"{len(inputs)} inputs made, {len(tests)} answered by {len(references)} references; lost: {said or 'none'}"
    if not tests:
        return _without_tests(candidate, what)
    # Large tests alone are there for the slow.
    return _choose(answering, settings, tests, what, is_tried=not is_large_alone)


def find_references(candidate: Candidate) -> list[Program]:
    """Return the accepted programs that run here, those in the language of the answers first."""
    found = _find_programs(candidate, ("accepted",))
    return sorted(found, key=lambda one: one.language != candidate.programming_language)


def _find_programs(candidate: Candidate, known: Collection[str]) -> list[Program]:
    """Return the submissions of these verdicts that run here."""
    named = (
        (one, language_of(one, candidate)) for one in candidate.solutions if one.known in known
    )
    return [Program(one.code, language) for one, language in named if language]


def _find_obstacle(candidate: Candidate, references: Sequence[Program]) -> str:
    """Return why no test can be made; empty if there is no obstacle."""
    if not references:
        return "no accepted program runs here"
    if any(flag in candidate.flags for flag in ("interactive", "file_io")):
        return "it talks back, or reads files"
    if "many_answers" in candidate.flags and candidate.checker.type not in ("program", "unordered"):
        return "many answers are right and no checker decides"
    return ""


def _passing(answering: Answering) -> Sequence[Program]:
    """Return the references, out of the first `2 * _MOST_REFERENCES`, that pass the known tests."""
    tests, tried = answering.candidate.tests, answering.references[: 2 * _MOST_REFERENCES]
    if not tests:
        return tried
    seconds = max(_TRIAL_SECONDS, answering.candidate.time_limit_seconds or 0.0)
    problems = [answering.problem(tests, seconds=seconds, language=one.language) for one in tried]
    verdicts = answering.judges.brief.judge(tried, problems)
    return [one for one, verdict in zip(tried, verdicts, strict=True) if verdict.is_accepted]


def _without_tests(candidate: Candidate, why: str) -> Candidate | Rejection:
    if not candidate.tests:
        return candidate.reject("generate", "no_tests", why)
    flags = tuple(sorted({*candidate.flags, "no_tests_made"}))
    return candidate.change("generate", STEP, why, flags=flags)


def knows_slow(candidate: Candidate) -> bool:
    """Whether there are slow or partial submissions, which only large inputs catch."""
    return any(one.known in _SLOW for one in candidate.solutions)


def _find_inputs(
    answering: Answering,
    settings: GenerateSettings,
    endpoint: Endpoint | None,
    *,
    is_large_alone: bool,
) -> list[MadeInput]:
    """Return new certified inputs, each once; `is_large_alone`: only large ones are missing.

    Uncertified ones are included if the settings allow it and there are two references.
    """
    judge, candidate, dropped = answering.judges.thorough, answering.candidate, answering.dropped
    known = [test.input for test in candidate.tests]
    validators = read_validators(judge, candidate.kit, known, dropped)
    if validators is None and endpoint is not None:
        validators = write_validators(endpoint, judge, candidate, dropped)
    if validators is None and not settings.keep_unchecked:
        dropped["no validator for inputs"] += 1
        return []
    if validators is None and len({one.code for one in answering.references}) < 2:
        dropped["no validator and only one reference"] += 1
        return []
    found: dict[str, MadeInput] = {}

    def add(made: Sequence[MadeInput]) -> None:
        fresh = {
            one.text.strip(): one for one in reversed(made) if one.text.strip() not in known_texts
        }
        fresh = [one for text, one in reversed(fresh.items()) if text not in found]
        accepted = (
            validators.accept(fresh, dropped)
            if validators
            else [certify(one, "unchecked") for one in fresh]
        )
        found.update((one.text.strip(), one) for one in accepted)

    known_texts = {text.strip() for text in known}
    # Where only large ones are missing, no more are made than may be kept.
    add(
        run_kit(
            judge, candidate.kit, dropped, most=MOST_TESTS if is_large_alone else PACKAGE_INPUTS
        )
    )
    if not is_large_alone and len(found) < settings.min_hidden_tests:
        understanding = understand(candidate, is_validated=validators is not None)
        if isinstance(understanding, str):
            dropped[f"not mutated: {understanding}"] += 1
        else:
            wider = widen(understanding, validators, candidate) if validators else understanding
            add(mutate_known(candidate, wider, dropped))
    if validators and len(found) < settings.min_hidden_tests and endpoint is not None:
        add(ask_for_inputs(endpoint, judge, candidate, dropped))
    return list(found.values())


def _choose(
    answering: Answering,
    settings: GenerateSettings,
    tests: Sequence[MadeTest],
    what: str,
    *,
    is_tried: bool,
) -> Candidate:
    """Return a candidate with the tests that catch most wrong submissions, as far as these are tried."""
    candidate, given = answering.candidate, answering.candidate.tests
    wrong = _find_programs(candidate, _WRONG)[:_MOST_KNOWN_WRONG] if is_tried else []
    # A large test is there for the slow: on it a wrong program costs its limit and is not counted as caught.
    small = [number for number, one in enumerate(tests) if not one.is_large] or list(
        range(len(tests))
    )
    seconds = max(_WRONG_SECONDS, _TIMES_SLOWEST * max(tests[number].seconds for number in small))
    pool = [*given, *(tests[number].test for number in small)]
    problems = [answering.problem(pool, seconds=seconds, language=one.language) for one in wrong]
    verdicts = answering.judges.brief.judge(wrong, problems)
    hacks: Counter[int] = Counter()
    for verdict in verdicts:
        place = len(verdict.tests) - 1 - len(given)
        if place >= 0 and not verdict.is_accepted and verdict.outcome not in _CANNOT_RUN:
            # Where a program meets a limit differs from machine to machine, and what is chosen must not.
            is_sure = (
                verdict.outcome not in _LIMITS
                or len(tests[small[place]].test.input) <= _SMALL_BYTES
            )
            hacks[small[place]] += is_sure
    room = max(MOST_TESTS - len(given), settings.min_hidden_tests)
    chosen = choose_tests(tests, hacks, most=room, num_large=MOST_LARGE)
    origins = [
        *(candidate.origins or [_GIVEN] * len(given)),
        *(tests[number].origin for number in chosen),
    ]
    groups = (
        [*candidate.groups, *(tests[number].group for number in chosen)] if candidate.groups else []
    )
    never = sum(verdict.is_accepted for verdict in verdicts)
    detail = f"{what}; {len(chosen)} kept; {never} of {len(wrong)} wrong submissions pass all tried tests"
    all_tests = (*given, *(tests[number].test for number in chosen))
    made = {"tests": all_tests, "origins": tuple(origins), "groups": tuple(groups)}
    return candidate.change("generate", STEP, detail, **made)


def choose_tests(
    tests: Sequence[MadeTest], hacks: Mapping[int, int], *, most: int, num_large: int
) -> list[int]:
    """Return the indices of the tests to keep: some large, those that fail wrong programs, then a mix.

    Args:
        hacks: by test, how many wrong submissions that pass the given tests fail it first; sorted by this per second
            of judging.
        num_large: how many large tests are kept whatever they catch.
    """
    large: dict[str, list[int]] = {}
    others: dict[str, dict[str, list[int]]] = {}
    # What no known mistake asked for may still catch the mistakes of a model: some of every kind, longest first, each
    # way of making inputs in its turn.
    for number in sorted(range(len(tests)), key=lambda n: (-len(tests[n].test.input), n)):
        kind = tests[number].origin.kind
        if tests[number].is_large:
            large.setdefault(kind, []).append(number)
        others.setdefault(kind.partition("/")[0], {}).setdefault(kind, []).append(number)
    best = sorted(
        +Counter(hacks), key=lambda n: (-hacks[n] / tests[n].seconds, len(tests[n].test.input), n)
    )
    spread = take_in_turn([take_in_turn(kinds.values()) for kinds in others.values()])
    ranked = dict.fromkeys([*take_in_turn(large.values())[:num_large], *best, *spread])
    return sorted(list(ranked)[:most])
