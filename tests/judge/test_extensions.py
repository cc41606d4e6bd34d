"""What users bring along, by one door: found by every kind of name, checked, named in each error;
prompts; rewards.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from microcoder import (
    ConfigError,
    Outcome,
    Problem,
    Program,
    Rollout,
    TestCase,
    TestResult,
    Verdict,
)
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.prompts import load_prompt_builder
from microcoder.judge.core.rewards import (
    ALL_TESTS,
    Reward,
    RewardSum,
    load_rewards,
    score_verdict,
    score_verdicts,
)
from microcoder.judge.core.types import Turn


def plain(text: str, *, times: int = 1, word: str = "") -> str:
    return text * times + word


BUILTINS: dict[str, Callable[..., str]] = {"plain": plain}
OWN = """\
SIZE = 3


def shout(text: str, *, marks: int = 1) -> str:
    return text.upper() + "!" * marks


def needy(text: str, *, suffix: str) -> str:
    return text + suffix


def broken(text):
    width = len(text)
    return width / 0
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def load(reference: str, **options: object) -> Extension:
    return load_extension("style", reference, builtins=BUILTINS, options=options)


def refused(reference: str, **options: object) -> str:
    with pytest.raises(ConfigError) as error:
        load(reference, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_builtins_and_installed_modules_come_in_by_the_same_door() -> None:
    extension = load("plain", times=2)
    assert extension("ab") == "abab"
    assert extension.label == "plain"
    assert extension.source is None
    assert load("textwrap:dedent")("  a") == "a"
    assert "path/to/file.py:function" in refused("textwrap_of_ours:dedent")
    message = refused("plane")
    assert "unknown style 'plane'; did you mean plain?" in message
    assert "path/to/file.py:function" in message


def test_a_function_of_a_file_is_found_and_its_source_is_kept(own: Path) -> None:
    extension = load(f"{own}:shout", marks="2")
    assert extension("ab") == "AB!!"
    assert extension.label == "shout"
    assert extension.source is not None
    record = extension.source.as_record()
    assert record["file"] == str(own)
    assert record["line"] == 4
    assert record["reference"] == f"{own}:shout"
    own.write_text(OWN + "\n# edited\n")
    edited = load(f"{own}:shout").source
    assert edited is not None
    assert edited.digest != record["digest"]


def test_what_is_wrong_with_a_file_is_said_with_its_line(own: Path) -> None:
    assert f"{own.parent}/none.py does not exist" in refused(f"{own.parent}/none.py:shout")
    assert "did you mean shout?" in refused(f"{own}:shoot")
    assert "is of type int; name a function" in refused(f"{own}:SIZE")
    own.write_text("import math\n\nmath.nothing()\n")
    assert f"{own} line 3 cannot be imported: AttributeError" in refused(f"{own}:shout")
    own.write_text("def shout(:\n")
    assert f"{own} line 1 cannot be imported: SyntaxError" in refused(f"{own}:shout")


def test_options_are_checked_and_a_failure_names_its_line(own: Path) -> None:
    assert "has no option 'tims'; did you mean times?" in refused("plain", tims=2)
    assert "option times = 'many'" in refused("plain", times="many")
    assert f"({own} line 8) needs the option 'suffix'" in refused(f"{own}:needy")
    assert "it has none" in refused(f"{own}:broken", size=3)
    with pytest.raises(
        ConfigError, match=r"own\.py line 14\) raised ZeroDivisionError: division by zero"
    ):
        load(f"{own}:broken")("ab")


def test_an_edited_file_is_read_anew_though_its_size_and_second_stay(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert load(f"{own}:shout")("a") == "A!"
    times = own.stat()
    own.write_text(OWN.replace('"!"', '"?"'))
    os.utime(own, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load(f"{own}:shout")("a") == "A?"


PROBLEM = Problem(
    id="add",
    statement=" Add two numbers, $\\frac{a}{b}$. ",
    tests=(TestCase(input="1 2", output="3"),),
    reference="print(3)\n",
)


def test_the_built_in_styles() -> None:
    asked = load_prompt_builder("instruct")(PROBLEM)
    assert asked.text.startswith("Add two numbers")
    assert "reads the input from standard input" in asked.text
    assert asked.before == ()
    assert load_prompt_builder("bare")(PROBLEM).text == PROBLEM.statement


def test_a_template_is_filled_in_and_other_braces_stay() -> None:
    ask = load_prompt_builder(
        "template", {"text": "{statement}\nIn {language}, within {budget} tokens."}
    )
    assert (
        ask(PROBLEM).text == "Add two numbers, $\\frac{a}{b}$.\nIn python, within {budget} tokens."
    )
    for options, message in (
        ({"text": "Solve it."}, r"does not hold \{statement\}"),
        ({}, "needs the option 'text'"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_prompt_builder("template", options)(PROBLEM)


def test_a_system_turn_comes_first() -> None:
    prompt = load_prompt_builder("bare", system="Be brief.")(PROBLEM)
    assert prompt.before == (Turn("system", "Be brief."),)
    assert prompt.as_chat()[-1] == {"role": "user", "content": PROBLEM.statement}


def test_a_function_of_the_users_own_returns_a_text_or_a_chat(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "def text(problem):\n    return 'Q: ' + problem.id\n"
        "def chat(problem):\n"
        "    return [{'role': 'system', 'content': 'S'}, {'role': 'user', 'content': problem.id}]\n"
        "def answered(problem):\n    return [{'role': 'assistant', 'content': 'A'}]\n"
    )
    assert load_prompt_builder(f"{path}:text")(PROBLEM).text == "Q: add"
    assert load_prompt_builder(f"{path}:chat")(PROBLEM).as_chat()[0] == {
        "role": "system",
        "content": "S",
    }
    with pytest.raises(
        ConfigError, match=r"own\.py line 5\) returned .* a chat that ends with the user's turn"
    ):
        load_prompt_builder(f"{path}:answered")(PROBLEM)
    with pytest.raises(ConfigError, match=r"prompt\.system is given too"):
        load_prompt_builder(f"{path}:chat", system="Be brief.")(PROBLEM)


def verdict(outcome: Outcome, *tests: Outcome) -> Verdict:
    results = tuple(TestResult(test, 0.1, 0.1, 10.0, "", "") for test in tests)
    return Verdict(outcome, results, tests_total=3)


def test_only_accepted_scores_one_and_a_sandbox_fault_nothing() -> None:
    worth = {Outcome.ACCEPTED: 1.0, Outcome.SANDBOX_FAULT: None}
    for outcome in Outcome:
        # However many tests passed.
        assert score_verdict(
            verdict(outcome, Outcome.ACCEPTED, Outcome.ACCEPTED, outcome)
        ) == worth.get(outcome, 0.0)
    outcomes = [Outcome.ACCEPTED, Outcome.SANDBOX_FAULT, Outcome.NO_CODE]
    assert score_verdicts([verdict(outcome) for outcome in outcomes]) == [1.0, None, 0.0]


def rollout(*, truncated: bool = False) -> Rollout:
    return Rollout("p", "s", "text", (1, 2), truncated)


def reward_of(
    rewards: RewardSum,
    judged: Verdict,
    *,
    code: str | None = "x",
    truncated: bool = False,
) -> Reward:
    return rewards(PROBLEM, rollout(truncated=truncated), Program(code), judged)


def test_several_rewards_are_a_weighted_sum() -> None:
    rewards = load_rewards([("all_tests", 1.0, {}), ("fraction", 0.5, {}), ("format", -0.25, {})])
    half = replace(
        verdict(Outcome.WRONG_ANSWER, Outcome.ACCEPTED, Outcome.WRONG_ANSWER), tests_total=2
    )
    assert reward_of(rewards, half) == Reward(
        0.0, {"all_tests": 0.0, "fraction": 0.5, "format": 1.0}
    )
    right = replace(verdict(Outcome.ACCEPTED, Outcome.ACCEPTED), tests_total=1)
    assert reward_of(rewards, right).total == 1.25
    assert reward_of(rewards, right, truncated=True).parts["format"] == 0.0
    assert reward_of(rewards, right, code=None).parts["format"] == 0.0
    assert rewards.needs_all_tests == "fraction"
    assert ALL_TESTS.needs_all_tests is None
    assert reward_of(ALL_TESTS, verdict(Outcome.ACCEPTED, Outcome.ACCEPTED)) == Reward(1.0, {})
    with pytest.raises(ConfigError, match="name format twice"):
        load_rewards([("format", 1.0, {}), ("format", 2.0, {})])


OWN_REWARDS = """\
def brevity(problem, rollout, program, verdict, *, limit: int = 4):
    return 1 - len(rollout.token_ids) / limit
def shy(problem, rollout, program, verdict):
    return None
def odd(problem, rollout, program, verdict):
    return float('nan')
def lot(problem, rollout, program, verdict, draw, *, of: float = 1.0):
    return draw * of
lot.needs_draw = True
"""


def test_rewards_of_the_users_own_count_with_their_options(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN_REWARDS)
    right = verdict(Outcome.ACCEPTED, Outcome.ACCEPTED)
    wrong = verdict(Outcome.WRONG_ANSWER, Outcome.WRONG_ANSWER)
    rewards = load_rewards([("all_tests", 1.0, {}), (f"{own}:brevity", 2.0, {"limit": 8})])
    assert reward_of(rewards, right) == Reward(2.5, {"all_tests": 1.0, "brevity": 0.75})
    # One that is unscored leaves the whole unscored; so does a sandbox fault,
    # whatever a reward would say.
    shy = load_rewards([("all_tests", 1.0, {}), (f"{own}:shy", 0.1, {})])
    assert reward_of(shy, right) == Reward(None, {"all_tests": 1.0, "shy": None}, ("shy",))
    assert reward_of(rewards, verdict(Outcome.SANDBOX_FAULT)).total is None
    assert reward_of(rewards, wrong).total == 1.5
    with pytest.raises(ConfigError, match=r"own\.py line 5\) returned nan; return a finite number"):
        reward_of(load_rewards([(f"{own}:odd", 1.0, {})]), right)
    drawn = load_rewards([("all_tests", 1.0, {}), (f"{own}:lot", 1.0, {"of": 2.0})])
    assert drawn(PROBLEM, rollout(), Program("x"), wrong, draw=0.25).parts == {
        "all_tests": 0.0,
        "lot": 0.5,
    }
    with pytest.raises(
        ConfigError, match=r"own\.py line 7\) needs a draw, a random number; outside"
    ):
        drawn(PROBLEM, rollout(), Program("x"), wrong)
