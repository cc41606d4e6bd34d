"""Write docs/reference.md from the code: keys, metrics, folders. `make docs` runs it; a test compares."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from microcoder import metrics, runs
from microcoder.dataset.build import BuildConfig
from microcoder.docstrings import attribute_docstrings
from microcoder.evaluation import EvalConfig, folder
from microcoder.records import nested_models
from microcoder.training.config import TrainConfig
from microcoder.types import Problem

TARGET = Path(__file__).parent / "reference.md"


def render() -> str:
    """Return the reference as Markdown."""
    lines = [
        "# Reference",
        "",
        "Written by `make docs` from the code; do not edit.",
        "",
        "## Recipe keys",
        "",
        "Any key can be given as a flag: `--algorithm.masking.rho 0.2`.",
        "",
        *_table(TrainConfig),
        "",
        "## Evaluation keys",
        "",
        "Of `microcoder eval`; any key can be given as a flag: `--generation.sampling.num_samples 10`.",
        "",
        *_table(EvalConfig),
        "",
        "## Corpus keys",
        "",
        "Of `microcoder data build`; any key can be given as a flag: `--filter.recency.model_cutoff 2025-01`.",
        "",
        *_table(BuildConfig),
        "",
        "## Problem record",
        "",
        "One JSON object a line.",
        "",
        *_table(Problem),
        "",
        "## Run directory",
        "",
        inspect.getdoc(runs) or "",
        "",
        "## Evaluation folder",
        "",
        inspect.getdoc(folder) or "",
        "",
        "## metrics.jsonl",
        "",
        *_attributes(metrics.StepMetrics),
        "",
        "## evaluations.jsonl",
        "",
        *_attributes(metrics.EvaluationMetrics),
        "",
    ]
    return "\n".join(lines)


def _table(schema: type[BaseModel]) -> list[str]:
    rows = [f"| `{key}` | {default} | {text} |" for key, default, text in _keys(schema)]
    return ["| key | default | meaning |", "| --- | --- | --- |", *rows]


def _keys(schema: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    meanings = attribute_docstrings(schema)
    for name, field in schema.model_fields.items():
        models = list(nested_models(field.annotation))
        for model in models:
            kind = model.model_fields.get("kind")
            if kind is not None and len(models) > 1:
                yield f'{prefix}{name}.kind = "{get_args(kind.annotation)[0]}"', "", _first_line(model)
            yield from ((k, d, t) for k, d, t in _keys(model, f"{prefix}{name}.") if not k.endswith(f"{name}.kind"))
        if not models:
            yield prefix + name, _default(field), meanings.get(name, "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return f"`{json.dumps(value, default=str)}`" if value is not None else "none"


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]


def _attributes(noun: type) -> list[str]:
    """List a dataclass's fields with the docstrings under them."""
    meanings = attribute_docstrings(noun)
    rows = [f"| `{field.name}` | {meanings.get(field.name, '')} |" for field in dataclasses.fields(noun)]
    return ["| field | meaning |", "| --- | --- |", *rows]


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
    print(f"wrote {TARGET}")
