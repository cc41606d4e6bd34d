"""Dodona exercises: `config.json`, a description in Markdown or HTML, tests for TESTed (YAML) or for the Python judge.

What is judged are values that a function returns, or what a program prints for its stdin; tests that do both are left
out. See https://docs.dodona.be/en/references/exercise-directory-structure/.
"""

from __future__ import annotations

import ast
import doctest
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from microcoder.data.formats.candidates import Candidate, DecodedTests
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.packages import Package
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import asserted_tests
from microcoder.data.formats.text import parse_python
from microcoder.judge.core.types import TestCase

TAKES = ("config.json", "description/*", "evaluation/*", "solution/*")
_STATEMENTS = (
    r"description/description\.(?P<language>en)\.(?:md|html)",
    r"description/description\.(?P<language>\w\w)\.(?:md|html)",
    r"description/description\.(?:md|html)",
)
_INNER = ("tabs", "units", "contexts", "cases", "testcases", "scripts", "script")


def read_dodona(row: Row) -> Candidate:
    """Read an exercise for Python, or one whose tests are of any language."""
    package = Package.open(row, texts=r"config\.json|description/.*\.(md|html)|evaluation/.*\.(ya?ml|in|out)")
    files, config = package.files, _read_config(package.files)
    path = package.find_statement(_STATEMENTS)
    language = str(config.get("programming_language") or "python").lower()
    if language not in ("python", "c++", "cpp", "java", "javascript"):
        raise Malformed("other_task", f"an exercise in {language}")
    package.read_solutions(
        ((name, "accepted") for name in sorted(files) if name.startswith("solution/")), left_out="in no known language"
    )
    names, labels = _object(_object(config, "description"), "names"), config.get("labels")
    spoken = posixpath.basename(path).split(".")[1]
    code = next((one.code for one in package.solutions if one.language == "python"), "")
    tests = _read_tests(files, code, row)
    return row.candidate(
        files[path],
        tests,
        notes=package.notes,
        platform="dodona",
        title=str(names.get(spoken) or next(iter(names.values()), "") or row.name("name")),
        tags=tuple(label for label in labels if isinstance(label, str)) if isinstance(labels, list) else (),
        natural_language=spoken if len(spoken) == 2 and spoken != "md" else "",
        programming_language={"c++": "cpp"}.get(language, language),
        solutions=tuple(package.solutions),
    )


def _read_config(files: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        config = json.loads(files.get("config.json", ""))
    except (ValueError, RecursionError) as error:
        raise Malformed("bad_encoding", f"config.json: {error}") from None
    if not isinstance(config, dict) or ("evaluation" not in config and "programming_language" not in config):
        raise Malformed("other_task", "a config.json that describes no exercise")
    return config


def _object(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    return value if isinstance(value, Mapping) else {}


def _read_tests(files: Mapping[str, str], code: str, row: Row) -> DecodedTests:
    suites = [name for name in sorted(files) if name.startswith("evaluation/") and name.endswith((".yaml", ".yml"))]
    if suites:
        return _read_suite(suites[0], files[suites[0]], code, row)
    examples = [
        example
        for name in sorted(files)
        if name.startswith("evaluation/") and name.endswith(".in")
        for example in _parse_examples(name, files[name])
    ]
    if not examples:
        raise Malformed("tests_not_convertible", "neither a suite in YAML nor tests of the Python judge")
    return _assert(examples, code, row)


def _parse_examples(name: str, text: str) -> Iterator[tuple[str, object]]:
    """Yield calls and the values that the Python judge compares with, from lines as a Python prompt shows them."""
    try:
        parsed = doctest.DocTestParser().get_examples(text)
    except ValueError as error:
        raise Malformed("bad_tests", f"{name}: {error}") from None
    for example in parsed:
        yield example.source.strip(), example.want.strip()


def _read_suite(name: str, text: str, code: str, row: Row) -> DecodedTests:
    from microcoder.data.formats.yaml_text import read_yaml

    try:
        suite = read_yaml(text)
    except ValueError as error:
        raise Malformed("bad_tests", f"{name}: {error}") from None
    cases = list(_cases(suite))
    streams = [one for one in cases if "stdout" in one and not {"expression", "statement", "arguments"} & one.keys()]
    calls = [one for one in cases if "expression" in one and "return" in one]
    if not cases or (len(streams) != len(cases) and len(calls) != len(cases)):
        raise Malformed("tests_not_convertible", f"{name}: of {len(cases)} tests some neither print nor return only")
    if calls:
        return _assert([(str(one["expression"]), repr(one["return"])) for one in calls], code, row)
    tests = [TestCase(input=_stream(one.get("stdin")), output=_stream(one["stdout"])) for one in streams]
    return DecodedTests(tuple(tests))


def _cases(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the test cases of a suite, however tabs and contexts are nested."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _cases(item)
    elif isinstance(value, Mapping):
        inner = [value[name] for name in _INNER if name in value]
        for item in inner:
            yield from _cases(item)
        if not inner and {"stdin", "stdout", "expression", "statement", "return"} & value.keys():
            yield value


def _stream(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("data", value.get("content"))
    if value is None:
        return ""
    if isinstance(value, Mapping | list):
        raise Malformed("bad_tests", "stdin or stdout is neither text nor a number")
    return str(value)


def _assert(examples: Sequence[tuple[str, object]], code: str, row: Row) -> DecodedTests:
    """Turn calls with their values into assertions, which our reader of those judges."""
    called, lines = "", []
    for source, wanted in examples:
        tree = parse_python(source)
        call = tree.body[0].value if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            called = called or call.func.id
        lines.append(f"assert {source} == {wanted}")
    return asserted_tests(lines, fn_name=called, code=code, is_judged=row.is_judged)


FORMATS = (Format("dodona", "exercises for Dodona", read_dodona, folders=Folders(("config.json",), TAKES)),)
