"""Formats of sets with stdin tests and calls, in columns of many names, and of contest sets with their checkers.

APPS and TACO, CodeContests, `open-r1/codeforces`, HARDTESTS, LiveCodeBench (never training data), sets made to train by
reinforcement, rows of trainers (verl, TRL).

TACO#18, APPS#27 and #29 report tests outside the constraints, problems with many answers, and wrong references: the
verify stage runs them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import compress

from microcoder.data.formats.candidates import Candidate, Known, Solution
from microcoder.data.formats.format import LISTED, PAIRS, Columns, Format, read_program
from microcoder.data.formats.row import Malformed, Row, is_number, read_literal
from microcoder.data.formats.tests import (
    decode_tests,
    find_platform,
    name_language,
    pair_tests,
    python_solution,
    python_solutions,
    read_lines,
)
from microcoder.judge.core.types import Checker

_COLUMNS = Columns(
    statement="question",
    tests="input_output",
    url="url",
    platform="source",
    title=("name", "problem_id", "id"),
    date="date",
    tags=("tags", "skill_types"),
    difficulty="difficulty",
    starter_code="starter_code",
    solutions="solutions",
    also={"flags": lambda row: ("needs_image",) if row.number("picture_num") else ()},
)


TIME_LIMIT_SECONDS = 6.0
"""CPU seconds per test: the default of LiveCodeBench's checker, which measures wall time."""
MEMORY_LIMIT_MIB = 2048
"""Memory limit of a test; LiveCodeBench's checker has none."""
_CODEFORCES = re.compile(r"(\d+)_([A-Z]\d*)")
_ATCODER = re.compile(r"((?:abc|arc|agc)\d+)_\w+")


def read_livecodebench(row: Row) -> Candidate:
    """Read a problem of LiveCodeBench, or a published result on one, which has no tests but identifies the problem."""
    metadata = (
        row.over({}) if isinstance(row.values.get("metadata"), list) else row.inner("metadata")
    )
    fn_name = metadata.optional("func_name")
    found = []
    for name in ("public_test_cases", "private_test_cases"):
        value = row.unpacked(name)
        try:
            found.append((name.partition("_")[0], decode_tests(value, fn_name=fn_name)))
        except Malformed as error:
            raise Malformed(error.reason, f"{name}: {error.detail}") from None
    names = {tests.fn_name for _, tests in found if tests.tests}
    if len(names) > 1:
        raise Malformed("bad_tests", "public and private tests are of different styles")
    if row.is_judged and not row.has("private_test_cases"):
        raise Malformed("missing_field", "private_test_cases")
    if row.is_judged and fn_name and names == {None}:
        raise Malformed(
            "bad_tests",
            f"stdin tests, but metadata names the function {fn_name!r}; they must have none",
        )
    platform, name = row.optional("platform").lower(), row.name("question_id")
    graded = row.values.get("graded_list") if row.has("code_list") else None
    return row.candidate(
        row.statement("question_content"),
        url=make_url(platform, name),
        platform=platform,
        title=row.optional("question_title") or name,
        date=row.date("contest_date"),
        platform_difficulty=row.optional("difficulty"),
        fn_name=names.pop() if names else None,
        starter_code=row.optional("starter_code") or None,
        tests=tuple(test for _, tests in found for test in tests.tests),
        time_limit_seconds=TIME_LIMIT_SECONDS if row.is_judged else None,
        memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
        groups=tuple(group for group, tests in found for _ in tests.tests),
        # Programs of published results that were graded right tell by what they do what a problem is.
        solutions=python_solutions(compress(row.texts("code_list"), graded))
        if isinstance(graded, list)
        else (),
    )


def make_url(platform: str, name: str) -> str:
    """Return the URL of a problem by its name on the platform (`1873_A`, `abc301_a`); empty if unknown."""
    if platform == "codeforces" and (found := _CODEFORCES.fullmatch(name)):
        return f"https://codeforces.com/contest/{found[1]}/problem/{found[2]}"
    if platform == "atcoder" and (found := _ATCODER.fullmatch(name)):
        return f"https://atcoder.jp/contests/{found[1]}/tasks/{name}"
    return ""


_FLATTENED = "user: "
"""Prefix of those of Dolci's prompts that are chats flattened to text; it is cut off."""


def _refuse_other(row: Row, name: str) -> Row:
    """Return the row; Malformed if a field names tasks, in a text or a list, none of which is coding."""
    tasks = row.texts(name) if isinstance(row.get(name), list) else (row.optional(name),)
    if any(tasks) and not any(
        word in task.lower() for task in tasks for word in ("cod", "program")
    ):
        raise Malformed("other_task", ", ".join(filter(None, tasks)))
    return row


def _check_task(row: Row) -> Row:
    """Return a row of SYNTHETIC; Malformed if its task is not coding."""
    _refuse_other(row, "task_type")
    info = row.mapping("verification_info")
    if info and "test_cases" not in info:
        raise Malformed(
            "bad_tests", f"verification_info has no test_cases, but {', '.join(list(info)[:5])}"
        )
    return row


def _name_language(row: Row) -> str:
    return name_language(row.optional("verification_info.language")) or "python"


def _read_gold(row: Row) -> tuple[Solution, ...]:
    gold, language = row.optional("gold_standard_solution"), _name_language(row)
    found = python_solutions([gold])
    return (
        found
        if language == "python"
        else tuple(Solution(code=one.code, language=language) for one in found)
    )


def _read_intellect(row: Row) -> object:
    """Return `info.tests`; those of a function have arguments and expected values decoded from text."""
    tests = row.decoded("info.tests")
    if not isinstance(tests, Mapping) or not tests.get("fn_name"):
        return tests
    inputs, outputs = tests.get("inputs"), tests.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        return tests
    try:
        return {
            **tests,
            "inputs": [read_lines(given) if isinstance(given, str) else given for given in inputs],
            "outputs": [
                read_literal(value) if isinstance(value, str) else value for value in outputs
            ],
        }
    except ValueError:
        return tests


def _read_unit_tests(row: Row) -> object:
    """Return the inputs and outputs in `unit_tests`, unpacked from `{"packed": ..., "fn_name": ...}` if need be."""
    name = (
        "verifier_metadata.unit_tests" if row.has("verifier_metadata.unit_tests") else "unit_tests"
    )
    found = row.mapping(name)
    if "packed" not in found:
        return found
    unpacked = row.unpacked(f"{name}.packed")
    if not isinstance(unpacked, dict):
        raise Malformed(
            "bad_tests", f"{name}.packed holds {type(unpacked).__name__}, not inputs and outputs"
        )
    return {**unpacked, "fn_name": found.get("fn_name") or unpacked.get("fn_name")}


def _check_kinds(row: Row) -> Row:
    """Return a row of open-instruct's form, its prompt without `user: `; Malformed if its task is not coding."""
    _refuse_other(row, "dataset")
    prompt = row.get("prompt")
    return (
        row.over({**row.values, "prompt": prompt.removeprefix(_FLATTENED)})
        if isinstance(prompt, str)
        else row
    )


def _read_ground_truth(row: Row) -> object:
    """Return the tests in `ground_truth`, decoded from JSON, plain or packed, also inside a list of one text."""
    value = row.get("ground_truth")
    is_alone = isinstance(value, list) and len(value) == 1
    if is_alone and isinstance(value[0], str) and value[0].lstrip().startswith("assert"):
        return value  # The only assertion of a row.
    return (row.over({"ground_truth": value[0]}) if is_alone else row).unpacked("ground_truth")


def _pair(row: Row) -> object:
    inputs, outputs = row.decoded("inputs"), row.decoded("outputs")
    return {"inputs": inputs, "outputs": outputs} if inputs or outputs else None


_SOURCES = ("", "codechef", "codeforces", "hackerearth", "codejam", "", "atcoder", "aizu")
_LANGUAGES = ("unknown", "python2", "cpp", "python", "java")
_SECTIONS = (
    ("input_format", "Input"),
    ("output_format", "Output"),
    ("interaction_format", "Interaction"),
)
_PRINTING = """import contextlib, io, sys

SOURCE = {source!r}

said = io.StringIO()
# Theirs is called with input, correct output, given output, and prints 1 where it is right.
sys.argv = [sys.argv[0], sys.argv[1], sys.argv[3], sys.argv[2]]
with contextlib.redirect_stdout(said):
    try:
        exec(compile(SOURCE, "checker.py", "exec"), {{"__name__": "__main__"}})
    except SystemExit as end:
        if end.code:
            said = io.StringIO("0")
    except Exception:
        # It expects numbers, say, where an answer may be anything; one that fails on right answers too shows in verify.
        said = io.StringIO("0")
sys.exit(0 if said.getvalue().strip() == "1" else 1)
"""
"""Template of a checker program: runs a row's own checker, SOURCE, and exits with 0 if it prints 1, else with 1."""
_JUDGING = """
import sys

texts = [open(path, encoding="utf-8", errors="replace").read() for path in (sys.argv[1], sys.argv[3], sys.argv[2])]
print(int(bool(output_judging_function(*texts))))
"""
"""Appended to a row's own `output_judging_function`: calls it and prints 1 or 0, as `_PRINTING` expects."""


def read_code_contests(row: Row) -> Candidate:
    """Read a row of CodeContests: parallel lists, integer codes, known-wrong solutions."""
    found = []
    for group in ("public", "private", "generated"):
        lists = row.mapping(f"{group}_tests")
        found += (
            [(group, test) for test in pair_tests(lists.get("input"), lists.get("output")).tests]
            if lists
            else []
        )
    seconds = (row.number("time_limit.seconds") or 0) + (row.number("time_limit.nanos") or 0) / 1e9
    contest, index = row.number("cf_contest_id"), row.optional("cf_index")
    is_translated = row.values.get("is_description_translated") is True
    return row.candidate(
        row.statement("description"),
        notes=[("statement_found", "the source has translated it into English")]
        if is_translated
        else (),
        url=f"https://codeforces.com/contest/{contest:.0f}/problem/{index}"
        if contest and index
        else "",
        platform=_read_source(row),
        title=row.name("name"),
        tags=row.tags("cf_tags"),
        platform_difficulty=row.name("cf_rating")
        if row.number("cf_rating")
        else row.name("difficulty"),
        natural_language="en" if is_translated else "",
        tests=tuple(test for _, test in found),
        groups=tuple(group for group, _ in found),
        time_limit_seconds=seconds or None,
        memory_limit_mib=round((row.number("memory_limit_bytes") or 0) / (1 << 20)) or None,
        solutions=(
            *_solutions(row, "solutions", "accepted"),
            *_solutions(row, "incorrect_solutions", "wrong_answer"),
        ),
        flags=("file_io",) if row.optional("input_file") or row.optional("output_file") else (),
    )


def _solutions(row: Row, name: str, known: Known) -> Iterator[Solution]:
    lists = row.mapping(name)
    languages, codes = lists.get("language", []), lists.get("solution", [])
    if (
        not isinstance(languages, list)
        or not isinstance(codes, list)
        or len(languages) != len(codes)
    ):
        raise Malformed("wrong_type", f"{name}: language and solution are not lists of one length")
    for number, code in zip(languages, codes, strict=True):
        if (
            not isinstance(code, str)
            or not isinstance(number, int)
            or not 0 <= number < len(_LANGUAGES)
        ):
            raise Malformed(
                "wrong_type", f"{name}: a language is {number!r:.20}, or a program is not text"
            )
        yield Solution(code=code, language=_LANGUAGES[number], known=known)


def _read_source(row: Row) -> str:
    """Return the platform of a row of CodeContests, whose `source` is its name or number; empty if unknown."""
    value = row.values.get("source")
    if value is None or isinstance(value, str):
        return (value or "").lower()
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed("wrong_type", f"source is {type(value).__name__}, not a code number")
    return _SOURCES[value] if 0 <= value < len(_SOURCES) else ""


def _read_programs(row: Row) -> tuple[Solution, ...]:
    """Return the programs in a row's `solutions`, a list of objects; without a language they count as Python."""
    found = []
    for item in row.rows("solutions"):
        language, code = (
            name_language(item.optional("language")) or "python",
            item.text("code", "solution"),
        )
        is_python, name = language == "python", item.optional("source")
        found.append(
            python_solution(code, name=name)
            if is_python
            else Solution(code=code, language=language, name=name)
        )
    return tuple(found)


def read_codeforces(row: Row) -> Candidate:
    """Read a row of `open-r1/codeforces`: the statement is joined from its sections, examples are the first tests."""
    examples = decode_tests(row.decoded("examples")).tests
    shown = set(examples)
    official = tuple(
        test for test in decode_tests(row.decoded("official_tests")).tests if test not in shown
    )
    # Published in files of their own; a recipe joins them into this column.
    generated = tuple(decode_tests(row.decoded("generated_test_cases")).tests)
    generated = tuple(test for test in generated if test not in shown and test not in set(official))
    is_complete = row.values.get("official_tests_complete")
    code = row.optional("generated_checker")
    flags = {
        "interactive": row.optional("interaction_format").strip(),
        "file_io": row.optional("input_mode") == "file",
    }
    contest, index = row.name("contest_id"), row.name("index")
    notes = [
        ("statement_found", "put together from description, input_format, output_format and note")
    ]
    if is_complete is False:
        notes.append(("tests", "the source says that official tests are missing"))
    return row.candidate(
        _join_sections(row),
        notes=notes,
        url=f"https://codeforces.com/contest/{contest}/problem/{index}"
        if contest and index
        else "",
        platform="codeforces",
        title=row.optional("title") or row.name("id"),
        date=row.date("contest_start"),
        tags=row.tags("tags"),
        platform_difficulty=row.name("rating"),
        tests=(*examples, *official, *generated),
        groups=("sample",) * len(examples)
        + ("official",) * len(official)
        + ("generated",) * len(generated),
        checker=Checker(type="program", code=_PRINTING.format(source=code))
        if code.strip()
        else Checker(),
        time_limit_seconds=row.number("time_limit"),
        memory_limit_mib=round(row.number("memory_limit") or 0) or None,
        flags=tuple(flag for flag, is_set in flags.items() if is_set),
    )


def _join_sections(row: Row) -> str:
    parts = [row.statement("description")]
    parts += [
        f"## {title}\n\n{row.text(name)}" for name, title in _SECTIONS if row.optional(name).strip()
    ]
    for number, example in enumerate(row.rows("examples"), 1):
        shown = f"Input:\n```\n{example.text('input')}\n```\nOutput:\n```\n{example.text('output')}\n```"
        parts.append(f"## Example {number}\n\n{shown}")
    if row.optional("note").strip():
        parts.append(f"## Note\n\n{row.text('note')}")
    return "\n\n".join(parts)


def _read_judging(row: Row) -> Checker:
    code = row.optional("test_cases_kit.output_judging_function")
    if not code.strip():
        return Checker()
    if "def output_judging_function" not in code:
        raise Malformed("bad_checker", "output_judging_function is not defined in it")
    return Checker(type="program", code=_PRINTING.format(source=code + _JUDGING))


def _find_site(row: Row) -> str:
    return find_platform(
        row.optional("url"), row.name("pid").partition("_")[0] if "_" in row.name("pid") else ""
    )


FORMATS = (
    Format(
        "apps", "codeparrot/apps", _COLUMNS, tests_in="input_output", marks=(("input_output",),)
    ),
    Format(
        "taco",
        "BAAI/TACO, likaixin/TACO-verified",
        _COLUMNS,
        tests_in="input_output",
        marks=(("input_output", "raw_tags"), ("input_output", "skill_types")),
    ),
    Format(
        "livecodebench",
        "livecodebench/code_generation_lite",
        read_livecodebench,
        is_benchmark=True,
        tests_in="private_test_cases",
        shape='a list of {"input": ..., "output": ..., "testtype": "stdin" or "functional"}, as JSON or packed',
        marks=(("private_test_cases",), ("public_test_cases", "question_content")),
    ),
    Format(
        "deepcoder",
        "agentica-org/DeepCoder-Preview-Dataset",
        Columns(
            statement=("problem", "question"),
            tests="tests",
            fn_name=("metadata.func_name", "metadata.fn_name", "fn_name", "func_name"),
            platform="metadata.platform",
            title=("question_id", "problem_id"),
            date="metadata.contest_date",
            difficulty="metadata.difficulty",
            starter_code="starter_code",
            solutions="solutions",
            time_limit=("time_limit", "metadata.time_limit"),
            memory_limit=("memory_limit", "metadata.memory_limit"),
        ),
        tests_in="tests",
        shape=f'{PAIRS}; or a list of {{"input": ..., "output": ..., "type" or "testtype": ...}}',
        marks=(("tests", "problem"), ("tests",)),
    ),
    Format(
        "synthetic",
        "PrimeIntellect/verifiable-coding-problems, SYNTHETIC-2-RL, open-r1/verifiable-coding-problems-python",
        Columns(
            prepare=_check_task,
            statement=("problem_statement", "prompt", "problem"),
            tests="verification_info.test_cases",
            url=("metadata.problem_url", "metadata.url"),
            platform="source",
            title=("in_source_id", "problem_id"),
            difficulty="metadata.difficulty",
            solutions=_read_gold,
            time_limit="metadata.time_limit",
            memory_limit=("metadata.memory_limit_bytes", "metadata.memory_limit"),
            also={"programming_language": _name_language},
        ),
        tests_in="verification_info",
        shape='{"language": ..., "test_cases": [{"type": ..., "input": ..., "output": ...}]}',
        marks=(("verification_info",),),
    ),
    Format(
        "intellect",
        "PrimeIntellect/INTELLECT-3-RL (code)",
        Columns(
            statement=("question", "prompt", "problem"),
            tests=_read_intellect,
            platform="info.source",
            title=("problem_id", "id"),
            starter_code="info.starter_code",
            time_limit=("time_limit", "info.time_limit"),
            memory_limit=("memory_limit", "info.memory_limit"),
        ),
        tests_in="info.tests",
        marks=(("info.tests",),),
    ),
    Format(
        "nemogym",
        "NeMo-Gym's JSON lines, nvidia/Nemotron-3-Nano-RL-Training-Blend (code)",
        Columns(
            statement="responses_create_params.input",
            tests=_read_unit_tests,
            platform="dataset",
            title=("verifier_metadata.problem_id", "verifier_metadata.id", "id", "hash_id", "uuid"),
            difficulty="verifier_metadata.difficulty",
            time_limit=("time_limit", "verifier_metadata.time_limit"),
            memory_limit=("memory_limit", "verifier_metadata.memory_limit"),
        ),
        tests_in="verifier_metadata.unit_tests",
        shape=f'{PAIRS}; or {{"packed": ...}} of it',
        marks=(("verifier_metadata.unit_tests",), ("unit_tests",)),
    ),
    Format(
        "dolci",
        "allenai/Dolci-RL-Zero-Code-7B, Dolci-Think-RL (code)",
        Columns(
            prepare=_check_kinds,
            statement=("messages", "prompt"),
            tests=_read_ground_truth,
            fn_name=("fn_name", "entry_point"),
            platform=("original_dataset", "dataset_source"),
            title=("id", "custom_id", "problem_id"),
        ),
        tests_in="ground_truth",
        shape='a list of assertions or of {"input": ..., "output": ...}, as JSON or packed',
        marks=(
            ("ground_truth", "dataset"),
            ("ground_truth", "original_dataset"),
            ("ground_truth", "messages"),
        ),
    ),
    Format(
        "rstar",
        "microsoft/rStar-Coder",
        Columns(
            statement="question",
            tests=_pair,
            fn_name="func_name",
            title="question_id",
            starter_code="starter_code",
            solutions=partial(read_program, names=["code"]),
        ),
        tests_in="inputs, outputs",
        shape="two lists of one length, as JSON",
        marks=(("inputs", "outputs", "question"), ("inputs", "outputs", "func_name")),
    ),
    Format(
        "codecontests",
        "deepmind/code_contests",
        read_code_contests,
        tests_in="public_tests, private_tests, generated_tests",
        shape='{"input": [...], "output": [...]}',
        marks=(("private_tests",), ("public_tests",), ("generated_tests",)),
    ),
    Format(
        "openr1_codeforces",
        "open-r1/codeforces",
        read_codeforces,
        tests_in="official_tests",
        shape=LISTED,
        marks=(("official_tests",), ("official_tests", "generated_tests")),
    ),
    Format(
        "hardtests",
        "sigcp/hardtests_problems joined with hardtests_tests",
        Columns(
            statement=("statement", "question", "question_content"),
            tests="test_cases",
            url="url",
            title=("title", "pid"),
            difficulty="difficulty",
            starter_code="starter_code",
            solutions=_read_programs,
            also={"platform": _find_site, "checker": _read_judging},
        ),
        tests_in="test_cases",
        shape=LISTED,
        marks=(("test_cases", "pid"), ("test_cases", "test_cases_kit")),
    ),
)

_TESTS = (
    "tests",
    "test_cases",
    "input_output",
    "verification_info",
    "ground_truth",
    "reward_model",
    "test_list",
)
"""Columns that hold tests in published TRL sets; TRL itself names none."""
_SOLUTIONS = ("solution", "gold_standard_solution", "reference", "canonical_solution", "answer")


def _find_tests(row: Row) -> object:
    """Return what the first column of `_TESTS` that is not empty in a TRL row holds; None if all are."""
    if row.has("inputs") and row.has("outputs"):
        return _pair(row)
    for name in _TESTS:
        value = row.decoded(name)
        if isinstance(value, Mapping) and "ground_truth" in value:
            value = row.over(value).decoded("ground_truth")
        if value is not None and value not in ("", [], {}):
            return value
    return None


def _find_solution(row: Row) -> tuple[Solution, ...]:
    return python_solutions(
        next(([row.text(name)] for name in _SOLUTIONS if isinstance(row.get(name), str)), [])
    )


def _read_pass_rates(row: Row) -> tuple[str, ...]:
    """Return Skywork's pass rates by model; the row counts failures in 16 attempts: `{"DeepSeek-R1-...-7B": 4}`."""
    counts = sorted(row.mapping("extra_info.model_difficulty").items())
    return tuple(
        f"{model}={1 - num / 16:g}" for model, num in counts if is_number(num) and 0 <= num <= 16
    )


_VERL = Columns(
    prepare=partial(_refuse_other, name="ability"),
    statement="prompt",
    tests=("reward_model.ground_truth", "ground_truth"),
    fn_name=("extra_info.fn_name", "extra_info.func_name", "extra_info.entry_point"),
    platform="data_source",
    title=("extra_info.index", "extra_info.id"),
    starter_code="extra_info.starter_code",
    solutions=partial(
        read_program, names=("extra_info.solution", "extra_info.reference", "extra_info.answer")
    ),
    time_limit=("time_limit", "extra_info.time_limit"),
    memory_limit=("memory_limit", "extra_info.memory_limit"),
    also={"pass_rates": _read_pass_rates},
)
TRAINER_FORMATS = (
    Format(
        "verl",
        "verl's RL parquet, PRIME-RL/Eurus-2-RL-Data, Skywork-OR1",
        _VERL,
        tests_in="reward_model.ground_truth",
        shape=f"{PAIRS}; or a list of assertions",
        marks=(
            ("reward_model.ground_truth",),
            ("ground_truth", "extra_info"),
            ("ground_truth", "data_source"),
        ),
    ),
    Format(
        "trl",
        "JSON lines for TRL's GRPO trainer",
        Columns(
            statement=("prompt", "statement", "question", "description", "problem"),
            tests=_find_tests,
            fn_name=("fn_name", "func_name", "entry_point"),
            url="url",
            platform=("platform", "source"),
            title=("id", "problem_id", "task_id", "uid"),
            tags=("tags",),
            difficulty="difficulty",
            starter_code="starter_code",
            solutions=_find_solution,
        ),
        tests_in="tests, test_cases or ground_truth",
        shape=f"{PAIRS}; or a list of tests or assertions",
        marks=(
            ("prompt", "tests"),
            ("statement", "tests"),
            ("question", "tests"),
            ("description", "tests"),
            ("inputs", "outputs"),
            ("test_cases",),
            ("ground_truth",),
        ),
    ),
)
