"""YAML in folders: small documents of plain values. PyYAML comes with the data extra; rows do without."""

from __future__ import annotations

from typing import Any

import yaml

from microcoder.data.formats.text import shorten

MAX_YAML = 100_000


def read_yaml(text: str) -> Any:
    """Read a small YAML document of plain values; aliases are refused, as a few of them make a value without bound."""
    if len(text) > MAX_YAML:
        raise ValueError(f"{len(text):,} characters of YAML; at most {MAX_YAML:,} are read")
    try:
        return yaml.load(text, Loader=_PlainLoader)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # PyYAML does not check what stands after a tag such as !!int, so its own errors are of every kind.
    except (yaml.YAMLError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError) as error:
        raise ValueError(f"no YAML ({shorten(' '.join(str(error).split()))})") from None


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)
