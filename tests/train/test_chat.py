"""Prompts as token ids: template options act or are refused, on both engines by the same code."""

from __future__ import annotations

import pytest
from transformers import PreTrainedTokenizerFast

from microcoder import ConfigError
from microcoder.judge.core.types import Prompt, Turn
from microcoder.train.run.warm import CHAT_TEMPLATE, train_tokenizer
from microcoder.train.run.weights import check_options, encode_chats, opens_thinking, render_chat

QWEN_LIKE = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{%- generation %}{{ message.content }}{%- endgeneration %}<|im_end|>\n{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n"
    "{%- if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{%- else %}<think>\n"
    "{%- endif %}{%- endif %}"
)
PROMPT = Prompt("p", "print 1", (Turn("system", "Be brief."),))


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_tokenizer(["print 1", "Be brief."] * 50, vocab_size=300)


@pytest.fixture
def thinker(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    tokenizer.chat_template = QWEN_LIKE
    return tokenizer


@pytest.fixture
def base(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    tokenizer.chat_template = None
    return tokenizer


def test_template_options_decide_how_the_response_begins(thinker: PreTrainedTokenizerFast) -> None:
    check_options(thinker, {"enable_thinking": False})
    assert opens_thinking(thinker, {})
    assert not opens_thinking(thinker, {"enable_thinking": False})
    (plain,), (quiet,) = (encode_chats(thinker, [PROMPT.as_chat()], o) for o in ({}, {"enable_thinking": False}))
    assert thinker.decode(quiet) == render_chat(thinker, PROMPT.as_chat(), {"enable_thinking": False})
    assert plain != quiet
    assert "Be brief." in thinker.decode(quiet)


def test_an_option_that_the_template_does_not_look_at_is_refused(thinker: PreTrainedTokenizerFast) -> None:
    for options in ({"enable_thinkng": False}, {"add_generation_prompt": False}):
        with pytest.raises(ConfigError, match=rf"{next(iter(options))} would change nothing: .* check its name"):
            check_options(thinker, options)
    check_options(thinker, {"enable_thinking": True})  # its default, and an option all the same
    thinker.chat_template = CHAT_TEMPLATE  # the micro lab's, which has none
    with pytest.raises(ConfigError, match="check its name"):
        check_options(thinker, {"enable_thinking": False})


def test_a_base_model_reads_the_turns_as_plain_text(base: PreTrainedTokenizerFast) -> None:
    assert render_chat(base, PROMPT.as_chat(), {}) == "Be brief.\n\nprint 1"
    (ids,) = encode_chats(base, [PROMPT.as_chat()], {})
    assert base.decode(ids) == "Be brief.\n\nprint 1"
    with pytest.raises(ConfigError, match="this model has no chat template"):
        check_options(base, {"enable_thinking": False})
