"""Prompts as token ids: template options act or are refused, on both engines by the same code."""

import pytest
from transformers import PreTrainedTokenizerFast

from microcoder import ConfigError
from microcoder.judge.core.types import Prompt, Turn
from microcoder.train.rollouts import RolloutReader, opens_thinking, render_chat
from microcoder.train.run.warm import CHAT_TEMPLATE, train_tokenizer
from microcoder.train.run.weights import check_options, encode_chats

QWEN_LIKE = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{%- generation %}{{ message.content }}{%- endgeneration %}<|im_end|>\n"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n"
    "{%- if enable_thinking is defined and enable_thinking is false %}<think>\n"
    "\n"
    "</think>\n\n"
    "{%- else %}<think>\n"
    "{%- endif %}{%- endif %}"
)
PROMPT = Prompt("p", "print 1", (Turn("system", "Be brief."),))


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    found = train_tokenizer(["print 1", "Be brief."] * 50, vocab_size=300)
    found.chat_template = QWEN_LIKE
    return found


def test_an_option_that_the_template_does_not_look_at_is_refused(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    for options in ({"enable_thinkng": False}, {"add_generation_prompt": False}):
        with pytest.raises(
            ConfigError, match=rf"{next(iter(options))} would change nothing: .* check its name"
        ):
            check_options(tokenizer, options)
    check_options(tokenizer, {"enable_thinking": True})  # its default, and an option all the same
    tokenizer.chat_template = CHAT_TEMPLATE  # the micro lab's, which has none
    with pytest.raises(ConfigError, match="check its name"):
        check_options(tokenizer, {"enable_thinking": False})
    # A base model reads the turns as plain text.
    tokenizer.chat_template = None
    (ids,) = encode_chats(tokenizer, [PROMPT.as_chat()], {})
    assert (
        tokenizer.decode(ids)
        == render_chat(tokenizer, PROMPT.as_chat(), {})
        == "Be brief.\n\nprint 1"
    )
    with pytest.raises(ConfigError, match="this model has no chat template"):
        check_options(tokenizer, {"enable_thinking": False})


def test_a_response_begins_inside_the_thinking_and_is_cut_at_the_limit(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert opens_thinking(tokenizer, {}) > opens_thinking(tokenizer, {"enable_thinking": False})
    read = RolloutReader(tokenizer, (7,), True).read(
        "p",
        "?",
        [[5, 6], [5, 7], [5]],
        max_response_tokens=2,
    )
    assert [(one.is_truncated, one.completion[:7]) for one in read] == [
        (cut, "<think>") for cut in (True, False, False)
    ]
