"""LiveCodeBench's functions, judged by us: its signatures, codes, metadata (docs/integrations.md).

Results cover a program's tests up to the first failure, as in LiveCodeBench: True, then -2 (wrong answer; False
for a function), -3 (time limit) or -4 (any other failure). A sandbox that failed is an `EvaluatorFault`, never a code.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.data.formats.livecodebench import MEMORY_LIMIT_MIB
from microcoder.integrations.shared import fault_of, shared_judge
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.lab.studies.accuracy import pass_at_k

KS = (1, 5, 10, 20, 40, 50, 75, 100, 125, 150, 200, 500, 1000)
_MESSAGES = {-2: "Wrong Answer", -3: "Time Limit Exceeded", -4: "Runtime Error"}
Result = tuple[list[bool | int], dict[str, Any]]
"""One code per test, and a program's metadata in LiveCodeBench's form."""


def run_test(
    sample: Mapping[str, Any], test: str | None = None, debug: bool = False, timeout: float = 6
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
    sample: Mapping[str, Any], generation: str, timeout: float, debug: bool = True
) -> Result:
    """Return what `run_test` returns, which needs no process or global timeout around it as LiveCodeBench's does."""
    return run_test(sample, generation, debug, timeout)


def codegen_metrics(
    samples_list: Sequence[Mapping[str, Any]],
    generations_list: Sequence[Sequence[str]],
    k_list: Sequence[int] = KS,
    num_process_evaluate: int = 16,
    timeout: float = 6,
    debug: bool = False,
) -> list[Any]:
    """Return pass@k, codes by problem and generation, and metadata as JSON; `num_process_evaluate` is ignored.

    Raises:
        EvaluatorFault: the sandbox failed on a program each time; no figure counts such a program as wrong.
    """
    pairs = [(index, code) for index, codes in enumerate(generations_list) for code in codes]
    found = _run([samples_list[index] for index, _ in pairs], [code for _, code in pairs], timeout)
    results: defaultdict[int, list[list[bool | int]]] = defaultdict(list)
    metadata: list[list[str]] = [[] for _ in generations_list]
    for (index, _), (codes, about) in zip(pairs, found, strict=True):
        results[index].append(codes)
        metadata[index].append(json.dumps(about))
    right = {
        index: sum(all(code > 0 for code in codes) for codes in tried)
        for index, tried in results.items()
    }
    least = min(map(len, results.values()), default=0)
    detail = {
        f"pass@{k}": {
            index: pass_at_k(len(tried), right[index], k) for index, tried in results.items()
        }
        for k in k_list
        if k <= least
    }
    metrics = {
        name: sum(by_problem.values()) / len(by_problem) for name, by_problem in detail.items()
    }
    return [{**metrics, "detail": detail}, results, metadata]


def _run(
    samples: Sequence[Mapping[str, Any]], codes: Sequence[str], timeout: float
) -> list[Result]:
    known = {id(sample): to_problem(sample, timeout) for sample in samples}
    problems = [known[id(sample)] for sample in samples]
    verdicts = shared_judge().judge([Program(code) for code in codes], problems)
    return [describe(verdict, problem) for verdict, problem in zip(verdicts, problems, strict=True)]


def to_problem(sample: Mapping[str, Any], timeout: float) -> Problem:
    """Return the problem of a sample, with LiveCodeBench's prelude and our limits for its problems."""
    given = parse_json(sample["input_output"])
    tests = [
        {"input": text, "output": output}
        for text, output in zip(given["inputs"], given["outputs"], strict=True)
    ]
    return Problem.model_validate(
        {
            "id": "sample",
            "tests": tests,
            "fn_name": given.get("fn_name"),
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
        return [True] * verdict.tests_total, {
            "execution time": sum(test.wall_seconds for test in verdict.tests)
        }
    number = next(
        (n for n, test in enumerate(verdict.tests) if test.verdict is not Outcome.ACCEPTED), None
    )
    if number is None:
        return [-4], {"error_code": -4, "error_message": f"Error during testing: {verdict.detail}"}
    failed = verdict.tests[number]
    code = {Outcome.WRONG_ANSWER: -2, Outcome.TIME_LIMIT: -3}.get(failed.verdict, -4)
    about = {
        "error_code": code,
        "error_message": _MESSAGES[code],
        "inputs": _shorten(problem.tests[number].input),
        "expected": _shorten(problem.tests[number].output),
    }
    about |= {"output": _shorten(failed.output or "")} if code == -2 else {"error": failed.detail}
    return [*[True] * number, False if code == -2 and problem.fn_name else code], about


def _shorten(text: str, length: int = 300) -> str:
    return (
        text
        if len(text) <= length
        else f"{text[: length // 2]}...(truncated) ...{text[-length // 2 :]}"
    )
