"""Reward functions of others are called as their own frameworks call them."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from microcoder.lab.yardstick.contained.judges import command
from microcoder.lab.yardstick.contained.rewards import (
    CALL,
    RIGHT,
    RIGHT_CALL,
    SUM,
    WRONG,
    WRONG_CALL,
    fit,
    read_score,
)

Tests = Sequence[tuple[str, str]]


def solves(code: str, tests: Tests) -> bool:
    """Judge by a bare Python: what the rewards below have in common."""
    for given, expected in tests:
        done = subprocess.run(
            [sys.executable, "-I", "-c", code],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout.strip() != expected.strip():
            return False
    return True


def find_code(response: str) -> str:
    return re.findall(r"```python\n(.*?)```", response, re.DOTALL)[-1]


def pair(tests: dict[str, list[str]]) -> Tests:
    return list(zip(tests["inputs"], tests["outputs"], strict=True))


def trl_with_messages(
    prompts: list[Any], completions: list[Any], verification_info: list[Any], **columns: Any
) -> list[float]:
    scores = []
    for completion, info in zip(completions, verification_info, strict=True):
        tests = [(test["input"], test["output"]) for test in info["test_cases"]]
        scores.append(float(solves(find_code(completion[0]["content"]), tests)))
    return scores


def trl_with_texts(completions: list[str], ground_truth: list[str]) -> list[float]:
    tests = pair(json.loads(ground_truth[0]))
    return [float(solves(find_code(completions[0]), tests))]


def verl_that_knows_sources(
    data_source: str, solution_str: str, ground_truth: str, extra_info: object = None
) -> dict[str, float]:
    if data_source not in ("apps", "taco"):
        raise NotImplementedError(data_source)
    return {"score": float(solves(find_code(solution_str), pair(json.loads(ground_truth))))}


async def verifiers_function(completion: list[Any], answer: str, **others: Any) -> float:
    return float(solves(find_code(completion[-1]["content"]), pair(json.loads(answer))))


def with_messages(messages: list[Any], ground_truth: list[Any], **others: Any) -> SimpleNamespace:
    tests = [(test["input"], test["expected_output"]) for test in ground_truth]
    return SimpleNamespace(score=float(solves(find_code(messages[-1]["content"]), tests)))


def livecodebench(sample: dict[str, str], generation: str, timeout: int) -> list[int]:
    tests = pair(json.loads(sample["input_output"]))
    return [1 if solves(generation, [test]) else -2 for test in tests]


def plain(code: str, tests: Tests) -> bool:
    return solves(code, tests)


def prime(completion: str, test_cases: dict[str, list[str]]) -> tuple[float, str]:
    return 0.5 * solves(find_code(completion), pair(test_cases)), "half is the most it gives"


def pair_all(tests: Sequence[dict[str, Any]]) -> Tests:
    pairs = []
    for test in tests:
        pairs.append((test["input"], test["output"]))
    return pairs


def with_the_program_before_its_score(
    model_response: str, tests: list[dict[str, Any]]
) -> tuple[str, float]:
    code = find_code(model_response)
    return code, float(solves(code, pair_all(tests)))


def livecodebench_with_a_list(
    sample: list[dict[str, str]], generation: str, timeout: int
) -> tuple[bool, dict[str, int]]:
    return solves(generation, pair_all(sample)), {"total": len(sample)}


def that_passes_on_all(messages: list[Any], ground_truth: list[Any], **others: Any) -> float:
    def run(code: str, test_cases: list[Any], **options: Any) -> float:
        return float(solves(code, pair_all(test_cases)))

    return run(find_code(messages[-1]["content"]), test_cases=ground_truth, **others)


class Rubric:
    """verifiers' form: the reward is left in the state."""

    async def score_rollout(self, state: dict[str, Any]) -> None:
        code = find_code(state["completion"][-1]["content"])
        state["reward"] = float(solves(code, pair(json.loads(state["answer"]))))


class OldRubric:
    """verifiers' form before: what was said comes by name, and the reward is returned."""

    async def score_rollout(
        self, prompt: object, completion: list[Any], answer: str, state: object, **others: object
    ) -> SimpleNamespace:
        code = find_code(completion[-1]["content"])
        return SimpleNamespace(reward=float(solves(code, pair(json.loads(answer)))), metrics={})


def make_rubric() -> Rubric:
    return Rubric()


def ends_well(program: str) -> bool:
    return solves(f"{program}\nprint('done')", [("", "done")])


def human_eval(problem: dict[str, str], completion: str, timeout: float) -> dict[str, object]:
    program = f"{problem['prompt']}{completion}\n{problem['test']}\ncheck({problem['entry_point']})"
    return {"task_id": problem["task_id"], "passed": ends_well(program)}


def by_asserts(program: str, tests: list[str], max_execution_time: float = 1.0) -> list[int]:
    results = []
    for test in tests:
        results.append(int(ends_well(f"{program}\n{test}")))
    return results


def blind(code: str, tests: Tests) -> bool:
    return True


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (trl_with_messages, "as TRL does: messages"),
        (trl_with_texts, "as TRL does: responses, tests as JSON of inputs and outputs"),
        (verl_that_knows_sources, "data_source taco"),
        (verifiers_function, "as verifiers does: messages"),
        (with_messages, "as eval-protocol does: messages, tests as a list"),
        (livecodebench, "as LiveCodeBench does"),
        (plain, "a plain function does: code, tests as pairs"),
        (prime, "responses, tests as a dictionary of inputs and outputs"),
        (with_the_program_before_its_score, "responses, tests as a list of tests"),
        (livecodebench_with_a_list, "as LiveCodeBench does, tests as a list"),
        (that_passes_on_all, "tests as a list of tests, named arguments alone"),
        (Rubric(), "as a rubric of verifiers does: messages"),
        (OldRubric(), "as a rubric of verifiers does: messages"),
        (make_rubric, "as a rubric of verifiers does: messages"),
    ],
)
def test_a_reward_function_is_called_by_its_own_signature(
    function: Callable[..., Any], said: str
) -> None:
    reward = fit(function)
    assert said in reward.about
    assert reward({**SUM, "code": RIGHT}) is True
    assert reward({**SUM, "code": WRONG}) is False


@pytest.mark.parametrize(
    ("function", "said"), [(human_eval, "as HumanEval does"), (by_asserts, "tests as assertions")]
)
def test_who_judges_calls_alone_is_asked_about_no_programs(
    function: Callable[..., Any], said: str
) -> None:
    reward = fit(function)
    assert said in reward.about
    assert reward.cannot == ("stdin",)
    assert reward({**CALL, "code": RIGHT_CALL}) is True
    assert reward({**CALL, "code": WRONG_CALL}) is False
    method = "class Solution:\n    def add(self, a, b):\n        return a + b\n"
    assert reward({**CALL, "code": method}) is True


def test_who_judges_no_functions_is_asked_about_none() -> None:
    assert fit(plain).cannot == ("function",)


def test_what_tells_no_right_program_from_a_wrong_one_is_refused() -> None:
    with pytest.raises(TypeError, match=r"to a right program, and 1\.0 to a wrong one"):
        fit(blind)


@pytest.mark.parametrize(
    ("returned", "score"),
    [
        (True, 1.0),
        ([0.5], 0.5),
        ([True, False], 0.0),
        (([1, 1], {}), 1.0),
        ((1, {"why": ""}), 1.0),
        ({"score": 0, "acc": True}, 0.0),
        ([{"reward": 1.0}], 1.0),
        (None, None),
        (math.nan, None),
        ([None], None),
        ("an error", None),
        ([], None),
        ({}, None),
    ],
)
def test_a_score_is_read_from_what_frameworks_return(returned: object, score: float | None) -> None:
    assert read_score(returned) == score


def test_a_command_is_asked_a_line_a_case(tmp_path: Path) -> None:
    script = tmp_path / "judge.py"
    script.write_text(
        "import json, subprocess, sys\n"
        "for line in sys.stdin:\n"
        "    case = json.loads(line)\n"
        "    run = [sys.executable, '-I', '-c', case['code']]\n"
        "    pairs = zip(case['inputs'], case['outputs'])\n"
        "    said = [subprocess.run(run, input=i, capture_output=True, text=True).stdout == o\n"
        "            for i, o in pairs]\n"
        "    print(json.dumps(all(said)), flush=True)\n"
    )
    reward, _ = command(f"{sys.executable} {script}")
    assert reward({**SUM, "code": RIGHT}) is True
    assert reward({**SUM, "code": WRONG}) is False


def test_a_command_that_ends_is_refused() -> None:
    with pytest.raises(OSError, match="the command ended with 0: true"):
        command("true")


def test_a_command_that_says_yes_to_everything_is_refused() -> None:
    with pytest.raises(TypeError, match="True of a right program, and True of a wrong one"):
        command("yes true")
