"""Where a response ends: marks of chat templates and of documents, also those written as text.

A base model, or a model without a stop token, goes on after its answer: it makes up the next turn,
or the next document. `find_token_ends` yields the special tokens that end an answer; nobody writes
them by accident. `find_turn_ends` yields words that may begin a turn, such as `User:`; they count
only after a program.
"""

import re
from collections.abc import Iterator

_BAR = r"[|\uff5c]"
"""The bar of a special token, as ASCII has it or as wide as a Chinese character."""
_PIPED = (
    r"im_(?:start|end|sep|user|system|middle|assistant)",
    r"eo[tm](?:_id)?",
    r"bo[tm](?:_id)?",
    r"(?:start|end)_header_id",
    r"header_(?:start|end)",
    r"(?:begin|end)_?of_?(?:text|sentence|turn|document|utterance|prompt|message|role|response"
    r"|file)",
    r"start_?of_?(?:text|sentence|turn|document|role|response)",
    r"(?:start|end)_of_turn_token",
    r"(?:user|chatbot|system)_token",
    r"end_response",
    r"(?:end|return|call|eos|eod|bos|pad|user|human|system|assistant|bot|observation|tool)",
    r"message_(?:start|end)|turn_end|user_(?:start|end)|assistant_end",
    r"start(?=[|\uff5c]>\s*(?:user|system|developer|tool))",
    r"(?:file_sep|repo_name|fim_(?:prefix|middle|suffix|pad)|file_separator)",
    r"extra_\d+|hy_\w+",
    r"[\w\u2581]*\u2581[\w\u2581]*",
)
"""Names of special tokens between bars.

They are of ChatML, Llama, Phi, Command, GLM, Granite, StarCoder and others. DeepSeek writes
`\u2581` in place of underscores, which no program does.
"""
_ANGLED = (
    r"/s",
    r"(?:start|end)_of_turn",
    r"turn\||\|turn",
    r"eos|bos|eop|eosp|eoa|eoh|eod|eot",
    r"EOS_TOKEN|BOS_TOKEN",
    r"seed:[be]os",
    r"reserved_10[67]",
    r"file_sep|repo_name|reponame|filename|fim_(?:prefix|middle|suffix|pad)",
    r"jupyter_(?:start|text|code|output|script)|empty_output|issue_(?:start|comment|closed)",
    r"commit_(?:before|msg|after)|pr(?:_status)?(?=>(?:Title|opened|closed))",
    r"extra_id_1(?=>\s*(?:User|System))",
    r"unk|pad",
)
"""Names of special tokens between angle brackets.

They are of Llama 2, Mistral, Gemma, GLM, StarCoder and others.
"""
_OTHERS = (
    r"(?:<s>\s*)?\[/?INST\]",
    r"<</?SYS>>",
    r"\[\|(?:endofturn|user|system|assistant|end)\|\]",
    r"\[(?:EOS|EOT|gMASK)\]",
    r"\[e~\[|\]~b\]",
    r"<\[(?:\w+\u2581[\w\u2581]+|fim-\w+)\]>",
    r"^<(?:human|bot)>:",
    r"^@@ (?:Instruction|Response)[ \t]*$",
    r"^[ \t]*\[/?(?:DONE|BEGIN)\][ \t]*$",
)
"""Whole patterns of tokens in other brackets, and of lines that stand for a token."""
_TOKENS = re.compile(
    rf"(?P<piped><{_BAR}(?:{'|'.join(_PIPED)}){_BAR}>)"
    rf"|<(?:{'|'.join(_ANGLED)})>"
    rf"|{'|'.join(_OTHERS)}",
    re.IGNORECASE | re.MULTILINE,
)
"""A special token."""
_IS_GOING_ON = re.compile(rf"\s*<{_BAR}start{_BAR}>\s*assistant", re.IGNORECASE)
"""Behind `<|end|>`: gpt-oss ends its analysis and begins its answer."""
_STRUCK_OUT = re.compile(r"<s>[^\n]*$", re.IGNORECASE)
"""Before `</s>`: text that is struck out in HTML."""
_OPENERS = re.compile(
    r"\b(?:assistant|model|gpt|bot|ai)\b:?|#+\s*(?:response|assistant|answer):?", re.I
)
"""Roles and headings that stand beside the tokens at the start of an answer."""
_SPEAKERS = r"Human|User|Instruction|Assistant|Student|GPT4 Correct User|Falcon"
"""Who speaks at the start of a turn."""
_ASKED = r"Question|Problem|Task|Q|Exercise|Prompt"
"""What is asked at the start of another document of the kind."""
_TURNS = re.compile(
    rf"^(?:\#{{2,4}}[ ]?(?:{_SPEAKERS}|System|Question|Problem)s?(?:[ ]\d+)?[ ]?:?[ \t]*$"
    rf"|\#{{2,4}}[ ]?(?:{_SPEAKERS}|System|Question|Problem):"
    rf"|(?:\*\*)?(?:{_SPEAKERS})(?:\*\*)?:"
    rf"|(?P<asks>\#{{2,4}}[ ]?Input:|(?:\*\*)?(?:{_ASKED})(?:[ ]?\d+)?(?:\*\*)?:))",
    re.IGNORECASE | re.MULTILINE,
)
"""The start of a line that may begin a made-up turn."""
_ANSWERS = re.compile(
    r"^(?:\*\*|#+ ?)?(?:A|Answer|Solution|Response|Completion)(?:\*\*)?:", re.I | re.M
)
"""Behind `Q:` and the like: only with an answer is it a made-up turn."""
_INTRODUCES = re.compile(
    r":[*_ \t]*$|^#|^\*\*.*\*\*$"
    r"|\b(?:samples?|examples?|sessions?|dialog(?:ue)?s?|conversations?|transcripts?)\b[^.]*$",
    re.IGNORECASE,
)
"""The line before a sample: what comes next is shown, and no turn."""
_MENTION_BEFORE = re.compile(r"(?<!``)`\Z|['\"(]\Z|[\w,]\s\Z")
"""What stands before a token that a sentence is about."""
_MENTION_AFTER = re.compile(r"[`'\")]|[ \t][a-z]")
"""What stands behind a token that a sentence is about."""
_MOST_BEFORE_TOKEN = 200
"""Characters before a token that are looked at."""
_MOST_ABOVE_TURN = 1000
"""Characters before a turn that are looked at."""
_MOST_BEFORE_ANSWER = 1000
"""A text of so many characters before an answer is more than tokens and roles."""


def find_token_ends(text: str) -> Iterator[re.Match[str]]:
    """Yield the special tokens that may end an answer, in order.

    Those that prose only names are left out.
    """
    for token in _TOKENS.finditer(text):
        # Not all that stands before: a response of tokens alone must not take quadratic time.
        window_start = max(0, token.start() - _MOST_BEFORE_TOKEN)
        before = text[window_start : token.start()]
        if _MENTION_BEFORE.search(before[-3:]) and _MENTION_AFTER.match(text, token.end()):
            continue
        is_end = token.group().strip("<>|\uff5c").lower() == "end"
        if is_end and _IS_GOING_ON.match(text, token.end()):
            continue
        if token.group() == "</s>" and _STRUCK_OUT.search(before):
            continue
        yield token


def is_before_answer(text: str) -> bool:
    """Whether a text has nothing but special tokens and names of roles.

    A token that follows such a text opens the answer.
    """
    if len(text) >= _MOST_BEFORE_ANSWER:
        return False
    return not _OPENERS.sub("", strip_tokens(text)).strip()


def strip_tokens(code: str) -> str:
    """Return code without the special tokens in it."""
    return _TOKENS.sub("", code)


def find_turn_ends(text: str) -> Iterator[int]:
    """Yield the offsets of lines that may begin a made-up turn.

    Lines that the line before announces are left out.
    """
    for turn in _TURNS.finditer(text):
        window_start = max(0, turn.start() - _MOST_ABOVE_TURN)
        above = text[window_start : turn.start()]
        line_above = above.rstrip().rpartition("\n")[2].strip()
        # In the middle of a paragraph such words are part of it.
        is_apart = above.endswith(("\n\n", "\n\r\n"))
        is_after_sentence = line_above.endswith((".", "!", "?", "`", "~"))
        if not is_apart and not is_after_sentence:
            continue
        if _INTRODUCES.search(line_above):
            continue
        if turn["asks"] and not _ANSWERS.search(text, turn.end()):
            continue
        yield turn.start()
