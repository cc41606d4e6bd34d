"""The environment behind OpenEnv's server, asked by OpenEnv's client."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pairs import AMOUNTS, FAULTY, RIGHT, SAMPLE, Pair, judged

from microcoder import ConfigError, DataError
from microcoder.integrations.shared import shared_judge
from microcoder.judge.core.types import Problem

pytest.importorskip("openenv.core", reason="openenv is not here; type: make test-integrations")

import uvicorn
from openenv.core.generic_client import GenericEnvClient

from microcoder.integrations.openenv import CodeAction, CodeEnvironment, make_app

SUM = Problem.model_validate(
    {"id": "sum", "statement": "Print the sum of two integers.", "tests": [{"input": "1 2", "output": "3"}]}
)
BROKEN = FAULTY.model_copy(update={"statement": SUM.statement})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server answers for two problems."""
    corpus = tmp_path_factory.mktemp("corpus") / "problems.jsonl"
    corpus.write_text("".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in (SUM, BROKEN)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROCODER_CORPUS", str(corpus))
        server = uvicorn.Server(uvicorn.Config(make_app(), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


async def ask(url: str, problem_id: str, responses: list[str]) -> list[Any]:
    """Return what comes back for each response, each in a session of its own, all at once."""

    async def play(response: str) -> Any:
        async with GenericEnvClient(base_url=url) as client:
            asked = await client.reset(problem_id=problem_id)
            assert asked.observation["prompt"].startswith("Print the sum of two integers.")
            assert (asked.done, asked.reward) == (False, None)
            return await client.step({"response": response})

    return await asyncio.gather(*map(play, responses))


def test_a_client_is_asked_and_judged(url: str) -> None:
    right, wrong, silent = asyncio.run(ask(url, "sum", [RIGHT, "```python\nprint(4)\n```", "I do not know."]))
    assert [(one.reward, one.done) for one in (right, wrong, silent)] == [(1.0, True), (0.0, True), (0.0, True)]
    assert right.observation["metadata"]["outcome"] == "accepted"
    assert wrong.observation["metadata"]["detail"] == 'test 1: line 1: expected "3", got "4"'
    assert (silent.observation["metadata"]["outcome"], silent.observation["metadata"]["tests_total"]) == ("no_code", 1)


def test_a_fault_of_the_sandbox_has_no_reward(url: str) -> None:
    (broken,) = asyncio.run(ask(url, "faulty", [RIGHT]))
    assert (broken.reward, broken.done, broken.observation["metadata"]["outcome"]) == (None, True, "sandbox_fault")


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_rewards_are_the_judges_verdicts(pairs: list[Pair]) -> None:
    environment = CodeEnvironment([pair.problem.model_copy(update={"id": pair.name}) for pair in pairs], shared_judge())
    found = []
    for pair in pairs:
        environment.reset(problem_id=pair.name)
        seen = environment.step(CodeAction(response=pair.response))
        found.append((seen.reward, seen.metadata["outcome"]))
    assert found == [(float(one.is_accepted), one.outcome.value) for one in judged(pairs)]


def test_a_seed_draws_the_same_problem_again() -> None:
    environment = CodeEnvironment([pair.problem for pair in SAMPLE], shared_judge())
    drawn = [environment.reset(seed=seed).problem_id for seed in (*range(20), *range(20))]
    assert drawn[:20] == drawn[20:]
    assert len(set(drawn)) > 5


def test_what_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = CodeEnvironment([SUM], shared_judge())
    with pytest.raises(DataError, match=r"call reset\(\) first"):
        environment.step(CodeAction(response=RIGHT))
    with pytest.raises(DataError, match="unknown problem 'x'; the first of 1 is 'sum'"):
        environment.reset(problem_id="x")
    with pytest.raises(ConfigError, match="type: export MICROCODER_CORPUS"):
        make_app()
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "a", "tests": [{"input": "", "output": "1"}]}))
    monkeypatch.setenv("MICROCODER_CORPUS", str(tmp_path / "rows.jsonl"))
    with pytest.raises(DataError, match=r"rows.jsonl: problem 'a' has no statement"):
        make_app()
    monkeypatch.setenv("MICROCODER_JUDGE", "workers")
    with pytest.raises(ConfigError, match="MICROCODER_JUDGE is not a JSON object"):
        make_app()
