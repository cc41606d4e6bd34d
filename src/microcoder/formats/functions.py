"""Sets whose tests are assertions about a function: KodCode-V1, LeetCodeDataset, DeepSeek's LeetCode contests."""

from __future__ import annotations

import ast
import re

from microcoder.formats.candidates import Note
from microcoder.formats.columns import Columns
from microcoder.formats.format import ASSERTIONS, Format
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import parse_python

_RATES = (("gpt_pass_percentage", "gpt-4o"), ("r1_pass_percentage", "deepseek-r1"))
_MAKES_LISTS = re.compile(r"^(\w+) = lambda [^\n]*\bListNode\(", re.MULTILINE)
_TELLS_LISTS = re.compile(r"^(\w+) = lambda (?![^\n]*\bListNode\()[^\n]*\.next\b", re.MULTILINE)
_QUOTES = '"""'


def _find_function(row: Row) -> Row:
    """Add the function that KodCode's tests import; where they import several, the first that is declared."""
    if not row.is_judged:
        row.text("solution")
    tree = parse_python(row.text("test", "test_code"))
    imported = [
        alias.name
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.ImportFrom) and node.module == "solution"
        for alias in node.names
    ]
    declared = [item.optional("function_name") for item in row.rows("test_info")]
    name = next((name for name in declared if name in imported), (imported or declared or [""])[0])
    return row.over({**row.values, "fn_name": name})


def _find_declaration(row: Row) -> str | None:
    declared = [item.optional("function_declaration") for item in row.rows("test_info")]
    return next((text for text in declared if f"def {row.get('fn_name')}(" in text), None)


def _read_rates(row: Row) -> tuple[str, ...]:
    rates = [(row.get(name), model) for name, model in _RATES]
    return tuple(
        f"{model}={rate:g}"
        for rate, model in rates
        if isinstance(rate, int | float) and not isinstance(rate, bool) and 0 <= rate <= 1
    )


def _read_slug(row: Row) -> Row:
    """Add the function's name and the page of a row of LeetCodeDataset."""
    entry_point = row.text("entry_point").rpartition(".")[2]
    url = f"https://leetcode.com/problems/{row.name('task_id')}"
    return row.over({**row.values, "fn_name": entry_point, "url": url})


def _take_prompt_apart(row: Row) -> Row:
    """Add what a prompt of DeepSeek's holds: the statement in quotes, then the starter code."""
    _, quoted, rest = row.statement("prompt").partition(_QUOTES)
    statement, closed, starter = rest.partition(_QUOTES)
    if not quoted or not closed or not statement.strip():
        raise Malformed("no_statement", "prompt has no statement in triple quotes")
    # Before it stand the classes of lists and trees, with methods of their own.
    fn_name = (starter.partition("class Solution")[2] or starter).partition("def ")[2].partition("(")[0].strip()
    parts = {"statement": statement.strip(), "starter_code": starter.strip("\n"), "fn_name": fn_name}
    return row.over({**row.values, **parts, "test": _name_lists(row.text("test"))})


def _name_lists(source: str) -> str:
    """Return tests that make and read linked lists by lambdas of their own in the words that assertions are read by."""
    made, read = _MAKES_LISTS.search(source), _TELLS_LISTS.search(source)
    if made and read:
        source = source.replace(f"{made[1]}(", "list_node(")
        source = re.sub(rf"assert {read[1]}\((.*)\) == (.*)", r"assert is_same_list(\1, list_node(\2))", source)
    return source


def _name_platform(row: Row) -> str:
    return "leetcode"


def _note_quotes(row: Row) -> tuple[Note, ...]:
    return (("statement_found", "the quoted part of the prompt; the rest is starter_code"),)


FORMATS = (
    Format(
        "kodcode",
        "KodCode/KodCode-V1",
        Columns(
            prepare=_find_function,
            statement="question",
            assertions=("test", "test_code"),
            fn_name="fn_name",
            title="question_id",
            tags=("subset",),
            difficulty="gpt_difficulty",
            solutions="solution",
            also={"starter_code": _find_declaration, "pass_rates": _read_rates},
        ),
        licence="CC-BY-NC-4.0",
        tests_in="test",
        shape="a pytest file that imports the function from `solution`",
        marks=(("test", "solution", "question"), ("test_code", "solution"), ("test", "test_info"), ("test_code",)),
    ),
    Format(
        "leetcodedataset",
        "newfacade/LeetCodeDataset",
        # Version 0.3 has fields of its own, 0.2 title and starter code inside `meta`.
        Columns(
            prepare=_read_slug,
            statement=("problem_description", "meta.question_title", "meta.question", "query"),
            assertions="test",
            called=("candidate",),
            fn_name="fn_name",
            url="url",
            title="task_id",
            date="estimated_date",
            tags=("tags",),
            difficulty=("difficulty", "meta.difficulty"),
            starter_code=("starter_code", "meta.lang_code"),
            solutions="completion",
        ),
        tests_in="test",
        shape=f"{ASSERTIONS} (`def check(candidate)`)",
        marks=(
            ("entry_point", "test", "completion"),
            ("entry_point", "test", "problem_description"),
            ("entry_point", "test", "starter_code"),
        ),
    ),
    Format(
        "deepseek_leetcode",
        "deepseek-ai/DeepSeek-Coder",
        Columns(
            prepare=_take_prompt_apart,
            statement="statement",
            assertions="test",
            fn_name="fn_name",
            url="url",
            title=("meta.title", "title", "task_id"),
            date="start_time",
            difficulty="meta.difficulty",
            starter_code="starter_code",
            also={"platform": _name_platform, "notes": _note_quotes},
        ),
        tests_in="test",
        shape=ASSERTIONS,
        marks=(("test", "prompt_sft"),),
    ),
)
