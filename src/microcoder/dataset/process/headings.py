"""Which line of a statement opens which part of it, in the languages that problem sets are written in."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

Part = Literal["statement", "input", "output", "constraints", "example", "explanation", "note", "other"]

_WORDS: dict[Part, str] = {
    "statement": "problem statement|statement|description|problem description|problem|task|题目描述|题目|问题描述|描述|"
    "問題文|problembeskrivning|uppgift|условие|условие задачи|descripción|enunciado",
    "input": "input|inputs|input format|input specification|input description|the input|输入|输入格式|"
    "输入描述|输入说明|入力|入力形式|"
    "indata|inmatning|входные данные|формат входных данных|формат ввода|entrada|entrada del problema|input data|"
    "standard input",
    "output": "output|outputs|output format|output specification|output description|the output|输出|"
    "输出格式|输出描述|输出说明|"
    "出力|出力形式|utdata|utmatning|выходные данные|формат выходных данных|формат вывода|salida|saída|output data|"
    "standard output",
    "constraints": "constraints|constraint|limits|limitations|bounds|提示|数据范围|数据规模|"
    "数据规模与约定|约束|约束条件|限制|制約|"
    "begränsningar|ограничения|restricciones|restrições",
    "example": "example|examples|sample|samples|sample test|sample tests|sample case|sample cases|sample test case|"
    "sample test cases|test case|test example|样例|示例|例|例子|样例说明|exempel|пример|примеры|"
    "ejemplo|ejemplos|exemplo|exemplos|例題",
    "explanation": "explanation|explanations|解释|说明|解説|förklaring|förklaring av exempel|пояснение|explicación|"
    "sample explanation|explanation of sample|explanation of samples|explanation of examples",
    "note": "note|notes|remark|remarks|hint|hints|comment|comments|注|注意|备注|附注|примечание|nota|notas|anmärkning",
    "other": "scoring|points|subtasks|grading|poängsättning|bedömning|test cases|testfall|follow up|"
    "follow-up|进阶|进阶问题|"
    "background|背景|story|interaction|interaction protocol|file input|file output|source|credits|partial score|"
    "test groups|image|testing|local testing|deluppgifter|testverktyg|interaktion|kommentar",
}
_PART_OF: dict[str, Part] = {word: part for part, words in _WORDS.items() for word in words.split("|")}
_EXAMPLE_INPUT = re.compile(
    r"(?:sample|example)s?(?: test)? ?inputs?|input (?:sample|example)|样例输入|输入样例|示例输入|"
    r"入力例|exempel på indata|пример ввода|入力サンプル"
    r"|indataexempel|exempelindata|ejemplo de entrada|entrada de ejemplo"
)
_EXAMPLE_OUTPUT = re.compile(
    r"(?:sample|example)s?(?: test)? ?outputs?|output (?:sample|example)|output for (?:the )?sample "
    r"input|样例输出|输出样例|示例输出|出力例|"
    r"exempel på utdata|пример вывода|出力サンプル|utdataexempel|exempelutdata|ejemplo de salida|salida de ejemplo"
)
_INLINE = re.compile(
    r"^[ \t>*_-]*(?P<word>sample input|sample output|input|output|explanation|expected output|输入|输出|"
    r"解释|入力|出力|説明|"
    r"indata|utdata|entrada|salida|ввод|вывод|explicación)\s*\d{0,2}[*_]*\s*[:：=][*_]*+[ \t]*(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_INLINE_PARTS = {
    "sample input": "input", "input": "input", "输入": "input", "入力": "input", "indata": "input", "entrada": "input",
    "ввод": "input", "sample output": "output", "output": "output", "expected output": "output", "输出": "output",
    "出力": "output", "utdata": "output", "salida": "output", "вывод": "output",
}  # fmt: skip
_DECORATION = " \t#*_=>-.:：|~`【】[]<>()（）"
_NUMBER = re.compile(r"[ \t#]*(?:\d{1,2}|[一二三四五六七八九十])$|^\d{1,2}[.)、]?\s+")


class Heading(NamedTuple):
    """A line that opens a part."""

    part: Part | Literal["example_input", "example_output"]
    rest: str
    """What stands behind the label on the same line; empty for a heading of its own."""
    title: str
    """The words of the heading."""


def read_heading(line: str, *, in_example: bool) -> Heading | None:
    """Return what a line opens, or None where it is text.

    Args:
        line: one line of a statement.
        in_example: an example was opened before, so that `Input` is its input and `Input: n = 3` its start.
    """
    if not line.strip():
        return None
    if in_example and (inline := _INLINE.match(line)):
        part = _INLINE_PARTS.get(inline["word"].lower())
        rest = inline["rest"].strip()
        if part:
            return Heading("example_input" if part == "input" else "example_output", rest, inline["word"])
        return Heading("explanation", rest, inline["word"])
    if len(line) > 60:
        return None
    is_marked = line.lstrip()[:1] in "#*-=_【[<|" or line.rstrip()[-1:] in ":：*-"
    words = unicodedata.normalize("NFC", line).strip(_DECORATION).lower()
    words = re.sub(r"\s+", " ", _NUMBER.sub("", words)).strip(_DECORATION)
    if not words:
        return None
    if _EXAMPLE_INPUT.fullmatch(words):
        return Heading("example_input", "", words)
    if _EXAMPLE_OUTPUT.fullmatch(words):
        return Heading("example_output", "", words)
    part = _PART_OF.get(words)
    is_markdown = re.match(r"\s*#{1,6}\s", line) is not None  # `#1's answer` is a sentence's end
    if is_markdown and (part is None or (part == "explanation" and line.lstrip().startswith("## "))):
        return Heading("other", "", line.strip(" \t#*:："))
    # A bare word can be text (a line of an example, a name); these are never alone on a line in prose.
    if part is None or (not is_marked and not line.lstrip()[:1].isupper() and words.isascii()):
        return None
    if in_example and part in ("input", "output") and not line.lstrip().startswith("##"):
        return Heading("example_input" if part == "input" else "example_output", "", words)
    return Heading(part, "", line.strip(" \t#*:：-=_"))
