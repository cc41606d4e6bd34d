"""Formats of sets with stdin tests and calls, whose rows are tables with columns of many names.

APPS, TACO, LiveCodeBench, and sets made to train by reinforcement. TACO#18, APPS#27 and #29 report
tests outside the constraints, problems with many answers, and wrong references: the verify stage
runs them.
"""

from collections.abc import Callable, Mapping
from functools import partial

from microcoder.data.formats import livecodebench
from microcoder.data.formats.candidates import Solution
from microcoder.data.formats.format import PAIRS, Columns, Format, read_program
from microcoder.data.formats.programs import name_language, python_solutions
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import read_lines
from microcoder.data.formats.values import read_literal

_CODING_WORDS = ("cod", "program")
"""Parts of words, one of which the name of every coding task has."""
_FLATTENED = "user: "
"""Prefix of those of Dolci's prompts that are chats flattened to text; it is cut off."""
_MOST_SHOWN = 5
"""Names of fields that a message shows."""


def _find_picture(row: Row) -> tuple[str, ...]:
    """Return the flag of a problem of TACO that comes with pictures."""
    return ("needs_image",) if row.number("picture_num") else ()


_APPS = Columns(
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
    also={"flags": _find_picture},
)
"""Columns of APPS, and of TACO, which was made after it."""


def refuse_other_tasks(row: Row, name: str) -> Row:
    """Return the row; Malformed if a field names tasks none of which is coding.

    Args:
        name: of the field, a text or a list of texts; if it names no task, the row is taken.
    """
    value = row.get(name)
    if isinstance(value, list):
        tasks = row.texts(name)
    else:
        tasks = (row.optional(name),)
    named = [task for task in tasks if task]
    # Mixed sets name several tasks for a row; one of them is enough.
    if named and not any(_is_coding(task) for task in named):
        raise Malformed("other_task", ", ".join(named))
    return row


def _is_coding(task: str) -> bool:
    lowered = task.lower()
    return any(word in lowered for word in _CODING_WORDS)


def pair_columns(row: Row) -> object:
    """Return the columns `inputs` and `outputs` as one object; None if both are empty."""
    inputs = row.decoded("inputs")
    outputs = row.decoded("outputs")
    if not inputs and not outputs:
        return None
    return {"inputs": inputs, "outputs": outputs}


def _check_synthetic(row: Row) -> Row:
    """Return a row of SYNTHETIC; Malformed if its task is not coding."""
    refuse_other_tasks(row, "task_type")
    info = row.mapping("verification_info")
    if info and "test_cases" not in info:
        names = ", ".join(list(info)[:_MOST_SHOWN])
        raise Malformed("bad_tests", f"verification_info has no test_cases, but {names}")
    return row


def _read_language(row: Row) -> str:
    """Return the language of a row of SYNTHETIC."""
    return name_language(row.optional("verification_info.language")) or "python"


def _read_gold(row: Row) -> tuple[Solution, ...]:
    """Return the solution of a row of SYNTHETIC, in the row's language."""
    # As if in Python, so that code in Markdown loses its fence.
    solutions = python_solutions([row.optional("gold_standard_solution")])
    language = _read_language(row)
    if language == "python":
        return solutions
    return tuple(Solution(code=solution.code, language=language) for solution in solutions)


def _read_intellect(row: Row) -> object:
    """Return `info.tests`; those of a function have arguments and values decoded from text."""
    tests = row.decoded("info.tests")
    if not isinstance(tests, Mapping) or not tests.get("fn_name"):
        return tests
    inputs = tests.get("inputs")
    outputs = tests.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        return tests
    try:
        arguments = [_read_text(value, read_lines) for value in inputs]
        values = [_read_text(value, read_literal) for value in outputs]
    except ValueError:
        # Left as it is: the reader of tests says what is wrong with it.
        return tests
    return {**tests, "inputs": arguments, "outputs": values}


def _read_text(value: object, read: Callable[[str], object]) -> object:
    """Return what a text holds; any other value is one already."""
    return read(value) if isinstance(value, str) else value


def _read_unit_tests(row: Row) -> object:
    """Return the inputs and outputs in NeMo-Gym's `unit_tests`.

    They are unpacked if the column is `{"packed": ..., "fn_name": ...}`.
    """
    name = "unit_tests"
    if row.has("verifier_metadata.unit_tests"):
        name = "verifier_metadata.unit_tests"
    tests = row.mapping(name)
    if "packed" not in tests:
        return tests
    unpacked = row.unpacked(f"{name}.packed")
    if not isinstance(unpacked, dict):
        raise Malformed(
            "bad_tests", f"{name}.packed holds {type(unpacked).__name__}, not inputs and outputs"
        )
    fn_name = tests.get("fn_name") or unpacked.get("fn_name")
    return {**unpacked, "fn_name": fn_name}


def _check_dolci(row: Row) -> Row:
    """Return a row of open-instruct's form, its prompt without `user: `.

    Raises:
        Malformed: its task is not coding.
    """
    refuse_other_tasks(row, "dataset")
    prompt = row.get("prompt")
    if not isinstance(prompt, str):
        return row
    plain = prompt.removeprefix(_FLATTENED)
    return row.over({**row.values, "prompt": plain})


def _read_ground_truth(row: Row) -> object:
    """Return the tests in Dolci's `ground_truth`.

    They are decoded from JSON, plain or packed, also inside a list of one text.
    """
    value = row.get("ground_truth")
    if not isinstance(value, list) or len(value) != 1:
        return row.unpacked("ground_truth")
    (only,) = value
    if isinstance(only, str) and only.lstrip().startswith("assert"):
        return value  # The only assertion of a row.
    return row.over({"ground_truth": only}).unpacked("ground_truth")


FORMATS = (
    Format(
        "apps",
        "codeparrot/apps",
        _APPS,
        tests_in="input_output",
        marks=(("input_output",),),
    ),
    Format(
        "taco",
        "BAAI/TACO, likaixin/TACO-verified",
        _APPS,
        tests_in="input_output",
        # TACO has all columns of APPS: one more field tells them apart.
        marks=(("input_output", "raw_tags"), ("input_output", "skill_types")),
    ),
    livecodebench.FORMAT,
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
        "PrimeIntellect/verifiable-coding-problems, SYNTHETIC-2-RL, "
        "open-r1/verifiable-coding-problems-python",
        Columns(
            prepare=_check_synthetic,
            statement=("problem_statement", "prompt", "problem"),
            tests="verification_info.test_cases",
            url=("metadata.problem_url", "metadata.url"),
            platform="source",
            title=("in_source_id", "problem_id"),
            difficulty="metadata.difficulty",
            solutions=_read_gold,
            time_limit="metadata.time_limit",
            memory_limit=("metadata.memory_limit_bytes", "metadata.memory_limit"),
            also={"programming_language": _read_language},
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
            prepare=_check_dolci,
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
            tests=pair_columns,
            fn_name="func_name",
            title="question_id",
            starter_code="starter_code",
            solutions=partial(read_program, names=["code"]),
        ),
        tests_in="inputs, outputs",
        shape="two lists of one length, as JSON",
        marks=(("inputs", "outputs", "question"), ("inputs", "outputs", "func_name")),
    ),
)
"""Formats of sets with stdin tests and calls; where two match a row as well, the first counts."""
