"""doocs/leetcode: a folder a problem, statements in Markdown in Chinese and English, solutions in several languages.

It has no tests; the examples of the statement become tests where they are literals.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator, Mapping

from microcoder.data.formats.assertions import read_assertions, read_parameters
from microcoder.data.formats.candidates import Candidate, DecodedTests, Solution
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import head_of, infer_call_of, language_of, public_methods

_READMES = (("en", "README_EN.md"), ("zh", "README.md"))
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_HEADING = re.compile(r"^# \[(?:\w+\. )?(.+?)\]\((\S+?)\)", re.MULTILINE)
_BEGIN, _END = "<!-- description:start -->", "<!-- description:end -->"
_TAG = re.compile(r"<[^<>]*>")
_LABEL = re.compile(r"^[ \t]*(?:(Input|输入)|Output|输出)[ \t]*[:\uff1a]?", re.MULTILINE)
_MAX_INPUT = 2000


def read_doocs(row: Row) -> Candidate:
    """Read a problem's folder, in English where it is there."""
    files = row.files()
    found = [(language, files[name]) for language, name in _READMES if name in files]
    if not found:
        raise Malformed("no_statement", "the folder has no README")
    language, text = found[0]
    front = _read_front(row, text)
    heading = _HEADING.search(text)
    description, is_closed, _ = text.partition(_BEGIN)[2].partition(_END)
    description = description.strip()
    if not is_closed or not description:
        raise Malformed("no_statement", f"the {language} README has no description")
    solutions = tuple(_read_solutions(files))
    code = next((s.code for s in solutions if s.language == "python"), "")
    methods = public_methods(code)
    tests = _read_examples(description, code, methods[0]) if len(methods) == 1 else DecodedTests()
    notes = [("statement_found", f"also there in {other}") for other, _ in found[1:]]
    return row.candidate(
        description,
        tests,
        notes=notes,
        url=heading[2] if heading else "",
        platform="leetcode",
        title=heading[1] if heading else row.name("name"),
        tags=front.tags("tags"),
        platform_difficulty=front.name("difficulty"),
        natural_language=language,
        starter_code=head_of(code, methods[0]) if len(methods) == 1 else None,
        solutions=solutions,
        groups=("sample",) * len(tests.tests),
        fn_name=methods[0] if len(methods) == 1 else None,
    )


def _read_front(row: Row, text: str) -> Row:
    # PyYAML comes with the data extra; rows that are no folders do without.
    from microcoder.data.formats.yaml_text import read_yaml

    found = _FRONT.match(text)
    try:
        values = read_yaml(found[1]) if found else {}
    except ValueError as error:
        raise Malformed("bad_encoding", f"front matter: {error}") from None
    if not isinstance(values, Mapping):
        raise Malformed("wrong_type", f"front matter is {type(values).__name__}, not an object")
    return row.over(values)


def _read_solutions(files: Mapping[str, str]) -> Iterator[Solution]:
    for name in sorted(files):
        if name.rpartition(".")[0] == "Solution" and (language := language_of(name)):
            yield Solution(code=files[name], language=language, name=name)


def _read_examples(description: str, code: str, fn_name: str) -> DecodedTests:
    """Read `Input: a = [1], k = 2` and `Output: 3` as the call that they describe."""
    plain = html.unescape(_TAG.sub("", description))
    calls = [f"assert {fn_name}({given}) == {_literal(expected)}" for given, expected in _find_examples(plain)]
    parameters = read_parameters(code, fn_name)
    tests, dropped = [], []
    for call in calls:
        asserted = read_assertions(call, called=(fn_name,), parameters=parameters)
        tests += asserted.tests
        dropped += asserted.dropped
    notes = [("tests", "examples of the statement")] if tests else []
    if dropped:
        notes.append(("tests", f"{len(dropped)} of {len(calls)} examples left out: {dropped[0]}"))
    return DecodedTests(tuple(tests), fn_name, notes=tuple(notes), call=infer_call_of(code, fn_name, tests))


def _find_examples(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands between `Input` and `Output`, and the line after `Output`; a statement may be hostile."""
    for label, answer in itertools.pairwise(_LABEL.finditer(text)):
        if label[1] and not answer[1]:
            given = text[label.end() : answer.start()].strip()
            window = text[answer.end() : answer.end() + _MAX_INPUT]
            expected, is_whole, _ = window.lstrip().partition("\n")
            if given and expected and len(given) <= _MAX_INPUT and (is_whole or len(window) < _MAX_INPUT):
                yield given, expected.rstrip()


def _literal(text: str) -> str:
    """JSON's words as Python's."""
    return {"true": "True", "false": "False", "null": "None"}.get(text.strip(), text.strip())


FORMATS = (
    Format(
        "doocs",
        "doocs/leetcode",
        read_doocs,
        licence="CC-BY-SA-4.0",
        folders=Folders(("README_EN.md", "README.md"), ("README.md", "README_EN.md", "Solution.*")),
    ),
)
