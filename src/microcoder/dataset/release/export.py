"""A finished corpus in the form of another program: trainers, judges, benchmarks; plain problem lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from microcoder.dataset.problems import write_problems
from microcoder.dataset.release import forms
from microcoder.dataset.release.harbor import to_harbor
from microcoder.errors import DataError
from microcoder.files import write_parquet, write_text
from microcoder.types import Problem

_VERL = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        # A string on purpose: mixed nested types break the merging of Parquet schemas.
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("index", pa.int64()), ("id", pa.string()), ("problem", pa.string())])),
    ]
)


def to_verl(problems: Sequence[Problem], path: Path) -> int:
    """Write verl's RL Parquet (see `forms.verl_row`)."""
    write_parquet(path, [forms.verl_row(problem, index) for index, problem in enumerate(problems)], _VERL)
    return len(problems)


def to_lines(problems: Sequence[Problem], path: Path, *, form: Callable[[Problem, int], forms.Form | None]) -> int:
    """Write JSON lines of a form, without the problems that it has no place for."""
    rows = [row for index, problem in enumerate(problems) if (row := form(problem, index)) is not None]
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def to_jsonl(problems: Sequence[Problem], path: Path) -> int:
    """Write our own problem lines."""
    write_problems(path, problems)
    return len(problems)


EXPORTS: Mapping[str, Callable[[Sequence[Problem], Path], int]] = MappingProxyType(
    {
        "verl": to_verl,
        "trl": partial(to_lines, form=forms.trl_row),
        "nemogym": partial(to_lines, form=forms.nemogym_row),
        "verifiers": partial(to_lines, form=forms.verifiers_row),
        "livecodebench": partial(to_lines, form=forms.livecodebench_row),
        "harbor": to_harbor,
        "jsonl": to_jsonl,
    }
)


def export(problems: Sequence[Problem], path: Path, *, form: str) -> int:
    """Write problems in another program's form; return how many it has a place for.

    Raises:
        DataError: the form is unknown, or cannot hold them.
    """
    if form not in EXPORTS:
        raise DataError(f"form = {form!r}; use one of {', '.join(EXPORTS)}")
    return EXPORTS[form](problems, path)
