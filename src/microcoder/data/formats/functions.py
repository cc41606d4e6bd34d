"""Formats whose tests are assertions about a function.

KodCode-V1, LeetCodeDataset, DeepSeek's LeetCode contests; also benchmarks: HumanEval and variants
(HumanEval+, HumanEval-XL, CodeT's prompts), MBPP and MBPP+, ODEX.

The benchmarks are for decontamination and judging, not for training. An answer to HumanEval holds
the whole function; the prompt comes before it, so that its imports and helpers are there. In MBPP
only the assertions name the function. EvalPlus's tests (HumanEval+, MBPP+) are in `evalplus`.
"""

import ast
import re

from microcoder.data.formats.assertions import NotACall
from microcoder.data.formats.candidates import Candidate, DecodedTests, Note
from microcoder.data.formats.evalplus import plus_programs
from microcoder.data.formats.format import ASSERTIONS, Columns, Format
from microcoder.data.formats.packages import language_code
from microcoder.data.formats.programs import head_of, name_language, python_solutions
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.test_programs import (
    CHECK,
    call_check,
    find_called,
    list_imports,
    read_programs,
)
from microcoder.data.formats.tests import asserted_tests, complete
from microcoder.data.formats.values import is_number, parse_python

_RATES = {"gpt-4o": "gpt_pass_percentage", "deepseek-r1": "r1_pass_percentage"}
"""Column of KodCode with the pass rate of each model."""
_MAKES_LISTS = re.compile(r"^(\w+) = lambda [^\n]*\bListNode\(", re.MULTILINE)
"""A test's own function that makes a linked list."""
_READS_LISTS = re.compile(r"^(\w+) = lambda (?![^\n]*\bListNode\()[^\n]*\.next\b", re.MULTILINE)
"""A test's own function that reads a linked list."""
_QUOTES = '"""'
_EMPTY_BODY = "    pass\n"


def _find_function(row: Row) -> Row:
    """Return the row with `fn_name`, the function that KodCode's tests import.

    Of several it is the first that the row declares.
    """
    # Read for its error alone: a corpus takes no row without a solution.
    if not row.is_judged:
        row.text("solution")
    imported = _find_imported(row.text("test", "test_code"))
    declared = [item.optional("function_name") for item in row.rows("test_info")]
    # What the test imports is what answers must define; a declaration alone may be a helper.
    tested = [name for name in declared if name in imported]
    names = tested or imported or declared or [""]
    return row.over({**row.values, "fn_name": names[0]})


def _find_imported(source: str) -> list[str]:
    """Return the names that a test imports from `solution`."""
    tree = parse_python(source)
    if tree is None:
        return []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "solution":
            names += [alias.name for alias in node.names]
    return names


def _find_declaration(row: Row) -> str | None:
    """Return the declaration of the function in a row of KodCode."""
    declared = [item.optional("function_declaration") for item in row.rows("test_info")]
    for text in declared:
        if f"def {row.get('fn_name')}(" in text:
            return text
    return None


def _read_rates(row: Row) -> tuple[str, ...]:
    """Return KodCode's pass rates by model."""
    rates = []
    for model, name in _RATES.items():
        rate = row.get(name)
        if is_number(rate) and 0 <= rate <= 1:
            rates.append(f"{model}={rate:g}")
    return tuple(rates)


def _read_slug(row: Row) -> Row:
    """Return a row of LeetCodeDataset with the function's name and the URL of its page."""
    entry_point = row.text("entry_point").rpartition(".")[2]
    url = f"https://leetcode.com/problems/{row.name('task_id')}"
    fields = {**row.values, "fn_name": entry_point, "url": url}
    return row.over(fields)


def _take_prompt_apart(row: Row) -> Row:
    """Return a row with the parts of DeepSeek's prompt: the quoted statement, the starter code."""
    _, quoted, rest = row.statement("prompt").partition(_QUOTES)
    statement, closed, starter = rest.partition(_QUOTES)
    if not quoted or not closed or not statement.strip():
        raise Malformed("no_statement", "prompt has no statement in triple quotes")
    # Before the class stand those of lists and trees, with methods of their own.
    solution = starter.partition("class Solution")[2] or starter
    head = solution.partition("def ")[2]
    fn_name = head.partition("(")[0].strip()
    parts = {
        "statement": statement.strip(),
        "starter_code": starter.strip("\n"),
        "fn_name": fn_name,
        "test": _name_lists(row.text("test")),
    }
    return row.over({**row.values, **parts})


def _name_lists(source: str) -> str:
    """Return tests with `list_node` and `is_same_list` in place of their own lambdas for lists."""
    makes = _MAKES_LISTS.search(source)
    reads = _READS_LISTS.search(source)
    if makes and reads:
        source = source.replace(f"{makes[1]}(", "list_node(")
        source = re.sub(
            rf"assert {reads[1]}\((.*)\) == (.*)", r"assert is_same_list(\1, list_node(\2))", source
        )
    return source


_QUOTED: tuple[Note, ...] = (
    ("statement_found", "the quoted part of the prompt; the rest is starter_code"),
)


def _of_leetcode(row: Row) -> str:
    """Return the platform of a row of DeepSeek's."""
    return "leetcode"


def _note_quotes(row: Row) -> tuple[Note, ...]:
    """Return the note on the statement of a row of DeepSeek's."""
    return _QUOTED


HUMANEVAL_SECONDS = 3.0
"""CPU seconds per assertion; the published harness gives the whole test 3 seconds of wall time."""
MBPP_TEST = range(11, 511)
"""Task ids of MBPP's test split as published; the others are prompts, for validation and for
training."""
MBPP_SECONDS = 10.0
"""CPU seconds per assertion; one reference takes 3."""
MEMORY_LIMIT_MIB = 2048
"""Memory limit of a test; the published harnesses have none."""


def read_humaneval(row: Row) -> Candidate:
    """Read a task of HumanEval: the prompt is both the statement and the start of the answer."""
    prompt = row.statement("prompt")
    entry = row.text("entry_point")
    solution = row.optional("canonical_solution")
    source = row.optional("test")
    code = prompt + (solution or _EMPTY_BODY)
    seconds = HUMANEVAL_SECONDS if row.is_judged else None
    mebibytes = MEMORY_LIMIT_MIB if row.is_judged else None
    # A row without a solution has no program, though its prompt is one.
    programs = [prompt + solution] if solution.strip() else []

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            prompt,
            tests,
            title=row.optional("meta_data.task_name") or row.name("task_id"),
            natural_language=language_code(row.optional("natural_language")),
            programming_language=name_language(row.optional("language")) or "python",
            platform_difficulty=row.name("meta_data.difficulty"),
            time_limit_seconds=row.number("meta_data.time_limit.seconds") or seconds,
            memory_limit_mib=mebibytes,
            starter_code=head_of(code, entry),
            solutions=python_solutions(programs),
        )

    def decode() -> DecodedTests:
        sources = [source, row.optional("assertion")]
        if not any(text.strip() for text in sources):
            return DecodedTests()
        return asserted_tests(
            sources,
            fn_name=entry,
            code=code,
            called=("candidate",),
            only_calls=True,
        )

    # To judge answers, assertions decide as published; a corpus takes those that are calls.
    if not row.is_judged:
        return complete(build, decode)
    program = call_check(source)
    return build(_as_published(row, program, entry, setup=_complete_prompt(prompt)))


def _complete_prompt(prompt: str) -> str:
    """Return HumanEval's prompt as a program, which runs before an answer; empty if it is none.

    Its function gets a body where it has not even a docstring.
    """
    for text in (prompt, prompt + _EMPTY_BODY):
        if parse_python(text) is not None:
            return text
    return ""


def read_mbpp(row: Row) -> Candidate:
    """Read a task of MBPP (`text`), its sanitized version (`prompt`), or MBPP+.

    MBPP+ has a `test` with inputs and results.
    """
    statement = row.statement("text", "prompt")
    # A reference is part of the corpus; to judge answers it is not needed.
    read = row.optional if row.is_judged else row.text
    code = read("code", "canonical_solution")
    assertions = (*row.texts("test_list"), *row.texts("challenge_test_list"))
    # MBPP+ has all of its assertions in one text.
    sources = assertions or (row.optional("assertion"),)
    entry = _name_function(row, "\n".join(sources), code)
    seconds = MBPP_SECONDS if row.is_judged else None
    mebibytes = MEMORY_LIMIT_MIB if row.is_judged else None

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            tests,
            # As EvalPlus writes it, so that all versions of a task have one title.
            title=f"Mbpp/{row.name('task_id').rpartition('/')[2]}",
            starter_code=head_of(code, entry),
            time_limit_seconds=seconds,
            memory_limit_mib=mebibytes,
            # The data set has line ends of Windows.
            solutions=python_solutions([code.replace("\r\n", "\n")]),
        )

    if not row.is_judged:
        return complete(
            build,
            lambda: asserted_tests(sources, fn_name=entry, code=code, only_calls=True),
        )
    # As published: `test_list` without the challenge.
    listed = row.texts("test_list")
    if not listed and row.optional("assertion"):
        listed = (row.optional("assertion"),)
    if not listed and not row.has("base_input") and not row.has("test"):
        raise Malformed("missing_field", "test_list")
    # MBPP does not name the function.
    first = next(iter(listed), "")
    called = _name_function(row, first, code)
    if not called:
        raise Malformed(
            "tests_not_convertible", f"the first assertion calls no function: {first[:80]!r}"
        )

    before = "\n".join([row.optional("test_setup_code"), *row.texts("test_imports")])
    # An assertion may use what the reference imports, such as sys; what stands before it may use
    # a class of the answer.
    prelude = f"{list_imports(code)}\n{before}".strip()
    program = row.optional("test") or "\n".join(listed)
    setup = list_imports(before)
    return build(_as_published(row, program, called, setup=setup, prelude=prelude))


def _name_function(row: Row, assertions: str, code: str) -> str:
    """Return a row's entry point; without one, the first function that its assertions call."""
    entry = row.optional("entry_point")
    if entry:
        return entry
    return next(iter(find_called(assertions, code)), "")


def read_odex(row: Row) -> Candidate:
    """Read a task of ODEX: `intent` is the statement, in one of four languages.

    `prompt` and `suffix` enclose the solution.
    """
    statement = row.statement("intent")
    prompt = row.text("prompt")
    entry = row.text("entry_point")
    start = row.optional("test_start")
    source = start + "".join(row.texts("test"))
    # What stands before the test's function is the answer's, too, as in the published harness.
    defined = CHECK.search(source)
    begin = defined.start() if defined else 0

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

    def decode() -> DecodedTests:
        return asserted_tests(
            [source],
            fn_name=entry,
            code=prompt,
            called=("candidate",),
            setup=source[:begin].strip("\n"),
            only_calls=True,
        )

    if not row.is_judged:
        return complete(build, decode)
    program = call_check(source[begin:])
    setup = source[:begin].strip("\n")
    return build(_as_published(row, program, entry, setup=setup))


def _as_published(
    row: Row,
    program: str,
    entry: str,
    *,
    setup: str = "",
    prelude: str = "",
) -> DecodedTests:
    """Return tests of EvalPlus's inputs, if the row has any, else the one that is this program.

    Raises:
        Malformed: it cannot be judged.
    """
    fields = [name for name in ("base_input", "plus_input") if row.has(name)]
    programs = [program]
    if fields:
        programs = plus_programs(row, fields=fields)
    try:
        return read_programs(programs, fn_name=entry, setup=setup, prelude=prelude)
    except NotACall as error:
        raise Malformed("tests_not_convertible", f"the test cannot be judged: {error}") from None


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
            setup="prompt",
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
            also={"platform": _of_leetcode, "notes": _note_quotes},
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
