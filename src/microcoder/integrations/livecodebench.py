"""LiveCodeBench's functions, judged by us: its signatures, codes, metadata (docs/integrations.md).

Results cover a program's tests up to the first failure, as in LiveCodeBench: True, then -2 (wrong
answer; False for a function), -3 (time limit) or -4 (any other failure). A sandbox that failed is
an `EvaluatorFault`, never a code.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from microcoder.data.formats.livecodebench import MEMORY_LIMIT_MIB
from microcoder.integrations.shared import fault_of, shared_judge
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.types import Outcome, Problem, Program, TestResult, Verdict
from microcoder.lab.studies.accuracy import pass_at_k

KS = (1, 5, 10, 20, 40, 50, 75, 100, 125, 150, 200, 500, 1000)
"""LiveCodeBench's values of k in pass@k."""

_WRONG_ANSWER = -2
"""Code of a wrong output."""

_TIME_LIMIT = -3
"""Code of a test that took too long."""

_FAILURE = -4
"""Code of any other failure."""

_MESSAGES = {
    _WRONG_ANSWER: "Wrong Answer",
    _TIME_LIMIT: "Time Limit Exceeded",
    _FAILURE: "Runtime Error",
}
"""Code of a failed test -> LiveCodeBench's message."""

Result = tuple[list[bool | int], dict[str, Any]]
"""One code per test, and a program's metadata in LiveCodeBench's form."""


def run_test(
    sample: Mapping[str, Any],
    test: str | None = None,
    debug: bool = False,
    timeout: float = 6,
) -> Result:
    """Return the codes of a program's tests, and what LiveCodeBench calls metadata.

    Args:
        sample: `input_output`, the JSON of `inputs`, `outputs` and `fn_name`.
        test: the program; LiveCodeBench passes none if it has none.
        debug: ignored.
        timeout: CPU seconds per test.

    Raises:
        EvaluatorFault: the sandbox failed.
    """
    return _run([sample], [test or ""], timeout)[0]


def check_correctness(
    sample: Mapping[str, Any],
    generation: str,
    timeout: float,
    debug: bool = True,
) -> Result:
    """Return the same as `run_test`.

    LiveCodeBench's own function needs a process and a timeout around it; this needs neither.
    """
    return run_test(sample, generation, debug, timeout)


def codegen_metrics(
    samples_list: Sequence[Mapping[str, Any]],
    generations_list: Sequence[Sequence[str]],
    k_list: Sequence[int] = KS,
    num_process_evaluate: int = 16,
    timeout: float = 6,
    debug: bool = False,
) -> list[Any]:
    """Return pass@k, codes by problem and generation, and metadata as JSON.

    `num_process_evaluate` is ignored.

    Raises:
        EvaluatorFault: the sandbox failed on a program each time; no figure counts such a program
            as wrong.
    """
    indices: list[int] = []
    programs: list[str] = []
    for index, codes in enumerate(generations_list):
        indices += [index] * len(codes)
        programs += codes
    # One call for all problems, so that they are judged in parallel.
    judged = _run([samples_list[index] for index in indices], programs, timeout)
    results: defaultdict[int, list[list[bool | int]]] = defaultdict(list)
    metadata: list[list[str]] = [[] for _ in generations_list]
    for index, (codes, about) in zip(indices, judged, strict=True):
        results[index].append(codes)
        metadata[index].append(json.dumps(about))
    return [_estimate(results, k_list), results, metadata]


def _estimate(
    results: Mapping[int, Sequence[Sequence[bool | int]]], k_list: Sequence[int]
) -> dict[str, Any]:
    """Return pass@k over all problems, and in `detail` by problem."""
    metrics: dict[str, Any] = {}
    detail = {}
    # What some problem has too few samples for is left out.
    least = min(map(len, results.values()), default=0)
    for k in k_list:
        if k > least:
            continue
        by_problem = {}
        for index, of_problem in results.items():
            num_right = sum(map(_is_right, of_problem))
            by_problem[index] = pass_at_k(len(of_problem), num_right, k)
        detail[f"pass@{k}"] = by_problem
        metrics[f"pass@{k}"] = sum(by_problem.values()) / len(by_problem)
    metrics["detail"] = detail
    return metrics


def _is_right(codes: Sequence[bool | int]) -> bool:
    """Whether a program passed all its tests; codes of failures are negative, or False."""
    return all(code > 0 for code in codes)


def _run(
    samples: Sequence[Mapping[str, Any]],
    codes: Sequence[str],
    timeout: float,
) -> list[Result]:
    # One problem for all programs of a sample: its tests are read and kept once.
    by_sample = {id(sample): to_problem(sample, timeout) for sample in samples}
    # By identity: a sample is a dict, which has no hash, and large to compare.
    problems = [by_sample[id(sample)] for sample in samples]
    programs = [Program(code) for code in codes]
    verdicts = shared_judge().judge(programs, problems)
    return list(map(describe, verdicts, problems))


def to_problem(sample: Mapping[str, Any], timeout: float) -> Problem:
    """Return the problem of a sample, with LiveCodeBench's prelude.

    It has our limits for LiveCodeBench's problems.
    """
    # The harness wrote it.
    fields = cast("Mapping[str, Any]", parse_json(sample["input_output"]))
    tests = []
    for text, output in zip(fields["inputs"], fields["outputs"], strict=True):
        tests.append({"input": text, "output": output})
    return Problem.model_validate(
        {
            "id": "sample",
            "tests": tests,
            "fn_name": fields.get("fn_name"),
            "dialect": "livecodebench",
            "time_limit_seconds": timeout,
            "memory_limit_mib": MEMORY_LIMIT_MIB,
        }
    )


def describe(verdict: Verdict, problem: Problem) -> Result:
    """Return a verdict as LiveCodeBench's codes and metadata.

    Raises:
        EvaluatorFault: the sandbox failed.
    """
    if not verdict.is_scorable:
        raise fault_of(verdict)
    if verdict.is_accepted:
        seconds = sum(test.wall_seconds for test in verdict.tests)
        return [True] * verdict.tests_total, {"execution time": seconds}
    for number, test in enumerate(verdict.tests):
        if test.verdict is not Outcome.ACCEPTED:
            return _describe_failure(problem, number, test)
    # It failed before its first test, as a program that does not build.
    about = {"error_code": _FAILURE, "error_message": f"Error during testing: {verdict.detail}"}
    return [_FAILURE], about


def _describe_failure(problem: Problem, number: int, failed: TestResult) -> Result:
    """Return codes and metadata of a program whose test of that number is the first to fail."""
    code = _FAILURE
    if failed.verdict is Outcome.WRONG_ANSWER:
        code = _WRONG_ANSWER
    elif failed.verdict is Outcome.TIME_LIMIT:
        code = _TIME_LIMIT
    about = {
        "error_code": code,
        "error_message": _MESSAGES[code],
        "inputs": _shorten(problem.tests[number].input),
        "expected": _shorten(problem.tests[number].output),
    }
    codes: list[bool | int] = [True] * number
    if code == _WRONG_ANSWER:
        about["output"] = _shorten(failed.output or "")
        # LiveCodeBench gives functions a False in place of the code.
        codes.append(False if problem.fn_name else code)
    else:
        about["error"] = failed.detail
        codes.append(code)
    return codes, about


def _shorten(text: str, length: int = 300) -> str:
    # As LiveCodeBench cuts it.
    if len(text) <= length:
        return text
    return f"{text[: length // 2]}...(truncated) ...{text[-length // 2 :]}"
