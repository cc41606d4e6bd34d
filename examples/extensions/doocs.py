"""doocs/leetcode as a format of your own: a folder a problem, its statement in Markdown, solutions in many languages.

corpus:  [[sources]] with format = "doocs.py:doocs", path = "leetcode/solution" and licence = "CC-BY-SA-4.0"
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

HEADING = re.compile(r"^# \[(?:\w+\. )?(.+?)\]\((\S+?)\)", re.MULTILINE)
GIVEN = r"^[ \t]*Input[ \t]*+:?((?:[^\n]|\n(?!\s{0,20}(?:In|Out)put)){1,2000})"
EXAMPLE = re.compile(GIVEN + r"\n\s{0,20}Output[ \t]*+:?([^\n]{1,2000})\n", re.MULTILINE)
WORDS = {"true": "True", "false": "False", "null": "None"}


def doocs(row: Row) -> Candidate:
    """Read a problem's folder; the examples of its statement become tests where they are literals."""
    files = row.files()
    text = files.get("README_EN.md") or files.get("README.md", "")
    head, _, rest = text.partition("<!-- description:start -->")
    description, is_closed, _ = rest.partition("<!-- description:end -->")
    if not is_closed or not description.strip():
        raise Malformed("no_statement", "no description between its comments")
    solutions = tuple(
        Solution(code=files[name], language=language, name=name)
        for name in sorted(files)
        if name.startswith("Solution.") and (language := language_of(name))
    )
    code = next((one.code for one in solutions if one.language == "python"), "")
    methods = public_methods(code)
    fn_name = methods[0] if len(methods) == 1 else None
    tests = read_examples(description, code, fn_name) if fn_name else DecodedTests()
    heading, level = HEADING.search(text), re.search(r"^difficulty: (\w+)", head, re.MULTILINE)
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
        solutions=solutions,
        groups=("sample",) * len(tests.tests),
        fn_name=fn_name,
    )


def read_examples(description: str, code: str, fn_name: str) -> DecodedTests:
    """Read `Input: a = [1], k = 2` and `Output: 3` as the call that they describe."""
    found = EXAMPLE.findall(html.unescape(re.sub(r"<[^<>]*>", "", description)))
    calls = [
        f"assert {fn_name}({given.strip()}) == {WORDS.get(out.strip(), out.strip())}"
        for given, out in found
    ]
    parameters = read_parameters(code, fn_name)
    read = [read_assertions(call, called=(fn_name,), parameters=parameters) for call in calls]
    tests = tuple(test for one in read for test in one.tests)
    left_out = [why for one in read for why in one.dropped]
    notes = (
        (("tests", f"{len(left_out)} of {len(calls)} examples left out: {left_out[0]}"),)
        if left_out
        else ()
    )
    return DecodedTests(tests, fn_name, notes=notes, call=infer_call_of(code, fn_name, list(tests)))


FILES = ("README_EN.md", "README.md")
doocs.folders = Folders(FILES, (*FILES, "Solution.*"))  # type: ignore[attr-defined]


def public_methods(code: str) -> tuple[str, ...]:
    """Return the methods of the class `Solution` that a caller may use."""
    tree = parse_python(code)
    classes = [
        node
        for node in (tree.body if tree else ())
        if isinstance(node, ast.ClassDef) and node.name == "Solution"
    ]
    inside = [one for node in classes[:1] for one in node.body if isinstance(one, ast.FunctionDef)]
    return tuple(one.name for one in inside if one.name[0] != "_")
