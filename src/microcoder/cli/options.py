"""Options of commands that take a configuration: TOML files, and its keys as flags."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import ConfigError

Flag = Annotated[bool, Parameter(negative="")]
Overrides = Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]
"""Keys of the configuration as flags."""
_RECIPES = "A TOML file, or the name of a recipe in the package. Repeat to override it with further ones."
Recipes = Annotated[tuple[Path, ...], Parameter(name=["--config", "-c"], negative="", help=_RECIPES)]
DryRun = Annotated[bool, Parameter(negative="", help="Print the resolved config, what it costs if known, and stop.")]
Json = Annotated[bool, Parameter(negative="", help="Print one JSON object instead of text.")]

_OPTIONS = ("--config", "--run-dir", "--dry-run", "--gpu-memory-gib", "--json")
"""Of the commands that take configuration keys as flags."""


def parse_overrides(words: tuple[str, ...]) -> dict[str, str]:
    """Return `--dotted.key value` and `--dotted.key=value` words as a mapping."""
    overrides: dict[str, str] = {}
    rest = list(words)
    while rest:
        flag = rest.pop(0)
        if not flag.startswith("--") or len(flag) == 2:
            raise ConfigError(f"unexpected argument {flag!r}; keys of the config are given as --dotted.key VALUE")
        key, has_value, value = flag[2:].partition("=")
        if close := difflib.get_close_matches(f"--{key.replace('_', '-')}", _OPTIONS, n=1, cutoff=0.8):
            raise ConfigError(f"unknown option {flag}; did you mean {close[0]}?")
        if not has_value:
            if not rest:
                raise ConfigError(f"{flag} has no value; type {flag} VALUE")
            value = rest.pop(0)
        overrides[key.replace("-", "_")] = value
    return overrides


def print_resolved(config: Mapping[str, Any]) -> None:
    """Print a resolved configuration, a key a line."""
    for key, value in flatten(config).items():
        print(f"{key} = {json.dumps(value)}")
