"""What a model is asked: styles, a user's own, system turn and examples."""

from pathlib import Path

import pytest

from microcoder import ConfigError, Problem, TestCase
from microcoder.judge.core.prompts import load_asker
from microcoder.judge.core.types import Turn

PROBLEM = Problem(
    id="add",
    statement=" Add two numbers, $\\frac{a}{b}$. ",
    tests=(TestCase(input="1 2", output="3"),),
    reference="print(3)\n",
)


def test_the_built_in_styles() -> None:
    asked = load_asker("instruct")(PROBLEM)
    assert asked.text.startswith("Add two numbers")
    assert "reads the input from standard input" in asked.text
    assert asked.before == ()
    assert load_asker("bare")(PROBLEM).text == PROBLEM.statement


def test_a_template_is_filled_in_and_other_braces_stay() -> None:
    ask = load_asker("template", {"text": "{statement}\nIn {language}, within {budget} tokens."})
    assert ask(PROBLEM).text == "Add two numbers, $\\frac{a}{b}$.\nIn python, within {budget} tokens."
    for options, message in (
        ({"text": "{statment}"}, r"did you mean \{statement\}"),
        ({"text": "Solve it."}, r"does not hold \{statement\}"),
        ({}, "needs the option 'text'"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_asker("template", options)(PROBLEM)


def test_system_turn_and_examples_come_first() -> None:
    ask = load_asker("bare", system="Be brief.", examples=[PROBLEM.model_copy(update={"id": "shown"})])
    prompt = ask(PROBLEM.model_copy(update={"statement": "Q"}))
    assert prompt.before == (
        Turn("system", "Be brief."),
        Turn("user", PROBLEM.statement),
        Turn("assistant", "```python\nprint(3)\n```"),
    )
    assert prompt.as_chat()[-1] == {"role": "user", "content": "Q"}
    with pytest.raises(ConfigError, match="problem 'add' has no reference"):
        load_asker("bare", examples=[PROBLEM.model_copy(update={"reference": None})])


def test_a_function_of_the_users_own_returns_a_text_or_a_chat(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "def text(problem):\n    return 'Q: ' + problem.id\n"
        "def chat(problem):\n"
        "    return [{'role': 'system', 'content': 'S'}, {'role': 'user', 'content': problem.id}]\n"
        "def answered(problem):\n    return [{'role': 'assistant', 'content': 'A'}]\n"
    )
    assert load_asker(f"{path}:text")(PROBLEM).text == "Q: add"
    assert load_asker(f"{path}:chat")(PROBLEM).as_chat()[0] == {"role": "system", "content": "S"}
    with pytest.raises(ConfigError, match=r"own\.py line 5\) returned .* a chat that ends with the user's turn"):
        load_asker(f"{path}:answered")(PROBLEM)
    with pytest.raises(ConfigError, match=r"prompt\.system is given too"):
        load_asker(f"{path}:chat", system="Be brief.")(PROBLEM)
