"""Formats of rows as trainers take them: verl's parquet files, and JSON lines for TRL."""

from collections.abc import Mapping
from functools import partial

from microcoder.data.formats.candidates import Solution
from microcoder.data.formats.format import PAIRS, Columns, Format, read_program
from microcoder.data.formats.programs import python_solutions
from microcoder.data.formats.row import Row
from microcoder.data.formats.sets import pair_columns, refuse_other_tasks
from microcoder.data.formats.values import is_number

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
"""Columns that hold a solution in published TRL sets."""
_SKYWORK_ATTEMPTS = 16
"""Attempts of a model, among which Skywork's rows count the failures."""


def _find_tests(row: Row) -> object:
    """Return the first column of `_TESTS` that is not empty in a TRL row; None if all are empty."""
    if row.has("inputs") and row.has("outputs"):
        return pair_columns(row)
    for name in _TESTS:
        value = row.decoded(name)
        # As verl's `reward_model` has them.
        if isinstance(value, Mapping) and "ground_truth" in value:
            value = row.over(value).decoded("ground_truth")
        if value is not None and value not in ("", [], {}):
            return value
    return None


def _find_solution(row: Row) -> tuple[Solution, ...]:
    """Return the first column of `_SOLUTIONS` that is a text in a TRL row."""
    for name in _SOLUTIONS:
        if isinstance(row.get(name), str):
            return python_solutions([row.text(name)])
    return ()


def _read_pass_rates(row: Row) -> tuple[str, ...]:
    """Return Skywork's pass rates by model.

    The row counts failures in 16 attempts, such as `{"DeepSeek-R1-...-7B": 4}`.
    """
    rates = []
    for model, num_failures in sorted(row.mapping("extra_info.model_difficulty").items()):
        if is_number(num_failures) and 0 <= num_failures <= _SKYWORK_ATTEMPTS:
            rates.append(f"{model}={1 - num_failures / _SKYWORK_ATTEMPTS:g}")
    return tuple(rates)


_VERL = Columns(
    prepare=partial(refuse_other_tasks, name="ability"),
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
_TRL = Columns(
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
)
FORMATS = (
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
        _TRL,
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
"""Formats of trainers' rows. Their fields are common names, so more special formats go first."""
