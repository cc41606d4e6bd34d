"""Formats whose tests are assertions about a function: KodCode-V1, LeetCodeDataset, DeepSeek's LeetCode contests.

Also benchmarks: HumanEval and variants (HumanEval+, HumanEval-XL, CodeT's prompts), MBPP and MBPP+, ODEX.

These are for decontamination and judging, not for training. An answer to HumanEval holds the whole function; the
prompt comes before it, so that its imports and helpers are there. In MBPP only the assertions name the function.

EvalPlus's tests (HumanEval+, MBPP+) are inputs with a reference program, or with its results.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from microcoder.data.formats.assertions import (
    RESULTS,
    NotACall,
    SplitAssertion,
    check_tests,
    claims_checker,
    claims_harness,
    claims_test,
    find_called,
    parse_test,
    parse_value,
    read_claims,
)
from microcoder.data.formats.candidates import Candidate, DecodedTests
from microcoder.data.formats.format import ASSERTIONS, Columns, Format
from microcoder.data.formats.packages import language_code
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import (
    asserted_tests,
    complete,
    head_of,
    name_language,
    python_solutions,
)
from microcoder.data.formats.values import is_number, parse_python
from microcoder.judge.core.files import cut_pieces
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import TestCase

_RATES = {"gpt-4o": "gpt_pass_percentage", "deepseek-r1": "r1_pass_percentage"}
_MAKES_LISTS = re.compile(r"^(\w+) = lambda [^\n]*\bListNode\(", re.MULTILINE)
_TELLS_LISTS = re.compile(r"^(\w+) = lambda (?![^\n]*\bListNode\()[^\n]*\.next\b", re.MULTILINE)
_QUOTES = '"""'


def _find_function(row: Row) -> Row:
    """Return the row with `fn_name`, the function that KodCode's tests import; of several, the first declared."""
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
    rates = {model: row.get(name) for model, name in _RATES.items()}
    return tuple(
        f"{model}={rate:g}" for model, rate in rates.items() if is_number(rate) and 0 <= rate <= 1
    )


def _read_slug(row: Row) -> Row:
    """Return a row of LeetCodeDataset with the function's name and the URL of its page."""
    entry_point = row.text("entry_point").rpartition(".")[2]
    url = f"https://leetcode.com/problems/{row.name('task_id')}"
    return row.over({**row.values, "fn_name": entry_point, "url": url})


def _take_prompt_apart(row: Row) -> Row:
    """Return a row with the parts of DeepSeek's prompt: the statement in quotes, then the starter code."""
    _, quoted, rest = row.statement("prompt").partition(_QUOTES)
    statement, closed, starter = rest.partition(_QUOTES)
    if not quoted or not closed or not statement.strip():
        raise Malformed("no_statement", "prompt has no statement in triple quotes")
    # Before it stand the classes of lists and trees, with methods of their own.
    fn_name = (
        (starter.partition("class Solution")[2] or starter)
        .partition("def ")[2]
        .partition("(")[0]
        .strip()
    )
    parts = {
        "statement": statement.strip(),
        "starter_code": starter.strip("\n"),
        "fn_name": fn_name,
    }
    return row.over({**row.values, **parts, "test": _name_lists(row.text("test"))})


def _name_lists(source: str) -> str:
    """Return tests with their own lambdas for linked lists replaced by `list_node` and `is_same_list`."""
    made, read = _MAKES_LISTS.search(source), _TELLS_LISTS.search(source)
    if made and read:
        source = source.replace(f"{made[1]}(", "list_node(")
        source = re.sub(
            rf"assert {read[1]}\((.*)\) == (.*)", r"assert is_same_list(\1, list_node(\2))", source
        )
    return source


_QUOTED = (("statement_found", "the quoted part of the prompt; the rest is starter_code"),)

HUMANEVAL_SECONDS = 3.0
"""CPU seconds per assertion; the published harness gives the whole test 3 seconds of wall time."""
MBPP_TEST = range(11, 511)
"""Task ids of MBPP's test split as published; the others are prompts, for validation and for training."""
MBPP_SECONDS = 10.0
"""CPU seconds per assertion; one reference takes 3."""
MEMORY_LIMIT_MIB = 2048


def read_humaneval(row: Row) -> Candidate:
    """Read a task of HumanEval: the prompt is both the statement and the beginning of the answer."""
    prompt, entry, solution = (
        row.statement("prompt"),
        row.text("entry_point"),
        row.optional("canonical_solution"),
    )
    source = row.optional("test")
    code = prompt + (solution or "    pass\n")
    limit = HUMANEVAL_SECONDS if row.is_judged else None

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            prompt,
            tests,
            title=row.optional("meta_data.task_name") or row.name("task_id"),
            natural_language=language_code(row.optional("natural_language")),
            programming_language=name_language(row.optional("language")) or "python",
            platform_difficulty=row.name("meta_data.difficulty"),
            time_limit_seconds=row.number("meta_data.time_limit.seconds") or limit,
            memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
            starter_code=head_of(code, entry),
            solutions=python_solutions([prompt + solution] if solution.strip() else []),
        )

    def decode() -> DecodedTests:
        sources = [source, row.optional("assertion")]
        if not any(text.strip() for text in sources):
            return DecodedTests()
        return asserted_tests(sources, fn_name=entry, code=code, called=("candidate",))

    if not row.is_judged:
        return complete(build, decode)
    # The prompt runs before an answer: its function with a body where it has not even a docstring.
    before = next(
        (text for text in (prompt, prompt + "    pass\n") if parse_python(text) is not None), ""
    )
    return build(
        _claim(
            row, source, entry, lambda: check_tests(source, entry=entry, preamble=before), before
        )
    )


def read_mbpp(row: Row) -> Candidate:
    """Read a task of MBPP (`text`), its sanitized version (`prompt`), or MBPP+ (`test` with inputs and results)."""
    statement = row.statement("text", "prompt")
    code = (
        row.optional("code", "canonical_solution")
        if row.is_judged
        else row.text("code", "canonical_solution")
    )
    assertions = (*row.texts("test_list"), *row.texts("challenge_test_list"))
    sources = assertions or (row.optional("assertion"),)
    entry = row.optional("entry_point") or next(iter(find_called("\n".join(sources), code)), "")

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            tests,
            title=f"Mbpp/{row.name('task_id').rpartition('/')[2]}",
            starter_code=head_of(code, entry),
            time_limit_seconds=MBPP_SECONDS if row.is_judged else None,
            memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
            solutions=python_solutions([code.replace("\r\n", "\n")]),
        )

    if not row.is_judged:
        return complete(build, lambda: asserted_tests(sources, fn_name=entry, code=code))
    # As published: `test_list` without the challenge.
    listed = row.texts("test_list") or tuple(filter(None, [row.optional("assertion")]))
    if not listed and not row.has("base_input") and not row.has("test"):
        raise Malformed("missing_field", "test_list")
    # MBPP does not name the function.
    first = next(iter(listed), "")
    called = row.optional("entry_point") or next(iter(find_called(first, code)), "")
    if not called:
        raise Malformed(
            "tests_not_convertible", f"the first assertion calls no function: {first[:80]!r}"
        )
    return build(
        _claim(row, row.optional("test"), called, lambda: _list_tests(row, listed, code, called))
    )


def read_odex(row: Row) -> Candidate:
    """Read a task of ODEX: `intent` is the statement, in one of four languages; `prompt` and `suffix` enclose it."""
    statement, prompt, entry = row.statement("intent"), row.text("prompt"), row.text("entry_point")
    source = row.optional("test_start") + "".join(row.texts("test"))

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            tests,
            url=f"https://stackoverflow.com/questions/{row.name('task_id')}",
            platform="stackoverflow",
            title=row.name("task_id"),
            tags=row.tags("library"),
            starter_code=prompt,
            solutions=python_solutions(
                [f"{prompt}{row.optional('canonical_solution')}{row.optional('suffix')}"]
            ),
        )

    if row.is_judged:
        return build(_claim(row, source, entry, lambda: check_tests(source, entry=entry)))
    return complete(
        build, lambda: asserted_tests([source], fn_name=entry, code=prompt, called=("candidate",))
    )


def _claim(
    row: Row, source: str, entry: str, decide: Callable[[], Sequence[TestCase]], preamble: str = ""
) -> DecodedTests:
    """Return tests of EvalPlus's inputs, or of the table in `source`, else those of `decide`; Malformed on NotACall."""
    fields = [name for name in ("base_input", "plus_input") if row.has(name)]
    try:
        tests = (
            plus_tests(row, fields=fields)
            if fields
            else table_tests(source, entry=entry) or decide()
        )
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    return DecodedTests(tuple(tests), entry, claims_checker(), harness=claims_harness(preamble))


def _list_tests(row: Row, sources: Sequence[str], code: str, entry: str) -> list[TestCase]:
    """Return one test for each of these assertions of MBPP's `test_list`."""
    setup = "\n".join([row.optional("test_setup_code"), *row.texts("test_imports")])
    # An assertion may use what the reference imports, such as sys.
    around = parse_test(f"{code}\n{setup}").body
    imports = "\n".join(
        ast.unparse(node) for node in around if isinstance(node, ast.Import | ast.ImportFrom)
    )
    tests = []
    for source in sources:
        claims = read_claims(parse_test(source).body, called=(entry,), entry=entry)
        if not claims or not any(claim.calls for claim in claims):
            raise NotACall(f"{source[:80]!r} is not an assertion about {entry}")
        tests.append(claims_test(claims, setup=setup, prelude=imports))
    return tests


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
        tests_in="test",
        shape="a pytest file that imports the function from `solution`",
        marks=(
            ("test", "solution", "question"),
            ("test_code", "solution"),
            ("test", "test_info"),
            ("test_code",),
        ),
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
            also={"platform": lambda row: "leetcode", "notes": lambda row: _QUOTED},
        ),
        tests_in="test",
        shape=ASSERTIONS,
        marks=(("test", "prompt_sft"),),
    ),
    Format(
        "humaneval",
        "openai/human-eval, EvalPlus, HumanEval-XL",
        read_humaneval,
        is_benchmark=True,
        tests_in="test",
        shape=f"{ASSERTIONS} (`def check(candidate)`); or EvalPlus's base_input and plus_input",
        marks=(("entry_point", "test"), ("entry_point", "plus_input")),
    ),
    Format(
        "mbpp",
        "google-research/mbpp, EvalPlus",
        read_mbpp,
        is_benchmark=True,
        tests_in="test_list",
        shape=f"a list of {ASSERTIONS}; or EvalPlus's base_input and plus_input",
        marks=(
            ("test_list",),
            ("test_list", "test_setup_code"),
            ("entry_point", "plus_input", "assertion"),
        ),
    ),
    Format(
        "odex",
        "zorazrw/odex",
        read_odex,
        is_benchmark=True,
        tests_in="test",
        shape=ASSERTIONS,
        marks=(("intent", "test", "entry_point"), ("entry_point", "test", "test_start")),
    ),
)


INPUTS_PER_TEST = 25
_REFERENCE = "_reference"
_ORACLES = {"find_zero": "abs(poly(*{arguments}, {value})) <= {tolerance}"}
"""By function with many right answers, the condition on a returned value; `poly` is defined in the prompt."""


def table_tests(source: str, *, entry: str) -> list[TestCase]:
    """Return tests from the lists `inputs` and `results` that a test loops over; none without them, else NotACall."""
    tree = parse_python(source)
    tables: dict[str, ast.expr] = {}
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id="inputs" | "results" as name)], value=value):
                tables[name] = value
    if tables.keys() != {"inputs", "results"}:
        return []
    inputs, results = parse_value(tables["inputs"]), parse_value(tables["results"])
    if not isinstance(inputs, list) or not isinstance(results, list) or len(inputs) != len(results):
        raise NotACall("inputs and results are not lists of one length")
    claims = []
    for given, expected in zip(inputs, results, strict=True):
        arguments = list(given) if isinstance(given, list | tuple) else [given]
        # Compared by EvalPlus's rule.
        claims.append(
            SplitAssertion((f"{entry}(*{arguments!r})",), f"_agree({RESULTS}[0], {expected!r}, 0)")
        )
    return _in_groups(claims)


def _in_groups(claims: Sequence[SplitAssertion], prelude: str = "") -> list[TestCase]:
    return [claims_test(piece, prelude=prelude) for piece in cut_pieces(claims, INPUTS_PER_TEST)]


def plus_tests(row: Row, *, fields: Sequence[str]) -> list[TestCase]:
    """Return tests on the inputs in these fields, such as `base_input` and `plus_input`; Malformed if not lists.

    The reference runs in the checker, on the same arguments, so expected values are never in the answer's process.
    """
    entry, tolerance = row.text("entry_point"), row.values.get("atol", 0)
    if not isinstance(tolerance, int | float):
        raise Malformed("wrong_type", f"atol is {tolerance!r}, not a number")
    reference = f"{row.text('prompt')}{row.text('canonical_solution')}"
    prelude = f"{reference}\n{_REFERENCE} = {entry}\n"
    try:
        parse_source(prelude)
    except SyntaxError as error:
        raise Malformed(
            "wrong_value", f"prompt and canonical_solution are no Python ({error})"
        ) from None
    shapes = _argument_shapes(row, entry)
    decided_by = _ORACLES.get(
        entry, f"_agree({{value}}, {_REFERENCE}(*{{arguments}}), {{tolerance}})"
    )
    claims = []
    for name in fields:
        inputs = row.items(name)
        if not row.has(name) or not all(isinstance(item, list) for item in inputs):
            raise Malformed(
                "wrong_type",
                f"{name} is missing or no list of argument lists; is this an EvalPlus file?",
            )
        for given in inputs:
            fitting = [shape for shape in shapes if len(shape) == len(given)]
            arguments = [
                _shape(value, [shape[place] for shape in fitting])
                for place, value in enumerate(given)
            ]
            source = decided_by.format(
                arguments=arguments, value=f"{RESULTS}[0]", tolerance=float(tolerance)
            )
            claims.append(SplitAssertion((f"{entry}(*{arguments!r})",), source))
    return _in_groups(claims, prelude)


def _argument_shapes(row: Row, entry: str) -> list[list[Any]]:
    """Return the arguments in a row's `assertion`, call by call: they show which of JSON's lists are tuples or sets."""
    source = row.values.get("assertion", "")
    try:
        tree = parse_source(source if isinstance(source, str) else "")
    except SyntaxError:
        return []
    shapes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry:
            try:
                shapes.append([ast.literal_eval(argument) for argument in node.args])
            except (ValueError, TypeError, SyntaxError):
                continue
    return shapes


def _shape(value: Any, examples: Sequence[Any]) -> Any:
    kinds = {type(example) for example in examples}
    if isinstance(value, str) and kinds == {complex}:
        return complex(value)
    if isinstance(value, Mapping):
        inner = [
            item for example in examples if isinstance(example, dict) for item in example.values()
        ]
        return {key: _shape(item, inner) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    inner = [
        item
        for example in examples
        if isinstance(example, list | tuple | set | frozenset)
        for item in example
    ]
    by_kind = {
        kind: [item for item in inner if isinstance(item, kind)]
        for kind in (list, tuple, set, frozenset, dict)
    }
    nested = next((items for items in by_kind.values() if items), [])
    items = [_shape(item, nested if isinstance(item, list) else inner) for item in value]
    for kind in (tuple, set, frozenset):
        if kinds and kinds <= {kind, dict} and kind in kinds:
            return kind(items)
    return items
