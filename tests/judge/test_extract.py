from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder import extract_program
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extract import USUAL, load_extractor
from tests.response_layouts import LAYOUTS
from tests.response_turns import (
    MARKED,
    NO_PROGRAMS,
    PREFILLED,
    RUNS_ON,
    TOKENS,
)

CODE = "print(1)\n"


def fenced(code: str) -> str:
    return f"```python\n{code}```\n"


REASONS: dict[str | None, str] = {
    None: "no_code_block",
    **dict.fromkeys(
        ["Just text.", "", "Inline ```print(1)``` is no block.", "`print(1)`"], "no_code_block"
    ),
    f"<think>{fenced('draft()')}</think>\nNo idea.": "no_code_block",
    **dict.fromkeys([fenced(""), fenced("\n"), fenced("  \n\t\n")], "empty_code_block"),
    f"```python\n{CODE}": "unclosed_code_block",
    f"<think>\n{fenced(CODE)}": "no_answer_after_thinking",
    (
        f"<think>a</think>\n{fenced(CODE)}<think> wait\n{fenced('draft()')}"
    ): "no_answer_after_thinking",
}
"""Responses without a program, and why they have none."""


@pytest.mark.parametrize("response", REASONS)
def test_no_program_has_a_reason_and_is_incomplete_where_it_was_cut_off(
    response: str | None,
) -> None:
    for is_truncated in (False, True):
        program = extract_program(response, is_truncated=is_truncated)
        assert program.code is None
        assert program.reason == REASONS[response]
        assert program.is_incomplete is is_truncated


def test_a_truncated_response_does_not_fall_back_to_its_earlier_draft() -> None:
    response = fenced("draft()\n") + f"Better:\n```python\n{CODE}"
    assert extract_program(response, is_truncated=True).reason == "unclosed_code_block"
    assert extract_program(response).code == "draft()\n"
    program = extract_program(fenced(CODE) + "This works bec", is_truncated=True)
    assert program.code == CODE
    assert not program.is_incomplete


@pytest.mark.parametrize(
    "response",
    [
        *("```" + filler * 200_000 + "!`\n" for filler in "a \t`#"),
        *(
            text * 40_000
            for text in ("</think>\n```\n", "```python\n", "x ```python\n", "```python\nx\n``` y\n")
        ),
        "<think>\n```" * 40_000,
        "a <|im_end|>`\n" * 40_000,
        "```python\nprint(input())\n```\n" + "User: x\n\n" * 40_000,
        "'''\n```\n" * 20_000,
        "x = '<|im_end|>'\n" * 5_000 + "```",
        "````python\n" * 20_000,
        "<code>\n" * 40_000,
        "[PYTHON]\n" * 40_000,
        "<code>x\n</code>" * 20_000,
    ],
    ids=range(18),
)
def test_repetition_and_many_fences_cost_linear_time(response: str) -> None:
    """A square of it would take longer than any test may."""
    assert extract_program(response).reason


@given(st.text())
@settings(deadline=None)
def test_any_text_gives_a_program_or_a_reason(response: str) -> None:
    program = extract_program(response)
    assert program.reason
    assert program.code is None or program.code.strip()


@given(
    st.text(alphabet=st.characters(exclude_characters="`~", exclude_categories=["Cs"])),
    st.text(alphabet="abc .\n"),
)
@settings(deadline=None)
def test_what_is_fenced_comes_out_unchanged(code: str, prose: str) -> None:
    code = "#" + code  # Indentation of the first line is a matter of layout.
    assert extract_program(f"{prose}\n```python\n{code}\n```\n{prose}").code == code + "\n"


def test_an_extractor_of_ones_own_returns_a_text_or_nothing(tmp_path: Path) -> None:
    answers = {"text": "x", "nothing": None, "blank": " ", "number": 7}
    (tmp_path / "own.py").write_text(
        f"def take(response, is_truncated):\n    return {answers}[response]\n"
    )
    take = load_extractor(f"{tmp_path}/own.py:take")
    program = take("text", language="cpp")
    assert program.code == "x"
    assert program.language == "cpp"
    assert program.reason == "take"
    for response in ("nothing", "blank"):
        program = take(response, is_truncated=True)
        assert program.code is None
        assert program.is_incomplete
        assert program.reason.startswith("nothing_by_")
    with pytest.raises(ConfigError, match="returned 7; return the program as a text, or None"):
        take("number")


def test_a_program_is_found_where_a_human_finds_it() -> None:
    programs = {name: extract_program(response) for name, (response, _) in LAYOUTS.items()}
    expected = {n: code for n, (_, code) in LAYOUTS.items()}
    assert {name: program.code for name, program in programs.items()} == expected
    last = []
    for name, one in programs.items():
        if name.startswith(("tag", "tildes", "a longer", "Win", "think", "ind")):
            last.append(one)
    assert {(program.reason, program.is_incomplete) for program in last} == {
        ("last_closed_code_block", False)
    }


TURNS = {
    "prefilled": PREFILLED,
    "runs on": RUNS_ON,
    "tokens": TOKENS,
    "no programs": NO_PROGRAMS,
    "marked": MARKED,
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, layouts in TURNS.items() for name in layouts]
)
def test_a_program_ends_where_the_turn_ends(kind: str, name: str) -> None:
    response, code = TURNS[kind][name]
    assert extract_program(response).code == code


@pytest.mark.parametrize("name", RUNS_ON)
def test_a_made_up_turn_that_is_cut_off_does_not_make_the_answer_incomplete(name: str) -> None:
    response, code = RUNS_ON[name]
    program = extract_program(f"{response}```python\nprint(", is_truncated=True)
    assert program.code == code
    assert not program.is_incomplete


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("cpp", "int main() {\n    return 0;\n}\n"),
        ("java", "class Main {\n    int x;\n}\n"),
        ("javascript", "console.log(require('fs').readFileSync(0));\n"),
    ],
)
def test_other_languages_end_where_the_turn_ends(language: str, code: str) -> None:
    turn = (
        f"<|im_end|>\n<|im_start|>user\nAnd?\n```{language}\nclass B {{ int main() {{ }} }}\n```\n"
    )
    assert extract_program(f"```{language}\n{code}```{turn}", language=language).code == code
    assert extract_program(f"{code}```\nDone.\n```\n1\n```\n", language=language).code == code
    json_behind = f'```{language}\n{code}```\n```\n{{"n": 1}}\n```\n'
    assert extract_program(json_behind, language=language).code == code


@pytest.mark.parametrize(
    ("language", "tag", "code"),
    [
        ("cpp", "cpp", "int main() {\n    // </think>\n    return 0;\n}\n"),
        ("java", "java", "class Main {\n}\n"),
        ("javascript", "js", "console.log(1);\n"),
        ("javascript", "js", "console.log(+require('fs').readFileSync(0))\n"),
        ("python", "py", "print(2)\n"),
    ],
)
def test_each_language_is_told_by_its_tag(language: str, tag: str, code: str) -> None:
    other = "cpp" if language == "python" else "python"
    program = USUAL(
        f"Brute force:\n```{other}\nprint(1);\n```\nFinal:\n```{tag}\n{code}```\n",
        language=language,
    )
    assert program.code == code
    assert program.language == language
    if language != "python":
        for fence_tag in (tag, ""):
            shown = (
                f"Answer: ```{fence_tag}\n"
                f"{code}``` It prints\n"
                "```\n"
                "1 2\n"
                "```\n"
                "by\n"
                "```bash\n"
                "run; me\n"
                "```\n"
            )
            shown += "For example\n```\nn => 6, main() -> solve()\n```\n"
            shown += f"The loop:\n```{fence_tag}\nif (n) {{ n--; }}\n```\n" * (
                "{" in code or "(0)" in code
            )
            assert extract_program(shown, language=language).code == code
        draft = f"```{tag}\nint x;\nBetter:\n```{tag}\n{code}```\n"
        assert extract_program(draft, language=language).code == code
