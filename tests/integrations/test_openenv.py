"""The environment of OpenEnv; docs/integrations.md has it behind OpenEnv's server,
asked by its client.
"""

import json
from pathlib import Path

import pytest

from microcoder import ConfigError, DataError
from microcoder.integrations.shared import shared_judge
from microcoder.judge.core.types import Problem
from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, SAMPLE, Pair, judged

pytest.importorskip("openenv.core", reason="openenv is not here; type: make test-integrations")

from microcoder.integrations.openenv import CodeAction, CodeEnvironment, make_app

SUM = Problem.model_validate(
    {
        "id": "sum",
        "statement": "Print the sum of two integers.",
        "tests": [{"input": "1 2", "output": "3"}],
    }
)


def test_a_session_is_asked_and_judged_and_a_fault_has_no_reward() -> None:
    environment = CodeEnvironment([SUM, FAULTY], shared_judge())
    asked = environment.reset(problem_id="sum")
    assert asked.prompt.startswith("Print the sum of two integers.")
    assert not asked.done
    assert asked.reward is None
    right = environment.step(CodeAction(response=RIGHT))
    wrong = environment.step(CodeAction(response="```python\nprint(4)\n```"))
    silent = environment.step(CodeAction(response="I do not know."))
    assert [(one.reward, one.done) for one in (right, wrong, silent)] == [
        (1.0, True),
        (0.0, True),
        (0.0, True),
    ]
    assert wrong.metadata["detail"] == 'test 1: line 1: expected "3", got "4"'
    assert silent.metadata["outcome"] == "no_code"
    assert silent.metadata["tests_total"] == 1
    environment.reset(problem_id="faulty")
    broken = environment.step(CodeAction(response=RIGHT))
    assert broken.reward is None
    assert broken.done
    assert broken.metadata["outcome"] == "sandbox_fault"


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_rewards_are_the_judges_verdicts(pairs: list[Pair]) -> None:
    environment = CodeEnvironment(
        [pair.problem.model_copy(update={"id": pair.name}) for pair in pairs], shared_judge()
    )
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
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"id": "a", "tests": [{"input": "", "output": "1"}]})
    )
    monkeypatch.setenv("MICROCODER_CORPUS", str(tmp_path / "rows.jsonl"))
    with pytest.raises(DataError, match=r"rows.jsonl: problem 'a' has no statement"):
        make_app()
    monkeypatch.setenv("MICROCODER_JUDGE", "workers")
    with pytest.raises(ConfigError, match="MICROCODER_JUDGE is not a JSON object"):
        make_app()
