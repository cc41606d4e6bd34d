"""APPS (`codeparrot/apps`, or the original folders) and TACO (`BAAI/TACO`, `likaixin/TACO-verified`): one encoding.

TACO#18, APPS#27 and #29 report tests outside the constraints, problems with many answers, and wrong references: the
verify stage runs them.
"""

from __future__ import annotations

from microcoder.formats.candidates import Candidate
from microcoder.formats.columns import Columns
from microcoder.formats.format import Folders, Format
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import read_json


def _read_folder(row: Row) -> Candidate:
    """Read a folder of the original layout as the row that it was published as later."""
    files = row.files()
    if "question.txt" not in files:
        raise Malformed("no_statement", "the folder has no question.txt")
    try:
        metadata = read_json(files.get("metadata.json", "{}") or "{}")
    except ValueError as error:
        raise Malformed("bad_encoding", f"metadata.json: {error}") from None
    if not isinstance(metadata, dict):
        raise Malformed("wrong_type", f"metadata.json holds {type(metadata).__name__}, not an object")
    values = {
        "problem_id": row.values.get("name"),
        "question": files["question.txt"],
        "solutions": files.get("solutions.json"),
        "input_output": files.get("input_output.json"),
        "starter_code": files.get("starter_code.py"),
    }
    return _COLUMNS(row.over({**metadata, **values}))


def _find_flags(row: Row) -> tuple[str, ...]:
    return ("needs_image",) if (row.number("picture_num") or 0) > 0 else ()


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
    time_limit="time_limit",
    memory_limit="memory_limit",
    also={"flags": _find_flags},
)
FORMATS = (
    Format(
        "apps",
        "codeparrot/apps",
        _COLUMNS,
        licence="MIT",
        tests_in="input_output",
        marks=(("input_output",),),
    ),
    Format(
        "apps_folder",
        "APPS as first published, a folder a problem",
        _read_folder,
        licence="MIT",
        folders=Folders(
            ("question.txt",),
            ("question.txt", "input_output.json", "solutions.json", "metadata.json", "starter_code.py"),
        ),
    ),
    Format(
        "taco",
        "BAAI/TACO, likaixin/TACO-verified",
        _COLUMNS,
        licence="Apache-2.0",
        tests_in="input_output",
        marks=(("input_output", "raw_tags"), ("input_output", "skill_types")),
    ),
)
