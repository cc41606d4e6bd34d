"""verl's RL parquet (also Skywork-OR1), PRIME's Eurus-2 in that form, and TRL's prompt rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from microcoder.data.formats.candidates import Solution
from microcoder.data.formats.format import PAIRS, Columns, Format, read_program
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import python_solutions

_TESTS = ("tests", "test_cases", "input_output", "verification_info", "ground_truth", "reward_model", "test_list")
"""Columns that hold tests in published TRL sets; TRL itself names none."""
_SOLUTIONS = ("solution", "gold_standard_solution", "reference", "canonical_solution", "answer")


def _check_ability(row: Row) -> Row:
    ability = row.optional("ability")
    if ability and not any(word in ability.lower() for word in ("cod", "program")):
        raise Malformed("other_task", ability)
    return row


def _find_tests(row: Row) -> object:
    """Return the tests of whatever column of a TRL row has some."""
    if row.has("inputs") and row.has("outputs"):
        return {"inputs": row.decoded("inputs"), "outputs": row.decoded("outputs")}
    for name in _TESTS:
        value = row.decoded(name)
        if isinstance(value, Mapping) and "ground_truth" in value:
            value = row.over(value).decoded("ground_truth")
        if value is not None and value not in ("", [], {}):
            return value
    return None


def _find_solution(row: Row) -> tuple[Solution, ...]:
    return python_solutions(next(([row.text(name)] for name in _SOLUTIONS if isinstance(row.get(name), str)), []))


def _read_pass_rates(row: Row) -> tuple[str, ...]:
    """Skywork counts a model's failures in 16 attempts: `{"DeepSeek-R1-Distill-Qwen-7B": 4}`."""
    counts = row.mapping("extra_info.model_difficulty")
    return tuple(
        f"{model}={1 - count / 16:g}"
        for model, count in sorted(counts.items())
        if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count <= 16
    )


_VERL = Columns(
    prepare=_check_ability,
    statement="prompt",
    tests=("reward_model.ground_truth", "ground_truth"),
    fn_name=("extra_info.fn_name", "extra_info.func_name", "extra_info.entry_point"),
    platform="data_source",
    title=("extra_info.index", "extra_info.id"),
    starter_code="extra_info.starter_code",
    solutions=partial(read_program, names=("extra_info.solution", "extra_info.reference", "extra_info.answer")),
    also={"pass_rates": _read_pass_rates},
)
FORMATS = (
    Format(
        "eurus",
        "PRIME-RL/Eurus-2-RL-Data",
        _VERL,
        tests_in="reward_model.ground_truth",
    ),
    Format(
        "verl",
        "verl's RL parquet, PRIME's Eurus-2, Skywork-OR1",
        _VERL,
        tests_in="reward_model.ground_truth",
        shape=f"{PAIRS}; or a list of assertions",
        marks=(("reward_model.ground_truth",), ("ground_truth", "extra_info"), ("ground_truth", "data_source")),
    ),
    Format(
        "trl",
        "JSON lines for TRL's GRPO trainer",
        Columns(
            statement="prompt",
            tests=_find_tests,
            fn_name=("fn_name", "func_name", "entry_point"),
            url="url",
            platform=("platform", "source"),
            title=("id", "problem_id", "task_id"),
            tags=("tags",),
            difficulty="difficulty",
            starter_code="starter_code",
            solutions=_find_solution,
        ),
        tests_in="tests, test_cases or ground_truth",
        shape=f"{PAIRS}; or a list of tests or assertions",
        marks=(("prompt", "tests"), ("inputs", "outputs"), ("test_cases",), ("ground_truth",)),
    ),
)
