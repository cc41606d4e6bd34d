"""The stage as a whole, and translation with its placeholders."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_endpoint import Reply, endpoint_of
from real_texts import ALL, deepseek

from microcoder.data.clean import ProcessSettings, TranslationSettings, process
from microcoder.data.clean.translation import find_damage, protect, restore
from microcoder.data.completions import Endpoint, EndpointSettings, reply_key
from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import TestCase

RAW = Candidate(
    id="set/1",
    dataset="set",
    title="A &amp; B",
    statement_found=(
        "<p>Print the sum of <b>two</b> numbers, each at most 10<sup>9</sup>.</p><h3>Input</h3><p>Two numbers a and b "
        "(1 &le; a, b &le; 10<sup>9</sup>).</p><h3>Output</h3><p>One number.</p><h3>Sample Input</h3><pre>1 2</pre>"
        "<h3>Sample Output</h3><pre>3</pre>"
    ),
    tests=(
        TestCase(input="1 2\r\n", output="3"),
        TestCase(input="1 2", output="3"),
        TestCase(input="5 5", output="10"),
    ),
)


def test_a_raw_page_becomes_a_statement_in_the_one_layout() -> None:
    done = process(RAW)
    assert isinstance(done, Candidate)
    assert done.statement == (
        "Print the sum of **two** numbers, each at most 10^9.\n\n## Input\n\nTwo numbers a and b (1 ≤ a, b ≤ 10^9).\n\n"
        "## Output\n\nOne number.\n\n## Example 1\n\nInput:\n\n```\n1 2\n```\n\nOutput:\n\n```\n3\n```\n"
    )
    assert done.statement_found == RAW.statement_found
    assert (done.title, done.natural_language, done.flags) == ("A & B", "en", ())
    assert [test.input for test in done.tests] == ["1 2\n", "5 5\n"]
    assert {line.step for line in done.lineage} == {
        "clean/2", "arrange_sections/1", "normalise_tests/2", "identify_language/1"
    }  # fmt: skip
    assert process(done) == done


def test_what_cannot_go_on_is_turned_away_with_its_reason() -> None:
    reasons = {
        "no_statement": RAW.model_copy(update={"statement_found": "<nav>Home</nav><p> </p>"}),
        "conflicting_tests": RAW.model_copy(update={"tests": (*RAW.tests, TestCase(input="1 2", output="4"))}),
        "broken_tests": RAW.model_copy(update={"fn_name": "f"}),
        "no_signature": RAW.model_copy(update={"fn_name": "f", "tests": (TestCase(input="1", output="2"),)}),
    }
    for reason, candidate in reasons.items():
        done = process(candidate)
        assert isinstance(done, Rejection)
        assert (done.reason, done.stage) == (reason, "process")
        assert done.candidate is not None


def test_a_function_gets_its_signature_from_a_solution() -> None:
    solution = Solution(code="def f(x):\n    return x + 1\n")
    tests = (TestCase(input="1", output="2"),)
    done = process(RAW.model_copy(update={"fn_name": "f", "tests": tests, "solutions": (solution,)}))
    assert isinstance(done, Candidate)
    assert done.starter_code == "def f(x):\n    "


def test_real_english_problems_pass_and_chinese_ones_are_kept_apart() -> None:
    for name in ("deepseek_en", "livecodebench"):
        for problem in ALL[name]()[::20]:
            done = process(problem)
            assert isinstance(done, Candidate), done
            assert process(done).statement == done.statement  # type: ignore[union-attr]
    for problem in ALL["deepseek_zh"]()[::20]:
        done = process(problem)
        assert isinstance(done, Rejection)
        assert done.reason == "not_english"


@pytest.mark.parametrize("default", ["+".join("1" * 1500), "-" * 20_000 + "1"])
def test_a_signature_too_deep_to_read_is_none(default: str) -> None:
    given = Candidate(id="a/1", dataset="a", statement_found="Return the sum.", fn_name="f",
                      solutions=(Solution(code=f"def f(a={default}):\n    return a\n"),))  # fmt: skip
    found = process(given)
    assert isinstance(found, Rejection)
    assert found.reason in ("no_signature", "not_english")


def test_a_dropped_test_is_flagged() -> None:
    tests = (TestCase(input="[1]", output="1"), TestCase(input="[1", output="1"))
    given = Candidate(id="a/1", dataset="a", statement_found="Return the sum of the numbers in the list that is given.",
                      fn_name="f", starter_code="def f(a):\n", tests=tests)  # fmt: skip
    found = process(given)
    assert isinstance(found, Candidate)
    assert "tests_dropped" in found.flags


FOUND = (
    "给你一个整数数组 `nums` ，返回其中 **所有** 元素的和。数组长度不超过 100 。\n\n示例 1：\n\n"
    "输入：nums = [1,2,3]\n输出：6\n解释：和为 6 。\n\n"
    "提示：\n\n1 <= nums.length <= 100\n"
)
CANDIDATE = Candidate(
    id="set/1",
    dataset="set",
    title="求和",
    statement_found=FOUND,
    fn_name="total",
    starter_code="def total(nums):\n    ",
    tests=(TestCase(input="[1,2,3]", output="6"),),
)


def good(number: int, messages: list[dict[str, str]]) -> str:
    """Put English where Chinese was, and leave every mark alone."""
    text = messages[1]["content"].partition("\n\n")[2]
    chinese = r"[一-鿿，。、：（）\s]*[一-鿿][一-鿿，。、：（） ]*"
    english = re.sub(chinese, " return the sum of all of the elements ", text)
    return json.dumps({"title": "Sum", "statement": english})


def without_a_mark(number: int, messages: list[dict[str, str]]) -> str:
    return re.sub(r"\[\[P1\]\]", "", good(number, messages))


def run(settings: EndpointSettings, cache: Path | None = None) -> Candidate | Rejection:
    wanted = ProcessSettings(translation=TranslationSettings(endpoint=settings))
    return process(CANDIDATE, wanted, Endpoint(settings, cache=cache))


def test_a_good_reply_becomes_the_statement_and_the_original_is_kept() -> None:
    with endpoint_of(good) as (settings, asked):
        done = run(settings)
    assert isinstance(done, Candidate)
    assert done.statement_found == FOUND
    assert "return the sum" in done.statement
    assert "```\nnums = [1,2,3]\n```" in done.statement
    assert "1 <= nums.length <= 100" in done.statement
    assert (done.title, done.natural_language, done.flags) == ("Sum", "zh", ())
    assert "nums" not in asked[0]["messages"][1]["content"]
    (line,) = [line for line in done.lineage if line.step.startswith("translate") and line.field == "statement"]
    assert line.detail.startswith("zh to en by tiny, prompt ")


def test_a_lost_placeholder_is_asked_for_again() -> None:
    with endpoint_of(lambda number, chat: (without_a_mark if number == 1 else good)(number, chat)) as (settings, asked):
        done = run(settings)
    assert isinstance(done, Candidate)
    assert len(asked) == 2
    assert "[[P1]] is missing" in asked[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (without_a_mark, "[[P1]] is missing"),
        (lambda number, chat: "I cannot do that", "not a JSON object"),
        (lambda number, chat: '{"title": "Sum"}', "lacks statement"),
        (lambda number, chat: json.dumps({"title": "x", "statement": chat[1]["content"]}), "still in zh"),
        (lambda number, chat: json.dumps({"title": "x", "statement": ""}), "empty"),
    ],
)
def test_replies_that_stay_bad_turn_the_row_away(reply: Reply, said: str) -> None:
    with endpoint_of(reply) as (settings, asked):
        done = run(settings)
    assert isinstance(done, Rejection)
    assert (done.reason, done.stage) == ("translation_failed", "process")
    assert said in done.detail
    assert len(asked) == 3
    assert done.candidate is not None
    assert done.candidate.statement_found == FOUND


def test_what_was_answered_once_is_not_asked_again(tmp_path: Path) -> None:
    with endpoint_of(good) as (settings, asked):
        assert run(settings, cache=tmp_path) == run(settings, cache=tmp_path)
        assert len(asked) == 1
        other = settings.model_copy(update={"model": "large"})
        run(other, cache=tmp_path)
        assert len(asked) == 2


def test_a_broken_machine_is_an_error_and_a_hiccup_is_not() -> None:
    def hiccup(number: int, chat: list[dict[str, str]]) -> str:
        return "HTTP503" if number == 1 else good(number, chat)

    with endpoint_of(hiccup, max_retries=1) as (settings, _):
        assert isinstance(run(settings), Candidate)
    broken = endpoint_of(lambda number, chat: "HTTP500", max_retries=0)
    with broken as (settings, _), pytest.raises(ConfigError, match="check"):
        run(settings)


def test_without_an_endpoint_the_row_is_kept_apart() -> None:
    done = process(CANDIDATE)
    assert isinstance(done, Rejection)
    assert (done.reason, done.detail) == ("not_english", "zh")


def test_the_key_of_a_reply_holds_all_that_decides_it() -> None:
    one = EndpointSettings(base_url="http://a/v1", model="m")
    other = EndpointSettings(base_url="http://b/v1", model="m")
    chat = [{"role": "user", "content": "hi"}]
    assert reply_key(one, chat, {}) == reply_key(other, chat, {})
    assert reply_key(one, chat, {}) != reply_key(one, chat, {"type": "object"})


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
