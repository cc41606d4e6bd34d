"""The taskset against verifiers itself; its commands are those of docs/integrations.md."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from microcoder import ConfigError
from microcoder.judge.core.types import Problem
from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, Pair, judged

vf = pytest.importorskip(
    "verifiers.v1", reason="verifiers is not here; type: make test-integrations"
)

from verifiers.v1.utils.trace_store import append_trace  # noqa: E402

from microcoder.integrations.verifiers import CodeConfig, CodeData, CodeTask  # noqa: E402
from microcoder.replay import Alternative, open_recording, replay  # noqa: E402
from microcoder_code import CodeTaskset  # noqa: E402

TESTS = [{"input": "1 2", "output": "3"}, {"input": "5 6", "output": "11"}]
STATEMENT = "Print the sum of two integers."
SUM = Problem.model_validate(
    {
        "id": "sum",
        "statement": STATEMENT,
        "tests": TESTS,
        "reference": "print(sum(map(int, input().split())))",
    }
)
WRONG = Problem.model_validate(
    {"id": "wrong", "statement": STATEMENT, "tests": TESTS, "reference": "print(3)"}
)
SILENT = Problem.model_validate(
    {"id": "silent", "statement": STATEMENT, "tests": TESTS, "reference": None}
)
BROKEN = FAULTY.model_copy(update={"statement": STATEMENT, "reference": SUM.reference})


def make_task(problem: Problem) -> Any:
    """Return a task as verifiers' workers rebuild it from what comes over the wire."""
    data = CodeData(id=problem.id, prompt="Solve it.", problem=problem).model_dump(
        mode="json",
        exclude_none=True,
    )
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
        return await asyncio.gather(
            *(score(make_task(pair.problem), pair.response) for pair in pairs)
        )

    expected = judged(pairs)
    traces = asyncio.run(score_all())
    found = [(trace.reward, trace.info["microcoder"]["outcome"]) for trace in traces]
    assert found == [(float(verdict.is_accepted), verdict.outcome.value) for verdict in expected]


def test_a_fault_of_the_sandbox_is_an_error_and_no_reward() -> None:
    with pytest.raises(vf.SandboxError, match="the checker"):
        asyncio.run(score(make_task(BROKEN), RIGHT))


def test_the_traces_that_verifiers_writes_are_replayed(tmp_path: Path) -> None:
    async def write() -> None:
        lock = asyncio.Lock()
        for reply in (RIGHT, "```python\nprint(3)\n```", "no code"):
            await append_trace(tmp_path, await score(make_task(SUM), reply), lock)

    asyncio.run(write())
    recording = open_recording([tmp_path / "traces.jsonl"])
    assert recording.format == "verifiers"
    ((group,),) = (step.scored_P_G for step in recording.read())
    assert [sample.reward for sample in group] == [1.0, 0.0, 0.0]
    assert [sample.verdict.outcome for sample in group] == ["accepted", "wrong_answer", "no_code"]
    assert {sample.rollout.problem_id for sample in group} == {"sum"}
    (maxrl,) = replay(
        recording, [Alternative("maxrl", {"algorithm.advantage": "maxrl"})]
    ).alternatives
    assert maxrl.run.first_difference is not None


def test_a_taskset_without_a_corpus_says_what_to_type() -> None:
    with pytest.raises(ConfigError, match=r"type --taskset.corpus FILE"):
        list(CodeTaskset(CodeConfig(id="microcoder-code")))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus as `microcoder data export --to verifiers` writes it."""
    records = []
    for problem in (SUM, WRONG, SILENT, BROKEN):
        records.append(problem.model_dump(exclude_defaults=True))
    rows = []
    for one in records:
        rows.append(
            {"name": one["id"], "prompt": [], "answer": "", "info": json.dumps({"problem": one})}
        )
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "corpus.jsonl"


def test_a_reference_is_validated_and_a_corpus_is_a_taskset(corpus: Path) -> None:
    tasks = list(CodeTaskset(CodeConfig(id="microcoder-code", corpus=corpus)).load())
    assert [task.data.id for task in tasks] == ["sum", "wrong", "silent", "faulty"]
    runtime: Any = None
    found = [asyncio.run(task.validate(runtime)) for task in tasks[:3]]
    assert found == [True, False, None]
    with pytest.raises(vf.SandboxError, match="the checker"):
        asyncio.run(tasks[3].validate(runtime))
