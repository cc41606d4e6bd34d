"""What an audit proposes to the maintainers of a set: a change of a row, with its evidence.

    audited rows -> faults with a remedy -> programs of some rows run test by test -> patches

A patch says what it rests on, and who decides where the evidence does not: a single reference that
fails may be wrong itself.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from microcoder.data.clean.samples import values_of
from microcoder.data.clean.sections import Example, split
from microcoder.data.clean.stage import RESTORE_POWERS
from microcoder.data.corpus.findings import find_in
from microcoder.data.formats.candidates import Candidate
from microcoder.data.pipeline.steps import Row
from microcoder.data.verify.plans import language_of
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_rows
from microcoder.judge.core.types import Outcome, Program, Record, TestCase, Verdict

PATCH = "patch.jsonl"
"""Name of the file of patches, a line each."""
_MOST_PROGRAMS = 8
"""Accepted programs of a row that are run test by test (our choice)."""
_SECONDS = 10.0
"""CPU seconds of each for a test, unless the source allows more."""
_MEMORY_MIB = 2048
_MOST_SHOWN = 400
"""Characters of a text in the evidence; what is longer is cut."""
_LOOSE = ("unordered", "program")
"""Checkers that accept other outputs than the expected one."""
_LEAST_TELLING = 5
"""Characters of an output that stands in a statement for what it is."""
_POWER = re.compile(r"(?<![\w.])(?P<base>-?\d+)\^(?P<exponent>-?\d+)")
"""A power with its sign, as cleaning writes it."""
_UNDECIDED = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.SANDBOX_FAULT)
"""Outcomes that say nothing about a test's answer."""

_PASSED = frozenset({"few_hidden_tests", "all_tests_shown", "contradicts_examples"})
"""Faults of verify that are found where accepted programs passed all tests."""

PatchKind = Literal[
    "test_no_reference_passes",
    "references_disagree",
    "statement_contradicts_test",
    "lost_power",
    "benchmark_copy",
    "duplicate",
]
Action = Literal[
    "replace_output",
    "mark_solution_wrong",
    "replace_text",
    "remove_row",
    "decide",
]
"""What is to be done; `decide`: the evidence does not say which side is wrong."""


_COPIES: Mapping[str, PatchKind] = {
    "contaminated": "benchmark_copy",
    "duplicate_of": "duplicate",
}
"""Kinds of patches for rows that are there twice, by the audit's finding."""
_ALIKE = (" by similarity", " by behaviour")
"""How a finding says that two rows are alike, and not the same."""


class Patch(Record):
    """A change of one row that an audit proposes."""

    id: str
    """The row, as in `findings.jsonl`."""
    source_row: str
    """Its place in the set."""
    kind: PatchKind
    evidence: dict[str, object]
    """What speaks for the change: inputs, outputs, which programs gave them, other rows."""
    change: dict[str, object]
    """`action`, and what it needs: a test's number with the output, a text with another one, a
    solution's number."""


def write_patches(
    folder: Path,
    rows: Sequence[Row],
    open_judge: Callable[[], Judge] | None,
) -> list[Patch]:
    """Write the patches of audited rows, a line each, and return them.

    Args:
        folder: gets `patch.jsonl`.
        rows: audited rows; those that never became a record have no patch.
        open_judge: opens a judge that runs a program on all tests; None: no program is run.
    """
    candidates = [row for row in rows if isinstance(row, Candidate)]
    patches: list[Patch] = []
    for candidate in candidates:
        patches += _find_static(candidate, has_run=open_judge is not None)
    failing = [candidate for candidate in candidates if _has_failing(candidate)]
    if failing and open_judge is not None:
        with open_judge() as judge:
            for candidate in failing:
                patches += _compare_programs(candidate, judge)
    patches.sort(key=lambda patch: (patch.id, patch.kind))
    write_rows(folder / PATCH, [patch.model_dump() for patch in patches])
    return patches


def _has_failing(candidate: Candidate) -> bool:
    """Whether accepted programs of a row fail its tests, as the audit found."""
    kinds = {fault.kind for fault in find_in(candidate)}
    return bool(kinds & {"reference_fails", "needs_checker"})


def _find_static(candidate: Candidate, *, has_run: bool) -> Iterator[Patch]:
    """Yield the patches that need no program to run.

    Args:
        candidate: an audited row.
        has_run: whether the audit ran its programs.
    """
    for fault in find_in(candidate):
        evidence: dict[str, object] = {"found": _cut(fault.detail)}
        if fault.kind in _COPIES:
            # Of what is only similar, or only answers alike, some is another problem: a cube's
            # surface for a cylinder's.
            is_same = not any(word in fault.detail for word in _ALIKE)
            action: Action = "remove_row" if is_same else "decide"
            yield _patch(candidate, _COPIES[fault.kind], evidence, action=action)
    yield from _find_lost_powers(candidate)
    yield from _find_contradictions(candidate, has_proof=has_run and _has_proof(candidate))


def _patch(
    candidate: Candidate,
    kind: PatchKind,
    evidence: dict[str, object],
    *,
    action: Action,
    **details: object,
) -> Patch:
    return Patch(
        id=candidate.id,
        source_row=candidate.source_row,
        kind=kind,
        evidence=evidence,
        change={"action": action, **details},
    )


def _cut(text: str) -> str:
    """Return a text as evidence shows it."""
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]} [... of {len(text)} characters]"


def _digest(text: str) -> str:
    """Return what names a whole input: a test's number is its place among the cleaned tests."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _find_lost_powers(candidate: Candidate) -> Iterator[Patch]:
    """Yield a patch for the numbers of a statement that were powers, such as 105 for 10^5."""
    for line in candidate.lineage:
        if line.step == RESTORE_POWERS and line.field == "statement":
            restored = sorted(_find_powers(candidate))
            # Where the same digits stay elsewhere, replacing all of them would spoil data.
            is_sure = not any(_stands_in(lost, candidate.statement) for lost, _ in restored)
            yield _patch(
                candidate,
                "lost_power",
                {"found": line.detail},
                action="replace_text" if is_sure else "decide",
                field="statement",
                replacements=restored,
            )
            return


def _stands_in(lost: str, text: str) -> bool:
    """Whether a number stands in a text as a whole word."""
    return re.search(rf"(?<![\w.^]){re.escape(lost)}(?![\w^])", text) is not None


def _find_powers(candidate: Candidate) -> set[tuple[str, str]]:
    """Return the powers of a cleaned statement whose digits stand in the one that was found."""
    powers = set()
    for found in _POWER.finditer(candidate.statement):
        lost = found["base"] + found["exponent"]
        if lost in candidate.statement_found:
            powers.add((lost, found[0]))
    return powers


class _Contradiction(NamedTuple):
    """A test whose input an example of the statement has, with another output."""

    number: int
    """Index of the test."""
    test: TestCase
    example: Example


def _list_contradictions(candidate: Candidate) -> list[_Contradiction]:
    """Return the tests that contradict an example; none where another test agrees with it."""
    if "samples_differ" not in candidate.flags or candidate.checker.type in _LOOSE:
        return []
    found = []
    for example in split(candidate.statement).examples:
        if not example.input or not example.output:
            continue
        alike = []
        for number, test in enumerate(candidate.tests):
            if values_of(test.input) == values_of(example.input):
                alike.append(_Contradiction(number, test, example))
        if not any(_agrees(item, candidate) for item in alike):
            found += alike
    return found


def _agrees(item: _Contradiction, candidate: Candidate) -> bool:
    """Whether a test has its example's output, as cleaned or as found.

    Cleaning may write `**a**` for `<b>a</b>`, which an output has.
    """
    if _are_alike(item.test.output, item.example.output):
        return True
    written = "".join(item.test.output.split())
    # A short one stands in any statement.
    is_telling = len(written) >= _LEAST_TELLING
    return is_telling and written in "".join(candidate.statement_found.split())


def _are_alike(first: str, second: str) -> bool:
    """Whether two outputs have the same values, numbers up to the digits that both have.

    Of the statement's, the second, only the first lines count: prose may follow.
    """
    num_lines = len(first.strip().split("\n"))
    second_lines = second.strip().split("\n")[:num_lines]
    first_values = values_of(first).split()
    second_values = values_of("\n".join(second_lines)).split()
    if len(first_values) != len(second_values):
        return False
    return all(map(_is_same_value, first_values, second_values))


def _is_same_value(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        difference = abs(float(first) - float(second))
    except ValueError:
        return False
    nums_decimals = [len(text.partition(".")[2]) for text in (first, second)]
    # Of whole numbers every digit counts.
    if max(nums_decimals) == 0:
        return False
    # 720.0 is 720.00000, and 1.16667 is 1.1666666666666667.
    fewest = min(nums_decimals) if difference else 1
    return difference <= 10.0**-fewest


def _has_proof(candidate: Candidate) -> bool:
    """Whether accepted programs passed the tests of a row, if programs ran."""
    for fault in find_in(candidate):
        if fault.stage == "verify" and fault.kind not in _PASSED:
            return False
    return any(solution.known == "accepted" for solution in candidate.solutions)


def _find_contradictions(candidate: Candidate, *, has_proof: bool) -> Iterator[Patch]:
    """Yield a patch for each test whose output differs from the statement's.

    Args:
        candidate: an audited row.
        has_proof: whether accepted programs are known to pass its tests.
    """
    for number, test, example in _list_contradictions(candidate):
        evidence: dict[str, object] = {
            "input": _cut(test.input),
            "input_sha256": _digest(test.input),
            "test_output": _cut(test.output),
            "statement_output": _cut(example.output),
            "references": "pass the test" if has_proof else "do not decide",
        }
        # Where the order is free, both are right.
        is_reordered = sorted(values_of(test.output)) == sorted(values_of(example.output))
        evidence["same_values_reordered"] = is_reordered
        if has_proof and not is_reordered:
            yield _patch(
                candidate,
                "statement_contradicts_test",
                evidence,
                action="replace_text",
                field="statement",
                replacements=[(example.output, test.output.rstrip("\n"))],
            )
        else:
            yield _patch(
                candidate,
                "statement_contradicts_test",
                evidence,
                action="decide",
                test=number,
            )


class _Answers(NamedTuple):
    """What accepted programs of a row make of one test."""

    passing: list[int]
    """Numbers of the solutions that pass it."""
    outputs: dict[int, str]
    """By the number of a solution that fails it: what it gave, or how it ended."""
    values: set[str]
    """Different values that failing programs gave; empty if one of them crashed.

    Where all crash, a file or import is missing here that the set's own tests have.
    """


def _compare_programs(candidate: Candidate, judge: Judge) -> Iterator[Patch]:
    """Yield a patch for each test that no accepted program passes, or on which they disagree."""
    # A program that is there twice confirms nothing: by its code, the number of the first.
    numbers_by_code: dict[Program, int] = {}
    for number, solution in enumerate(candidate.solutions):
        language = language_of(solution, candidate)
        if solution.known == "accepted" and language:
            numbers_by_code.setdefault(Program(solution.code.strip(), language), number)
    programs = list(numbers_by_code)[:_MOST_PROGRAMS]
    numbers = list(numbers_by_code.values())[:_MOST_PROGRAMS]
    verdicts = _judge_all(candidate, programs, judge)
    for place, test in enumerate(candidate.tests):
        answers = _answers_to(place, numbers, verdicts)
        if answers is not None and (answers.values or (answers.passing and answers.outputs)):
            yield _explain(candidate, place, test, answers)


def _judge_all(
    candidate: Candidate,
    programs: Sequence[Program],
    judge: Judge,
) -> list[Verdict]:
    """Return the programs' verdicts; none where tests and call do not go together."""
    seconds = max(_SECONDS, candidate.time_limit_seconds or 0.0)
    memory = max(_MEMORY_MIB, candidate.memory_limit_mib or 0)
    try:
        problems = []
        for program in programs:
            problem = candidate.to_trial(program.language, seconds=seconds, memory_mib=memory)
            problems.append(problem)
        return judge.judge(programs, problems)
    except (DataError, ValueError):
        return []


def _answers_to(
    place: int,
    numbers: Sequence[int],
    verdicts: Sequence[Verdict],
) -> _Answers | None:
    """Return what the programs make of a test; None if one of them was not judged by it."""
    answers = _Answers([], {}, set())
    has_crashed = False
    for number, verdict in zip(numbers, verdicts, strict=False):
        if place >= len(verdict.tests) or verdict.tests[place].verdict in _UNDECIDED:
            return None
        result = verdict.tests[place]
        if result.verdict is Outcome.ACCEPTED:
            answers.passing.append(number)
        elif result.verdict is Outcome.WRONG_ANSWER and result.output is not None:
            answers.outputs[number] = result.output
            answers.values.add(result.output.strip())
        else:
            answers.outputs[number] = f"{result.verdict.value}: {result.detail}"
            has_crashed = True
    if has_crashed:
        answers.values.clear()
    return answers


def _explain(
    candidate: Candidate,
    place: int,
    test: TestCase,
    answers: _Answers,
) -> Patch:
    """Return the patch for a test that some accepted program fails."""
    outputs = {str(number): _cut(output) for number, output in answers.outputs.items()}
    # A test that is a program has no input and no output: it is both.
    is_program = candidate.assertions is not None
    given = test.output if is_program else test.input
    evidence: dict[str, object] = {
        "input": _cut(given),
        "input_sha256": _digest(given),
        "expected": _cut(test.output),
        "passing_solutions": answers.passing,
        "failing_solutions": outputs,
    }
    shown = _shown_output(candidate, test)
    if shown:
        evidence["statement_output"] = _cut(shown)
    if answers.passing:
        # Most of the accepted programs are right.
        if len(answers.passing) > len(answers.outputs):
            return _patch(
                candidate,
                "references_disagree",
                evidence,
                action="mark_solution_wrong",
                solutions=sorted(answers.outputs),
            )
        return _patch(candidate, "references_disagree", evidence, action="decide", test=place)
    agreed = next(iter(answers.values)) if len(answers.values) == 1 else None
    is_confirmed = len(answers.outputs) > 1
    if agreed is not None and shown:
        is_confirmed = values_of(shown) == values_of(agreed)
    if agreed is not None and is_confirmed and not is_program:
        return _patch(
            candidate,
            "test_no_reference_passes",
            evidence,
            action="replace_output",
            test=place,
            output=agreed,
        )
    # One reference alone may be wrong itself; several that differ decide nothing.
    return _patch(candidate, "test_no_reference_passes", evidence, action="decide", test=place)


def _shown_output(candidate: Candidate, test: TestCase) -> str:
    """Return the output that an example of the statement gives for a test's input, if any does."""
    for example in split(candidate.statement).examples:
        if example.output and values_of(example.input) == values_of(test.input):
            return example.output
    return ""


def count_by_kind(patches: Iterable[Patch]) -> dict[tuple[str, str], int]:
    """Return how many patches there are of each kind and action."""
    counts: dict[tuple[str, str], int] = {}
    for patch in patches:
        key = (patch.kind, str(patch.change["action"]))
        counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items()))
