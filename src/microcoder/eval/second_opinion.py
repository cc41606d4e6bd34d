"""Another judge's verdicts beside ours, and who is right where they part.

Of each answer on which the two differ a plain run says more: the program gets the tests' inputs and
nothing judges it, so that what it printed can be held against what is expected, by eye too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from microcoder.eval.report import EvaluationFolder, Key, Sample
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program
from microcoder.judge.run.executions import Execution, Invocation

LONGEST_SHOWN = 60
"""Characters of an output that are shown."""
NEAR = 1e-3
"""How far two numbers may be apart that may be one answer."""
PASSES = ("accepted", "passed", "pass", "correct", "right", "true", "ac", "ok", "success")
"""Words of other judges for an accepted program."""
FAILURES = (
    "rejected",
    "failed",
    "fail",
    "incorrect",
    "wrong",
    "false",
    "error",
    "failure",
    "no_code",
    "timeout",
    "wa",
    "tle",
    "mle",
    "ole",
    "re",
    "rte",
    "ce",
)
"""Words of theirs for a refused one, besides those that end in `_error`, `_limit` and the like."""
NO_VERDICT = ("", "none", "null", "nan", "sandbox_fault", "unscored")
"""What stands where they gave no verdict."""

OURS = "ours"
"""A plain run agrees with our verdict."""
THEIRS = "theirs"
"""A plain run agrees with the other judge's."""
OPEN = "open"
"""A plain run does not tell: the output is another text that may be the same answer."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An answer that one judge accepts and the other does not."""

    problem_id: str
    sample_index: int
    is_ours_accepted: bool
    verdict: str
    """Our outcome, with its detail."""
    right: str
    """`ours`, `theirs` or `open`."""
    why: str
    """What a plain run of the program showed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two judges on the same answers."""

    counts: Mapping[tuple[bool, bool], int]
    """(whether ours accepts, whether theirs does) -> answers."""
    num_unscored: int
    """Answers on which one of the two gave no verdict."""
    differences: tuple[Difference, ...]

    def describe(self) -> str:
        """Return it as Markdown."""
        both = self.counts
        total = sum(both.values())
        agreed = both[True, True] + both[False, False]
        lines = [
            f"the two judges agree on {agreed} of {total} answers"
            + (
                f"; {self.num_unscored} have no verdict of one of them" if self.num_unscored else ""
            ),
            "",
            "| | theirs accepts | theirs refuses |",
            "| --- | --- | --- |",
            f"| ours accepts | {both[True, True]} | {both[True, False]} |",
            f"| ours refuses | {both[False, True]} | {both[False, False]} |",
        ]
        if self.differences:
            lines += [
                "",
                "| answer | ours | by a plain run right | why |",
                "| --- | --- | --- | --- |",
            ]
        for one in self.differences:
            name = f"{one.problem_id} #{one.sample_index}"
            cells = (name, one.verdict, one.right, one.why)
            lines.append(f"| {' | '.join(map(_escape, cells))} |")
        return "\n".join(lines)


def read_opinion(value: object) -> bool | None:
    """Return whether another judge accepted a program; None if it gave no verdict.

    Read are true and false, rewards (accepted is what has 1 or more), and words.

    Raises:
        DataError: a word that is none of them.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return None if math.isnan(value) else value >= 1
    if isinstance(value, list):
        # A result a test, as LiveCodeBench's checker has them.
        opinions = [read_opinion(item) for item in value]
        return None if None in opinions or not opinions else all(opinions)
    word = "_".join(str(value).lower().replace("-", " ").split())
    if word in NO_VERDICT:
        return None
    try:
        return float(word) >= 1
    except ValueError:
        pass
    if word in PASSES:
        return True
    if word in FAILURES or word.endswith(("_error", "_limit", "_answer", "_exceeded", "_out")):
        return False
    raise DataError(
        f"a verdict {str(value)[:40]!r} of the other judge is unknown; "
        "use true, false, a reward, accepted or rejected"
    )


def compare(
    folder: EvaluationFolder,
    problems: Sequence[Problem],
    opinions: Mapping[Key, bool | None],
    judge: Judge,
) -> Comparison:
    """Return our verdicts of an evaluation beside another judge's.

    Args:
        folder: of the evaluation.
        problems: with their tests.
        opinions: problem and sample -> whether the other judge accepted it.
        judge: runs the programs on which the two part.
    """
    by_id = {problem.id: problem for problem in problems}
    samples = folder.read_samples()
    counts = dict.fromkeys(((True, True), (True, False), (False, True), (False, False)), 0)
    num_unscored = 0
    differences = []
    for key, row in sorted(folder.read_verdicts().items()):
        theirs = opinions.get(key)
        if theirs is None or row["verdict"] == Outcome.SANDBOX_FAULT:
            num_unscored += 1
            continue
        ours = row["verdict"] == Outcome.ACCEPTED
        counts[ours, theirs] += 1
        if ours is not theirs:
            right, why = ask_plainly(judge, samples[key], by_id[key[0]], is_ours_accepted=ours)
            detail = next((test["detail"] for test in row["tests"] if test["detail"]), "")
            verdict = f"{row['verdict']} {detail}".strip()
            differences.append(Difference(*key, ours, verdict, right, why))
    return Comparison(counts, num_unscored, tuple(differences))


def ask_plainly(
    judge: Judge, sample: Sample, problem: Problem, *, is_ours_accepted: bool
) -> tuple[str, str]:
    """Return which of two judges a plain run of a program agrees with, and what it showed."""
    if sample.program is None:
        return OPEN, "there is no program in the answer: whether one is, the text decides"
    if problem.fn_name is not None or problem.assertions is not None:
        return OPEN, "a function is called: a plain run of the program shows nothing"
    if problem.interactor is not None:
        return OPEN, "an interactor decides: a plain run of the program has nothing to talk with"
    if problem.checker.type != "default":
        return OPEN, f"a checker decides ({problem.checker.type}): other text may be right"
    for number, test in enumerate(problem.tests, 1):
        invocation = Invocation(
            Program(sample.program, problem.language),
            test.input.encode("utf-8", "surrogatepass"),
            cpu_seconds=problem.time_limit_seconds,
            memory_limit_mib=problem.memory_limit_mib,
        )
        try:
            execution = judge.run(invocation)
        except (DataError, EvaluatorFault) as error:
            return OPEN, f"test {number}: it could not be run: {error}"
        finding = _find_difference(execution, test.output)
        if finding:
            right, words = finding
            if right == "refused":
                right = THEIRS if is_ours_accepted else OURS
            return right, f"test {number}: {words}"
    right = OURS if is_ours_accepted else THEIRS
    return right, "every output is the expected text"


def _find_difference(execution: Execution, expected: str) -> tuple[str, str] | None:
    """Return what a run says against a program, and in words; None if nothing does."""
    if not execution.is_conclusive:
        return OPEN, f"it could not be run: {execution.detail}"
    if execution.failure is not None:
        return "refused", f"{execution.failure.value} {execution.detail}".strip()
    printed = execution.stdout.decode("utf-8", "replace")
    if printed.split() == expected.split():
        return None
    shown = f"printed {_shorten(printed)}, expected {_shorten(expected)}"
    if _may_be_same(printed, expected):
        return OPEN, shown
    return "refused", shown


def _may_be_same(printed: str, expected: str) -> bool:
    """Whether two outputs may spell one answer: in another order or case, or with other digits."""
    words = printed.casefold().split()
    wanted = expected.casefold().split()
    if sorted(words) == sorted(wanted):
        return True
    if len(words) != len(wanted):
        return False
    return all(map(_is_near, words, wanted))


def _is_near(word: str, wanted: str) -> bool:
    if word == wanted:
        return True
    try:
        return math.isclose(float(word), float(wanted), rel_tol=NEAR, abs_tol=NEAR)
    except ValueError:
        return False


def _shorten(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def index_opinions(
    answers: Sequence[Mapping[str, object]], opinions: Sequence[object]
) -> dict[Key, bool | None]:
    """Return another judge's verdicts by problem and sample, in the order of an answer file.

    Args:
        answers: rows of an answer file.
        opinions: of each row a verdict, or for several answers a list of as many.
    """
    indexed: dict[Key, bool | None] = {}
    numbers: dict[str, int] = {}
    for answer, opinion in zip(answers, opinions, strict=True):
        name = str(answer["problem_id"])
        for one in _spread(answer.get("response", answer.get("code")), opinion):
            number = numbers.get(name, 0)
            numbers[name] = number + 1
            indexed[name, number] = read_opinion(one)
    return indexed


def _spread(response: object, opinion: object) -> Iterator[object]:
    """Yield the verdict of each answer of a row."""
    is_several = isinstance(response, list) and not any(
        isinstance(one, Mapping) for one in response
    )
    if not isinstance(response, list) or not is_several:
        yield opinion
        return
    if not isinstance(opinion, list) or len(opinion) != len(response):
        raise DataError(
            f"a row has {len(response)} answers, and not as many verdicts of the other judge: "
            f"{str(opinion)[:60]}; write a list of as many"
        )
    yield from opinion
