"""The environment in SkyRL-gym itself, made by its id."""

import json
from typing import Any, ClassVar

import pytest

from microcoder import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.types import Checker, Problem
from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, Pair, judged

skyrl_gym = pytest.importorskip(
    "skyrl_gym", reason="skyrl-gym is not here; type: make test-integrations"
)

import microcoder.integrations.skyrl  # noqa: E402


def make(row: dict[str, Any], **options: Any) -> Any:
    """Make the environment as SkyRL's generator does."""
    return skyrl_gym.make(microcoder.integrations.skyrl.ID, env_config=options, extras=row)


def carry(problem: Problem) -> dict[str, Any]:
    """Return the columns of a row that `microcoder data export --to trl` writes,
    beside its prompt.
    """
    return {"problem": problem.model_dump_json(exclude_defaults=True)}


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_rewards_are_the_judges_verdicts(pairs: list[Pair]) -> None:
    steps = [make(carry(pair.problem)).step(pair.response) for pair in pairs]
    found = [(step["reward"], step["metadata"]["outcome"], step["done"]) for step in steps]
    assert found == [(float(one.is_accepted), one.outcome.value, True) for one in judged(pairs)]


def test_rows_of_its_own_livecodebench_environment_are_read() -> None:
    tests = []
    for a in (1, 2):
        tests.append({"input": f"{a} 1", "output": str(a + 1), "testtype": "stdin", "metadata": {}})
    row = {
        "data_source": "lcb",
        "reward_spec": {"method": "rule", "ground_truth": json.dumps(tests)},
    }
    env = make(row)
    assert env.init([{"role": "user", "content": "Sum?"}]) == (
        [{"role": "user", "content": "Sum?"}],
        {},
    )
    assert env.step(RIGHT)["reward"] == 1.0
    assert env.step("```python\nprint(2)\n```")["reward"] == 0.0
    assert env.get_metrics() == {"accepted": 0.0, "tests_passed_share": 0.5}
    assert env.step("no code")["metadata"]["extraction"] == "no_code_block"


def test_a_fault_of_the_sandbox_is_an_error_and_no_reward() -> None:
    with pytest.raises(EvaluatorFault, match=r"has no verdict: .*the checker"):
        make(carry(FAULTY)).step(RIGHT)


def test_skyrls_own_setting_is_no_column_and_options_may_be_an_object() -> None:
    class Options:
        judge: ClassVar = {"stop": "never"}

    record = FAULTY.model_copy(update={"checker": Checker()}).model_dump(
        mode="json",
        exclude_defaults=True,
    )
    env = skyrl_gym.make("microcoder", env_config=Options(), extras={**record, "max_turns": 1})
    assert env.step(RIGHT)["reward"] == 1.0


def test_a_row_or_an_option_that_is_wrong_is_named() -> None:
    with pytest.raises(DataError, match="private_test_cases"):
        make({"private_test_cases": "?", "question_content": "Sum?"})
    with pytest.raises(ConfigError, match="no option 'worker'"):
        make(carry(FAULTY), judge={"worker": 1})
