"""LeetCodeDataset (`newfacade/LeetCodeDataset`) and DeepSeek's LeetCode contests: assertions with named arguments."""

from __future__ import annotations

import re

from microcoder.formats.candidates import Candidate
from microcoder.formats.encodings import DecodedTests, asserted_tests, complete
from microcoder.formats.programs import python_solutions
from microcoder.formats.row import Malformed, Row

_MAKES_LISTS = re.compile(r"^(\w+) = lambda [^\n]*\bListNode\(", re.MULTILINE)
_TELLS_LISTS = re.compile(r"^(\w+) = lambda (?![^\n]*\bListNode\()[^\n]*\.next\b", re.MULTILINE)
_QUOTES = '"""'


def read_leetcodedataset(row: Row) -> Candidate:
    """Read a row of version 0.3 (fields of its own) or 0.2 (title and starter code inside `meta`)."""
    meta = row.inner("meta")
    slug, fn_name = row.name("task_id"), row.text("entry_point").rpartition(".")[2]
    starter = row.optional("starter_code") or meta.optional("lang_code")
    if row.has("problem_description"):
        statement = row.statement("problem_description")
    else:
        statement = meta.statement("question_title", "question") if meta.values else row.statement("query")
    source = row.text("test")

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            notes=tests.notes,
            url=f"https://leetcode.com/problems/{slug}",
            platform="leetcode",
            title=slug,
            date=row.date("estimated_date"),
            tags=row.tags("tags"),
            platform_difficulty=row.optional("difficulty") or meta.optional("difficulty"),
            starter_code=starter or None,
            solutions=python_solutions([row.optional("completion")]),
            **tests.fields,
        )

    def decode() -> DecodedTests:
        codes = [code for code in (starter, row.optional("completion")) if f"def {fn_name}(" in code] or [starter]
        for code in codes:
            try:
                return asserted_tests(
                    [source], fn_name=fn_name, code=code, called=("candidate",), is_judged=row.is_judged
                )
            except Malformed:
                # Some starter code was renamed since; the solution has the names of the tests.
                if code is codes[-1]:
                    raise
        raise AssertionError("the last one returned or raised")

    return complete(build, decode)


def read_deepseek_leetcode(row: Row) -> Candidate:
    """Read a contest problem: its prompt is the statement in quotes, then the starter code."""
    meta = row.inner("meta")
    _, quoted, rest = row.statement("prompt").partition(_QUOTES)
    statement, closed, starter = rest.partition(_QUOTES)
    if not quoted or not closed or not statement.strip():
        raise Malformed("no_statement", "prompt has no statement in triple quotes")
    # Before it stand the classes of lists and trees, with methods of their own.
    fn_name = (starter.partition("class Solution")[2] or starter).partition("def ")[2].partition("(")[0].strip()
    source = _name_lists(row.text("test"))

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement.strip(),
            notes=[*tests.notes, ("statement_found", "the quoted part of the prompt; the rest is starter_code")],
            url=row.optional("url"),
            platform="leetcode",
            title=meta.optional("title") or row.name("title", "task_id"),
            date=row.date("start_time"),
            platform_difficulty=meta.optional("difficulty"),
            starter_code=starter.strip("\n") or None,
            **tests.fields,
        )

    return complete(build, lambda: asserted_tests([source], fn_name=fn_name, code=starter, is_judged=row.is_judged))


def _name_lists(source: str) -> str:
    """Return tests that make and read linked lists by lambdas of their own in the words that assertions are read by."""
    made, told = _MAKES_LISTS.search(source), _TELLS_LISTS.search(source)
    if made and told:
        source = source.replace(f"{made[1]}(", "list_node(")
        source = re.sub(rf"assert {told[1]}\((.*)\) == (.*)", r"assert is_same_list(\1, list_node(\2))", source)
    return source
