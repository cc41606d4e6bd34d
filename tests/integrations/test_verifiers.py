"""The taskset against verifiers itself: `vf-validate`, `vf-eval`, workers, and what scoring records."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from completions_server import in_the_form_asked, serve
from pairs import AMOUNTS, FAULTY, RIGHT, Pair, judged

from microcoder import ConfigError
from microcoder.judge.core.types import Problem

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not here; type: make test-integrations")

from microcoder.integrations.verifiers import CodeConfig, CodeData, CodeTask  # noqa: E402
from microcoder_code import CodeTaskset  # noqa: E402

TESTS = [{"input": "1 2", "output": "3"}, {"input": "5 6", "output": "11"}]
STATEMENT = "Print the sum of two integers."
SUM, WRONG, SILENT = (
    Problem.model_validate({"id": name, "statement": STATEMENT, "tests": TESTS, "reference": reference})
    for name, reference in (("sum", "print(sum(map(int, input().split())))"), ("wrong", "print(3)"), ("silent", None))
)
BROKEN = FAULTY.model_copy(update={"statement": STATEMENT, "reference": SUM.reference})


def make_task(problem: Problem) -> Any:
    """Return a task as verifiers' workers rebuild it from what comes over the wire."""
    data = CodeData(id=problem.id, prompt="Solve it.", problem=problem).model_dump(mode="json", exclude_none=True)
    return CodeTask(CodeData.model_validate(data))


async def score(task: Any, response: str) -> Any:
    """Return the trace of a response that was scored."""
    trace = vf.Trace(
        task=vf.TraceTask(type="CodeTask", data=task.data, key=task.key, hash=task.hash),
        agent=vf.AgentInfo(config=vf.AgentConfig(), name="agent"),
        root_reply=response,
    )
    await task.score(trace)
    return trace


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_rewards_are_the_judges_verdicts(pairs: list[Pair]) -> None:
    async def score_all() -> list[Any]:
        return await asyncio.gather(*(score(make_task(pair.problem), pair.response) for pair in pairs))

    expected = judged(pairs)
    traces = asyncio.run(score_all())
    found = [(trace.reward, trace.info["microcoder"]["outcome"]) for trace in traces]
    assert found == [(float(verdict.is_accepted), verdict.outcome.value) for verdict in expected]


def test_a_fault_of_the_sandbox_is_an_error_and_no_reward() -> None:
    with pytest.raises(vf.SandboxError, match="the checker"):
        asyncio.run(score(make_task(BROKEN), RIGHT))


def test_a_taskset_without_a_corpus_says_what_to_type() -> None:
    with pytest.raises(ConfigError, match=r"type --taskset.corpus FILE"):
        list(CodeTaskset(CodeConfig(id="microcoder-code")))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus as `microcoder data export --to verifiers` writes it."""
    records = [problem.model_dump(exclude_defaults=True) for problem in (SUM, WRONG, SILENT, BROKEN)]
    rows = [{"name": one["id"], "prompt": [], "answer": "", "info": json.dumps({"problem": one})} for one in records]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "corpus.jsonl"


def run(command: str, *arguments: str, folder: Path) -> None:
    """Run a command of verifiers."""
    commands = Path(sys.executable).parent
    call = [str(commands / command), "microcoder-code", *arguments, "--no-rich", "-o", str(folder)]
    # By its path the harness finds uv.
    here = os.environ | {"PATH": f"{commands}:{os.environ['PATH']}"}
    result = subprocess.run(call, capture_output=True, text=True, timeout=250, check=False, env=here)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]


def test_vf_validate_finds_the_wrong_reference(corpus: Path, tmp_path: Path) -> None:
    options = ("--taskset.corpus", str(corpus), "--runtime.type", "subprocess")
    run("vf-validate", *options, "--only-gold", "--taskset.task.judge", '{"workers": 1}', folder=tmp_path / "out")
    (summary,) = (tmp_path / "out").glob("*/summary.json")
    found = json.loads(summary.read_text())["outcomes"]
    assert {name: count for name, count in found.items() if count} == {
        "valid": 1, "invalid": 1, "unchecked": 1, "error": 1,
    }  # fmt: skip


def test_vf_eval_scores_what_a_model_answers(corpus: Path, tmp_path: Path) -> None:
    harness = ("--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess")
    options = ("--env.taskset.corpus", str(corpus), "--env.taskset.task.judge", '{"workers": 1}')
    with serve(lambda asked, number: in_the_form_asked(asked, RIGHT)) as server:
        model = ("-m", "fake", "--client.base-url", server.url, "-n", "4", "-r", "1")
        run("vf-eval", *options, *model, *harness, folder=tmp_path / "out")
    (file,) = (tmp_path / "out").glob("*/traces.jsonl")
    traces = {trace["task"]["data"]["id"]: trace for line in file.open() for trace in json.loads(line)["traces"]}
    for name in ("sum", "wrong", "silent"):
        assert traces[name]["rewards"]["accepted"]["score"] == 1.0
    assert traces["faulty"]["rewards"]["accepted"] is None
    assert [error["type"] for error in traces["faulty"]["errors"]] == ["SandboxError"]
