"""The keys of a configuration with their docstrings, for `--help` and the reference."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from microcoder.judge.core.records import nested_models
from microcoder.judge.core.syntax import attribute_docstrings


@dataclass(frozen=True, slots=True)
class Key:
    """One key, or one kind of a table."""

    name: str
    """Dotted."""
    default: str
    """Default as JSON; or `required`, `none`, or empty for a kind."""
    meaning: str


def list_keys(schema: type[BaseModel], prefix: str = "") -> Iterator[Key]:
    """Yield every key of a configuration, those of its tables and of all their kinds included."""
    meanings = attribute_docstrings(schema)
    for name, field in schema.model_fields.items():
        models = list(nested_models(field.annotation))
        for model in models:
            kind = model.model_fields.get("kind")
            if kind is not None and len(models) > 1:
                yield Key(f'{prefix}{name}.kind = "{get_args(kind.annotation)[0]}"', "", _first_line(model))
            for key in list_keys(model, f"{prefix}{name}."):
                if not key.name.endswith(f"{name}.kind"):
                    yield key
        if not models:
            yield Key(prefix + name, _default(field), meanings.get(name, ""))


def describe_keys(schema: type[BaseModel], *, width: int, usual: Collection[str] = ()) -> str:
    """Return the keys as text, one paragraph a key, under a line for each table; or the usual ones, a line each."""
    if usual:
        keys = {key.name: key for key in list_keys(schema)}
        indent = max(len(_show(keys[name])) for name in usual) + 6
        lines = ["The usual configuration keys, in a TOML file or as flags:"]
        for name in usual:
            meaning = textwrap.shorten(keys[name].meaning, max(20, width - indent), placeholder=" ...")
            lines.append(f"  --{_show(keys[name]):<{indent - 4}}{meaning}".rstrip())
        return "\n".join(lines)
    meanings = attribute_docstrings(schema)
    heads = {
        # Of several kinds each says for itself what it is.
        name: meanings.get(name) or (_first_line(models[0]) if len(models) == 1 else "")
        for name, field in schema.model_fields.items()
        if (models := list(nested_models(field.annotation)))
    }
    lines, table = ["Configuration keys, in a TOML file or as flags:"], ""
    # Those that are in no table come first, as in a file.
    for key in sorted(list_keys(schema), key=lambda key: key.name.partition(".")[0] in heads):
        group = key.name.partition(".")[0]
        if group in heads and group != table:
            table = group
            lines += ["", f"[{group}] {heads[group]}".rstrip()]
        lines.append(f"  --{_show(key)}" + (" (required)" if key.default == "required" else ""))
        lines += textwrap.wrap(key.meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def _show(key: Key) -> str:
    return key.name if key.default in ("", "required", "none") else f"{key.name} = {key.default}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return json.dumps(value, default=str) if value is not None else "none"


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]
