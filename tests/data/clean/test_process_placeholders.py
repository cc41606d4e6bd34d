from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from real_texts import deepseek

from microcoder.data.clean.translation import find_damage, protect, restore

PIECES = st.sampled_from(
    [
        "`x`", "```\n1 2\n```\n", "$n$", "[[P0]]", "[[P", "[[Q1]]", "1 <= n <= 5", "snake_case", "nums[0]", "\n", " a ",
        "值",
    ]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join))
def test_every_text_comes_back(text: str) -> None:
    protected = protect(text)
    assert restore(protected.text, protected) == text
    assert find_damage(protected.text, protected) == []


def test_code_formulae_names_and_samples_are_protected() -> None:
    text = '返回 `nums` 中 $a_i$ 与 max_len 的和，1 <= n <= 10^5，例如 "abc"。\n\n```\nnums = [1,2]\n```\n'
    protected = protect(text)
    assert all(kept not in protected.text for kept in ("nums", "$", "max_len", "10^5", "abc"))
    assert "返回" in protected.text


def test_damage_is_said_in_words() -> None:
    protected = protect("Return `a` or `b`, at most 100 times.")
    assert find_damage("Return [[P0]] or [[P7]], often.", protected) == [
        "[[P1]] is missing",
        "[[P7]] was made up",
        "the number 100 is missing",
    ]


def test_real_chinese_statements_come_back() -> None:
    for problem in deepseek("zh"):
        protected = protect(problem.statement)
        assert restore(protected.text, protected) == problem.statement
