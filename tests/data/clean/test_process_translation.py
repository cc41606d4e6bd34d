from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from local_endpoint import Reply, endpoint_of

from microcoder.data.clean import ProcessSettings, TranslationSettings, process
from microcoder.data.completions import Endpoint, EndpointSettings, reply_key
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import TestCase

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
    assert "nums" not in asked[0][1]["content"]
    (line,) = [line for line in done.lineage if line.step.startswith("translate") and line.field == "statement"]
    assert line.detail.startswith("zh to en by tiny, prompt ")


def test_a_lost_placeholder_is_asked_for_again() -> None:
    with endpoint_of(lambda number, chat: (without_a_mark if number == 1 else good)(number, chat)) as (settings, asked):
        done = run(settings)
    assert isinstance(done, Candidate)
    assert len(asked) == 2
    assert "[[P1]] is missing" in asked[1][-1]["content"]


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
