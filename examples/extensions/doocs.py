"""doocs/leetcode as a format of your own: a folder a problem, its statement in Markdown,
solutions in many languages.

corpus:  [[sources]] with format = "doocs.py:doocs", path = "leetcode/solution"
         and licence = "CC-BY-SA-4.0"
"""

import ast
import html
import re

from microcoder.data.formats.assertions import read_assertions, read_parameters
from microcoder.data.formats.candidates import Candidate, DecodedTests, Solution
from microcoder.data.formats.format import Folders
from microcoder.data.formats.programs import head_of, language_of
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import infer_call_of
from microcoder.data.formats.values import parse_python
from microcoder.judge.core.types import TestCase

HEADING = re.compile(r"^# \[(?:\w+\. )?(.+?)\]\((\S+?)\)", re.MULTILINE)
GIVEN = r"^[ \t]*Input[ \t]*+:?((?:[^\n]|\n(?!\s{0,20}(?:In|Out)put)){1,2000})"
EXAMPLE = re.compile(GIVEN + r"\n\s{0,20}Output[ \t]*+:?([^\n]{1,2000})\n", re.MULTILINE)
WORDS = {"true": "True", "false": "False", "null": "None"}


def doocs(row: Row) -> Candidate:
    """Read a problem's folder; examples of its statement become tests if they are literals."""
    files = row.files()
    text = files.get("README_EN.md") or files.get("README.md", "")
    head, _, rest = text.partition("<!-- description:start -->")
    description, is_closed, _ = rest.partition("<!-- description:end -->")
    if not is_closed or not description.strip():
        raise Malformed("no_statement", "no description between its comments")
    solutions = read_solutions(files)
    code = next((one.code for one in solutions if one.language == "python"), "")
    methods = public_methods(code)
    fn_name = methods[0] if len(methods) == 1 else None
    tests = read_examples(description, code, fn_name) if fn_name else DecodedTests()
    heading = HEADING.search(text)
    level = re.search(r"^difficulty: (\w+)", head, re.MULTILINE)
    return row.candidate(
        description.strip(),
        tests,
        url=heading[2] if heading else "",
        platform="leetcode",
        title=heading[1] if heading else row.name("name"),
        tags=tuple(re.findall(r"^    - (.+)", head, re.MULTILINE)),
        platform_difficulty=level[1] if level else "",
        natural_language="en" if files.get("README_EN.md") else "zh",
        starter_code=head_of(code, fn_name) if fn_name else None,
        solutions=tuple(solutions),
        groups=("sample",) * len(tests.tests),
        fn_name=fn_name,
    )


def read_solutions(files: dict[str, str]) -> list[Solution]:
    """Return the solutions in known languages."""
    solutions = []
    for name in sorted(files):
        language = language_of(name)
        if name.startswith("Solution.") and language:
            solutions.append(Solution(code=files[name], language=language, name=name))
    return solutions


def read_examples(description: str, code: str, fn_name: str) -> DecodedTests:
    """Read `Input: a = [1], k = 2` and `Output: 3` as the call that they describe."""
    found = EXAMPLE.findall(html.unescape(re.sub(r"<[^<>]*>", "", description)))
    parameters = read_parameters(code, fn_name)
    tests: list[TestCase] = []
    left_out: list[str] = []
    for given, output in found:
        expected = WORDS.get(output.strip(), output.strip())
        assertion = f"assert {fn_name}({given.strip()}) == {expected}"
        read = read_assertions(assertion, called=(fn_name,), parameters=parameters)
        tests.extend(read.tests)
        left_out.extend(read.dropped)
    notes = []
    if left_out:
        notes.append(("tests", f"{len(left_out)} of {len(found)} examples left out: {left_out[0]}"))
    call = infer_call_of(code, fn_name, tests)
    return DecodedTests(tuple(tests), fn_name, notes=tuple(notes), call=call)


FILES = ("README_EN.md", "README.md")
doocs.folders = Folders(FILES, (*FILES, "Solution.*"))  # type: ignore[attr-defined]


def public_methods(code: str) -> tuple[str, ...]:
    """Return the methods of the class `Solution` that a caller may use."""
    tree = parse_python(code)
    if tree is None:
        return ()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Solution":
            names = [member.name for member in node.body if isinstance(member, ast.FunctionDef)]
            return tuple(name for name in names if not name.startswith("_"))
    return ()
