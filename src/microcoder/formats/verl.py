"""verl's RL parquet (also Skywork-OR1), PRIME's Eurus-2 in that form, and TRL's prompt rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microcoder.formats.candidates import Candidate
from microcoder.formats.encodings import DecodedTests, decode_tests
from microcoder.formats.once import to_problem
from microcoder.formats.programs import python_solutions
from microcoder.formats.row import Malformed, Row
from microcoder.types import Problem

_TESTS = ("tests", "test_cases", "input_output", "verification_info", "ground_truth", "reward_model", "test_list")
"""Columns that hold tests in published TRL sets; TRL itself names none."""
_OF_THE_ROLLOUT = ("num_turns", "rollout_reward_scores")
"""What verl adds to a row's `extra_info` before a reward is asked for."""
_SOLUTIONS = ("solution", "gold_standard_solution", "reference", "canonical_solution", "answer")


def read_verl(row: Row) -> Candidate:
    """Read a row with `prompt`, `ability` and `reward_model.ground_truth`."""
    ability = row.optional("ability")
    if ability and not any(word in ability.lower() for word in ("cod", "program")):
        raise Malformed("other_task", ability)
    extra = row.inner("extra_info")
    holder = row.inner("reward_model") if row.has("reward_model") else row
    starter = extra.optional("starter_code")
    tests = decode_tests(
        holder.decoded("ground_truth"),
        fn_name=extra.optional("fn_name", "func_name", "entry_point"),
        platform=row.optional("data_source"),
        code=starter,
        is_judged=row.is_judged,
    )
    statement, notes = read_prompt(row)
    return row.candidate(
        statement,
        notes=(*notes, *tests.notes),
        platform=row.optional("data_source").lower(),
        title=extra.name("index", "id"),
        starter_code=starter or None,
        solutions=python_solutions([extra.optional("solution", "reference", "answer")]),
        pass_rates=_pass_rates(extra),
        **tests.fields,
    )


def problem_of_reward(data_source: Any, ground_truth: Any, extra_info: Mapping[str, Any] | None) -> Problem:
    """Return the problem of a row as verl hands it to whoever scores its responses.

    Raises:
        DataError: it cannot be judged, see `Problem.from_row`.
    """
    known = {name: value for name, value in (extra_info or {}).items() if name not in _OF_THE_ROLLOUT}
    return to_problem({"data_source": data_source, "ground_truth": ground_truth, "extra_info": known})


def read_trl(row: Row) -> Candidate:
    """Read a row with `prompt` and whatever columns its tests are in."""
    statement, notes = read_prompt(row)
    code = next((row.text(name) for name in _SOLUTIONS if isinstance(row.values.get(name), str)), "")
    starter = row.optional("starter_code")
    tests = _find_tests(row, starter or code)
    return row.candidate(
        statement,
        notes=(*notes, *tests.notes),
        title=row.name("id", "problem_id", "task_id"),
        url=row.optional("url"),
        platform=row.optional("platform", "source").lower(),
        platform_difficulty=row.name("difficulty"),
        tags=row.tags("tags"),
        starter_code=starter or None,
        solutions=python_solutions([code]),
        **tests.fields,
    )


def read_prompt(row: Row, name: str = "prompt") -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what the user asks in a field, a text or a list of messages, and a note of what else was said.

    Raises:
        Malformed: nothing is asked, though this is not only to be judged.
    """
    prompt = row.values.get(name)
    if isinstance(prompt, str) or prompt is None:
        return row.statement(name), ()
    messages = row.rows(name)
    asked = [message.text("content") for message in messages if message.optional("role") == "user"]
    if not asked or not asked[-1].strip():
        if row.is_judged:
            return "", ()
        raise Malformed("no_statement", f"{name} holds no message of a user")
    if len(messages) == 1:
        return asked[-1], ()
    return asked[-1], (("statement_found", f"the user's last of {len(messages)} messages; the others left out"),)


def _find_tests(row: Row, code: str) -> DecodedTests:
    fn_name = row.optional("fn_name", "func_name", "entry_point")
    if row.has("inputs") and row.has("outputs"):
        given = {"inputs": row.decoded("inputs"), "outputs": row.decoded("outputs")}
        return decode_tests(given, fn_name=fn_name, code=code, is_judged=row.is_judged)
    for name in _TESTS:
        value = row.decoded(name) if row.has(name) else None
        if isinstance(value, Mapping) and "ground_truth" in value:
            value = row.over(value).decoded("ground_truth")
        if value is not None and value not in ("", [], {}):
            return decode_tests(value, fn_name=fn_name, code=code, is_judged=row.is_judged)
    return DecodedTests()


def _pass_rates(extra: Row) -> tuple[str, ...]:
    """Skywork counts a model's failures in 16 attempts: `{"DeepSeek-R1-Distill-Qwen-7B": 4}`."""
    counts = extra.mapping("model_difficulty")
    return tuple(
        f"{model}={1 - count / 16:g}"
        for model, count in sorted(counts.items())
        if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count <= 16
    )
