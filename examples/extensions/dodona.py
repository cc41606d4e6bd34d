"""Exercises of Dodona as a format of your own: `config.json`, a description, tests for TESTed or the Python judge.

corpus:  [[sources]] with format = "dodona.py:dodona" and path = "exercises"
"""

import ast
import doctest
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from microcoder.data.formats.candidates import Candidate, DecodedTests
from microcoder.data.formats.format import Folders
from microcoder.data.formats.packages import Package
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import asserted_tests
from microcoder.data.formats.values import read_yaml
from microcoder.judge.core.types import TestCase

STATEMENTS = (
    r"description/description\.(?P<language>\w\w)\.(?:md|html)",
    r"description/description\.(?:md|html)",
)
INNER = ("tabs", "units", "contexts", "cases", "testcases", "scripts", "script")


def dodona(row: Row) -> Candidate:
    """Read an exercise for Python; values that a function returns are judged, or what a program prints."""
    package = Package.open(row, texts=r"config\.json|description/.*|evaluation/.*\.(ya?ml|in)")
    files = package.files
    config = row.over({"config": files.get("config.json", "{}")}).inner("config")
    language = config.optional("programming_language") or "python"
    if not config.values.keys() & {"evaluation", "programming_language"} or language not in (
        "python",
        "c++",
        "java",
        "javascript",
    ):
        raise Malformed("other_task", f"no exercise, or in {language}")
    path = package.find_statement(STATEMENTS)
    written = ((name, "accepted") for name in sorted(files) if name.startswith("solution/"))
    package.read_solutions(written, left_out="in no known language")
    code = next((one.code for one in package.solutions if one.language == "python"), "")
    spoken, names = path.split(".")[1], config.mapping("description.names")
    return row.candidate(
        files[path],
        read_tests(package, code, row.is_judged),
        notes=package.notes,
        platform="dodona",
        title=str(names.get(spoken) or next(iter(names.values()), "") or row.name("name")),
        tags=config.tags("labels"),
        natural_language=spoken if len(spoken) == 2 and spoken != "md" else "",
        programming_language={"c++": "cpp"}.get(language, language),
        solutions=tuple(package.solutions),
    )


def read_tests(package: Package, code: str, is_judged: bool) -> DecodedTests:
    """Read a suite for TESTed, else what a Python prompt shows."""
    suites = [
        name
        for name in sorted(package.files)
        if name.startswith("evaluation/") and name.endswith("ml")
    ]
    if suites:
        try:
            cases = list(find_cases(read_yaml(package.files[suites[0]])))
        except ValueError as error:
            raise Malformed("bad_tests", f"{suites[0]}: {error}") from None
        if cases and all(
            "stdout" in one and not {"expression", "statement"} & one.keys() for one in cases
        ):
            return DecodedTests(
                tuple(
                    TestCase(input=str(one.get("stdin", "")), output=str(one["stdout"]))
                    for one in cases
                )
            )
        if not cases or not all("expression" in one and "return" in one for one in cases):
            raise Malformed(
                "tests_not_convertible",
                f"{suites[0]}: tests that neither only print nor only return",
            )
        shown = [(str(one["expression"]), repr(one["return"])) for one in cases]
    else:
        texts = [text for name, text in sorted(package.files.items()) if name.endswith(".in")]
        parsed = [
            example for text in texts for example in doctest.DocTestParser().get_examples(text)
        ]
        shown = [(one.source.strip(), one.want.strip()) for one in parsed]
    calls = [
        node
        for source, _ in shown
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
    ]
    called = next((call.func.id for call in calls if isinstance(call.func, ast.Name)), "")
    lines = [f"assert {source} == {wanted}" for source, wanted in shown]
    return asserted_tests(lines, fn_name=called, code=code, is_judged=is_judged)


def find_cases(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the test cases of a suite, however tabs and contexts are nested."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from find_cases(item)
    elif isinstance(value, Mapping):
        inner = [value[name] for name in INNER if name in value]
        yield from find_cases(inner) if inner else [value]


TAKES = ("config.json", "description/*", "evaluation/*", "solution/*")
dodona.folders = Folders(("config.json",), TAKES)  # type: ignore[attr-defined]
