"""The judge of a run may be elsewhere: the same verdicts,
and clear errors where it is not there.
"""

from collections.abc import Iterator

import pytest

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import Problem, Program, TestCase
from microcoder.train.recipe.judge import EvaluatorConfig
from microcoder.train.run.judging import TOKEN_VARIABLE, open_judge
from tests.train.small_runs import serving

pytest.importorskip("fastapi")
TOKEN = "a-token-for-tests-only"
PROBLEM = Problem(
    id="double",
    tests=(TestCase(input="2\n", output="4\n"), TestCase(input="3\n", output="6\n")),
)
PROGRAMS = [
    Program("print(2 * int(input()))"),
    Program("print(2 + int(input()))"),
    Program("print(4)", "python"),
    Program(None, reason="no code block"),
    Program("1 / 0"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that wants a token."""
    tokens = tmp_path_factory.mktemp("serve") / "tokens"
    tokens.write_text(TOKEN)
    with serving("--token-file", str(tokens)) as url:
        yield url


def test_a_service_gives_the_verdicts_of_this_process(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    problems = [PROBLEM] * len(PROGRAMS)
    with open_judge(EvaluatorConfig(workers=1)) as (judge, held):
        here = judge.judge(PROGRAMS, problems)
    with open_judge(EvaluatorConfig(backend=(service,))) as (judge, held_there):
        there = judge.judge(PROGRAMS, problems)
    assert held_there == held
    assert [(v.outcome, v.tests_passed, len(v.tests)) for v in there] == [
        (v.outcome, v.tests_passed, len(v.tests)) for v in here
    ]
    assert [str(v.outcome) for v in here] == [
        "accepted",
        "wrong_answer",
        "wrong_answer",
        "no_code",
        "runtime_error",
    ]


def test_what_cannot_be_judged_there_is_said_at_the_start(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with (
        pytest.raises(ConfigError, match=TOKEN_VARIABLE),
        open_judge(EvaluatorConfig(backend=(service,))),
    ):
        pass
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    another_rule = EvaluatorConfig(backend=(service,), stop="never")
    with (
        pytest.raises(ConfigError, match=r"--evaluator\.stop first_failure"),
        open_judge(another_rule),
    ):
        pass
