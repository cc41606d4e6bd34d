"""Tasks of lm-evaluation-harness, judged by us; see docs/integrations.md.

tasks=$(python -m microcoder.integrations.lm_eval)
lm_eval --include_path $tasks --tasks microcoder_humaneval_plus ...
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from microcoder.data.formats.rows import to_problem
from microcoder.integrations.shared import score, shared_judge
from microcoder.judge.core.extract import extract_program, find_bare_program
from microcoder.judge.core.prompts import instruct
from microcoder.judge.core.types import Problem, Program

TASKS = Path(__file__).with_name("lm_eval_tasks")
"""The folder for `--include_path`."""


def ask(doc: Mapping[str, Any]) -> str:
    """Return the prompt of a row."""
    return instruct(to_problem(doc))


def grade(doc: Mapping[str, Any], results: Sequence[str | Sequence[str]]) -> dict[str, float]:
    """Return `pass_at_1`, `unscored_share` and `no_code_share` of the responses to a row.

    If no response is scored, `pass_at_1` is nan, which `nanmean` ignores.
    """
    problem = to_problem(doc)
    responses: list[str] = []
    for result in results:
        # With a filter of the harness it is a list.
        responses += result if isinstance(result, list | tuple) else [result]
    programs = [_take(text, problem) for text in responses]
    # One call, so that they are judged in parallel.
    verdicts = shared_judge().judge(programs, [problem] * len(programs))
    scores = [score(verdict, "all") for verdict in verdicts]
    known = [value for value in scores if value is not None]
    return {
        "pass_at_1": fmean(known) if known else math.nan,
        "unscored_share": 1 - len(known) / len(verdicts),
        "no_code_share": fmean(program.code is None for program in programs),
    }


def _take(text: str, problem: Problem) -> Program:
    """Return the program of a response.

    Its fences are missing where the task's prompt and stop words contain them.
    """
    # Plain code first: the harness cuts a response at its stop words, which may be fences.
    bare = find_bare_program(text, problem)
    if bare is None:
        return extract_program(text, language=problem.language)
    return Program(bare, problem.language, "given_as_code")


if __name__ == "__main__":
    print(TASKS)
