"""The judge as a reward of TRL; docs/integrations.md has it in TRL's own trainer."""

import asyncio
import json
from typing import Any

import pytest

from microcoder import ConfigError, DataError
from microcoder.integrations.trl import AsyncCodeReward, CodeReward
from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, Pair, judged

TESTS = [{"input": "1 2", "output": "3"}, {"input": "3 4", "output": "7"}]
HALF = "```python\nprint(3)\n```"


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_rewards_are_those_of_the_judge(pairs: list[Pair]) -> None:
    expected = [float(verdict.is_accepted) for verdict in judged(pairs)]
    assert set(expected) == {0.0, 1.0}
    texts = [pair.response for pair in pairs]
    problems = [pair.problem.model_dump_json() for pair in pairs]
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    prompts = ["?"] * len(pairs)
    assert CodeReward()(texts, prompts=prompts, problem=problems, trainer_state=None) == expected
    assert asyncio.run(AsyncCodeReward()(chats, prompts=prompts, problem=problems)) == expected


def test_a_fraction_is_of_all_tests_and_figures_are_logged() -> None:
    figures: dict[str, float] = {}
    reward = CodeReward("fraction")
    columns = {
        "tests": [TESTS, TESTS, TESTS],
        "log_metric": figures.__setitem__,
        "log_extra": lambda *_: None,
    }
    assert reward([RIGHT, HALF, "no code"], prompts=["?"] * 3, **columns) == [1.0, 0.5, 0.0]
    assert figures == {
        "code/sandbox_fault_share": 0,
        "code/no_code_share": 1 / 3,
        "code/time_limit_share": 0,
    }


def test_wrong_options_and_rows_say_what_to_type() -> None:
    with pytest.raises(ConfigError, match=r"mode = 'any'; use \"all\""):
        CodeReward("any")  # pyrefly: ignore[bad-argument-type]
    with pytest.raises(ConfigError, match="drop stop"):
        CodeReward("fraction", stop="first_failure")
    wrong: Any = {"is of no known format; name it": ([RIGHT], {"prompts": ["?"], "answer": ["3"]})}
    wrong |= {
        "column tests is no list of 2": ([RIGHT, HALF], {"tests": [TESTS]}),
        "also of one": (RIGHT, {}),
    }
    wrong |= {
        "column prompts is no": ([RIGHT], {"prompts": "?"}),
        r"\[\[message": ([{"content": RIGHT}], {}),
    }
    for message, (completions, columns) in wrong.items():
        with pytest.raises(DataError, match=message):
            CodeReward()(completions, **columns)


def test_a_fault_is_none() -> None:
    problems = [FAULTY.model_dump_json(), json.dumps({"id": "sum", "tests": TESTS})]
    assert CodeReward()([RIGHT, RIGHT], prompts=["?"] * 2, problem=problems) == [None, 1.0]
