"""Clients that are written for SandboxFusion, unchanged, against `microcoder serve`."""

import asyncio
import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from microcoder.judge import Judge
from tests.judge.serve.conftest import Running, serving

ADD = "a, b = map(int, input().split())\nprint(a + b)"
CASES = {"inputs": ["1 2", "4 5"], "outputs": ["3", "9"]}
CALLS = {"inputs": ["1\n2"], "outputs": ["3"], "fn_name": "add"}
METHOD = "class Solution:\n    def add(self, a, b):\n        return a + b"


def _import(name: str, lacking: str) -> Any:
    return pytest.importorskip(name, reason=lacking, exc_type=ImportError)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Judge(workers=2, time_scale=1.0) as judge, serving(judge, grace_seconds=0) as server:
        yield server


def test_sandbox_fusions_own_client_runs_a_program(running: Running) -> None:
    client = _import("sandbox_fusion", "sandbox-fusion is not here; type: make test-integrations")
    request = client.RunCodeRequest(code=ADD, language="python", stdin="1 2")
    answer = client.run_code(request, endpoint=running.url)
    assert answer.status == client.RunStatus.Success
    assert answer.run_result.stdout == "3\n"


@pytest.mark.parametrize(("code", "expected"), [(ADD, True), ("print(3)", False)])
def test_sandbox_fusions_own_client_has_a_response_judged(
    running: Running, code: str, expected: bool
) -> None:
    client = _import("sandbox_fusion", "sandbox-fusion is not here; type: make test-integrations")
    tests = []
    for given, wanted in zip(CASES["inputs"], CASES["outputs"], strict=True):
        tests.append({"input": {"stdin": given}, "output": {"stdout": wanted}})
    config = client.TestConfig(
        dataset_type="CommonOJDataset",
        language="python",
        provided_data={"id": 1, "content": "Add.", "test": tests},
    )
    completion = f"```python\n{code}\n```"
    request = client.SubmitRequest(dataset="mine", id=1, completion=completion, config=config)
    assert client.submit(request, endpoint=running.url).accepted is expected


@pytest.mark.parametrize(
    ("code", "tests", "expected"),
    [
        (ADD, CASES, True),
        ("print(3)", CASES, False),
        ("1 / 0", CASES, False),
        (METHOD, CALLS, True),
    ],
)
def test_tinker_cookbook_grades_by_it(
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    tests: dict[str, Any],
    expected: bool,
) -> None:
    lacking = "tinker-cookbook is not here; type: make test-integrations"
    grading = _import("tinker_cookbook.recipes.code_rl.code_grading", lacking)
    sandbox = importlib.import_module("tinker_cookbook.sandbox")

    async def grade() -> bool:
        # Its client is kept for the process, but belongs to one event loop.
        client = sandbox.SandboxFusionClient(url=f"{running.url}/run_code")
        monkeypatch.setattr(grading, "_sandboxfusion_client", client)
        cases = grading.taco_to_lcb_format(tests)
        is_right, answer = await grading.sandbox_check_correctness(cases, code)
        await client.close()
        assert "error" not in answer, answer
        return is_right

    assert asyncio.run(grade()) is expected


@pytest.mark.parametrize(
    ("code", "tests", "expected"),
    [
        (ADD, CASES, [True, True]),
        ("print(3)", CASES, [True, False]),
        ("1 / 0", CASES, [-2, -2]),
        (METHOD, CALLS, [True]),
    ],
)
def test_verls_reward_judges_by_it(
    running: Running, code: str, tests: dict[str, Any], expected: list[object]
) -> None:
    lacking = "verl is not here; type: make test-verl"
    fusion = _import("verl.utils.reward_score.sandbox_fusion.utils", lacking)
    results, _ = fusion.check_correctness(f"{running.url}/run_code", tests, code, timeout=5)
    assert results == expected
