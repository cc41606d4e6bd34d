from __future__ import annotations

import pytest
from real_texts import language_texts

from microcoder.data.clean.translation import identify


def test_real_texts_in_ten_languages() -> None:
    texts = language_texts()
    wrong = [(code, text[:60]) for code, text in texts if identify(text).code != code]
    assert len(texts) > 2900
    assert len(wrong) <= 13, wrong[:20]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("给你一个下标从 0 开始的字符串 word 。返回 max_length 的值，其中 `def f(word: str) -> int` 。", "zh"),
        ("N 個の整数が与えられます。その合計を出力してください。", "ja"),
        ("두 정수를 입력받아 합을 출력하시오.", "ko"),
        ("Skriv ut ett heltal: det minsta antalet drag som krävs.", "sv"),
        ("Skrifið út eina heiltölu: fæsta fjölda leikja sem þarf til þess að vinna.", "is"),
        ("Print the minimum number of moves. $O(n \\log n)$ is enough.", "en"),
    ],
)
def test_code_and_formulae_do_not_decide(text: str, code: str) -> None:
    assert identify(text).code == code


def test_too_little_text_is_taken_for_english() -> None:
    assert identify("f(x) = 3") == ("en", 0.0)
