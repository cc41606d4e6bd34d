"""Exercises of Dodona as a format of your own: `config.json`, a description,
tests for TESTed or the Python judge.

corpus:  [[sources]] with format = "dodona.py:dodona" and path = "exercises"
"""

import ast
import doctest
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """Read an exercise for Python; values that a function returns are judged,
    or what a program prints.
    """
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
    spoken = path.split(".")[1]
    names = config.mapping("description.names")
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
    suites = []
    for name in sorted(package.files):
        if name.startswith("evaluation/") and name.endswith("ml"):
            suites.append(name)
    if suites:
        cases = read_suite(package, suites[0])
        if cases and all(prints(case) for case in cases):
            tests = []
            for case in cases:
                tests.append(TestCase(input=str(case.get("stdin", "")), output=str(case["stdout"])))
            return DecodedTests(tuple(tests))
        if not cases or not all("expression" in case and "return" in case for case in cases):
            raise Malformed(
                "tests_not_convertible",
                f"{suites[0]}: tests that neither only print nor only return",
            )
        shown = [(str(case["expression"]), repr(case["return"])) for case in cases]
    else:
        shown = read_prompts(package)
    lines = [f"assert {source} == {wanted}" for source, wanted in shown]
    called = find_called(source for source, _ in shown)
    return asserted_tests(lines, fn_name=called, code=code, is_judged=is_judged)


def read_suite(package: Package, name: str) -> list[Mapping[str, Any]]:
    """Return the test cases of a file for TESTed."""
    try:
        return list(find_cases(read_yaml(package.files[name])))
    except ValueError as error:
        raise Malformed("bad_tests", f"{name}: {error}") from None


def prints(case: Mapping[str, Any]) -> bool:
    """Return whether a test case asks for output alone."""
    return "stdout" in case and not {"expression", "statement"} & case.keys()


def read_prompts(package: Package) -> list[tuple[str, str]]:
    """Return what is typed at a Python prompt, and what it answers."""
    shown = []
    for name, text in sorted(package.files.items()):
        if name.endswith(".in"):
            for example in doctest.DocTestParser().get_examples(text):
                shown.append((example.source.strip(), example.want.strip()))
    return shown


def find_called(sources: Iterable[str]) -> str:
    """Return the name of the first function that is called, or an empty text."""
    names = []
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names.append(node.func.id)
    return names[0] if names else ""


def find_cases(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the test cases of a suite, however tabs and contexts are nested."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from find_cases(item)
    elif isinstance(value, Mapping):
        inner = []
        for name in INNER:
            if name in value:
                inner.append(value[name])
        yield from find_cases(inner) if inner else [value]


TAKES = ("config.json", "description/*", "evaluation/*", "solution/*")
dodona.folders = Folders(("config.json",), TAKES)  # type: ignore[attr-defined]
