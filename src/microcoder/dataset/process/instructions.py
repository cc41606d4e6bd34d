"""What a statement says about the form of the answer: the source's own words go out; prompts add ours."""

from __future__ import annotations

import ast
import re

from microcoder.formats.candidates import Candidate
from microcoder.syntax import parse_source

# Each source bakes its own prompt into the statement; two instructions in one prompt contradict each other.
_BAKED = (
    r"(?:Please )?(?:solve|complete) the (?:following|below) (?:coding|programming|python|"
    r"code)[^\n]{0,80}(?:problem|language|precisely|code)[^\n]{0,60}:?[ \t]*$",
    r"Solve the following coding problem using the programming language \w+:?[ \t]*$",
    r"The input will be (?:given via )?stdin and you should print your solution to stdout\.?[ \t]*$",
    r"Now solve the problem and return the code\.?[ \t]*$",
    r"Write (?:a )?Python code to solve the problem\. (?:Please )?(?:present|place) "
    r"the (?:solution )?code in[ \t]*(?:\n```python\n[^`]*```(?: at the end\.?)?)?",
    r"You will be given a question \(problem specification\) and will generate a correct Python program[^\n]*$",
    r"You are an expert (?:Python|competitive|code)[^\n]*$",
    r"You are a helpful and harmless assistant\.[^\n]*$",
    r"(?:Please )?use [\w+#]+ (?:programming )?language only\.?[ \t]*$",
    r"You must use ```[\w+#]+ for just the final solution code block[^\n]*\n```[\w+#]+\n[^`]{0,80}```[ \t]*$",
    r"Please (?:complete|use) the (?:code|following)[^\n]{0,60}(?:below|starter code)[^\n]{0,60}:?[ \t]*$",
    r"请完成下面的代码来解决上述问题[:：]?[ \t]*$",
    r"(?:Present|Put|Enclose|Wrap) (?:the|your) (?:code|solution|answer)[^\n]{0,80}(?:code block|"
    r"backticks|delimiters)[^\n]{0,80}$",
    r"Read the inputs from stdin solve the problem and write the answer to stdout[^\n]*$",
    r"Your (?:code|solution) should be enclosed in triple backticks[^\n]*$",
    r"\#\#\# (?:Format|Question|Answer)[^\n]*$",
)
_BAKED_PATTERN = re.compile("|".join(rf"^[ \t>]*{phrase}" for phrase in _BAKED), re.IGNORECASE | re.MULTILINE)
_CODE_AT_END = re.compile(r"\n```(?:python|py)?\n(?P<code>[^`]*?)```\s*\Z")


def strip_instruction(statement: str, starter_code: str | None = None) -> str:
    """Return the statement without the prompt that its source baked into it.

    Args:
        statement: a clean statement.
        starter_code: dropped from the end of the statement where it stands there, since the record holds it.
    """
    text = _BAKED_PATTERN.sub("", statement)
    found = _CODE_AT_END.search(text)
    if found and _letters(found["code"]) in ("", _letters(starter_code or "")):
        text = text[: found.start()]
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" if text.strip() else ""


def _letters(code: str) -> str:
    return re.sub(r"\s|#.*", "", code)


def find_starter_code(candidate: Candidate) -> str | None:
    """Return the signature of the function that is asked for, from an accepted Python solution, or None.

    Sources that name a function without showing it (APPS, TACO) cannot be answered: parameters are not said.
    """
    if candidate.starter_code or not candidate.fn_name:
        return candidate.starter_code
    for solution in candidate.solutions:
        if solution.language != "python" or solution.known != "accepted":
            continue
        try:
            found = _signature(parse_source(solution.code).body, candidate.fn_name)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if found:
            return found
    return None


def _signature(body: list[ast.stmt], name: str) -> str | None:
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return f"{_head(statement)}\n    "
        if isinstance(statement, ast.ClassDef):
            for inner in statement.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == name:
                    return f"class {statement.name}:\n    {_head(inner)}\n        "
    return None


def _head(function: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"def {function.name}({ast.unparse(function.args)}){returns}:"
