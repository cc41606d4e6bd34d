"""What the golden pack's parts are made of: short values,
texts without what differs between machines, differences.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microcoder import __version__

ROOT = Path(__file__).parents[1]
Values = dict[str, str]
_MEASURED = re.compile(
    r"seconds|memory_mib|per_second|started|ended|isolation|^(machine|git|packages|environment)$"
)
"""Keys of records that tell of the machine."""


class Skipped(Exception):
    """This machine cannot run a part; why."""


def digest(value: Any) -> str:
    """Return twelve hexadecimal digits of bytes, a text or anything that is JSON."""
    if not isinstance(value, bytes | str):
        value = json.dumps(value, sort_keys=True, default=str)
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:12]


def shorten(text: str) -> str:
    """Return a text on one line; a long one as its beginning and a digest."""
    line = " ".join(text.encode("ascii", "backslashreplace").decode().split())
    return line if len(line) <= 72 else f"{line[:48]} ... {digest(text)}"


def steady(text: str, *places: Path | str) -> str:
    """Return a text without what differs between machines and versions: places, ports, addresses,
    modules.
    """
    for place in sorted(map(str, (*places, ROOT, Path.home())), key=len, reverse=True):
        text = text.replace(place, "PLACE")
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/[\w.-]+", "TEMPORARY", text)
    text = re.sub(r"\b(?:src/)?microcoder(?:[./][a-z_]+)+(?:\.py)?(?::\d+)?", "MODULE", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
    text = re.sub(r"\b[\d.]+ s of CPU time", "LIMIT of CPU time", text)
    return text.replace(__version__, "VERSION")


def without_measures(value: Any) -> Any:
    """Return a record without what was measured on this machine."""
    if isinstance(value, Mapping):
        kept = {}
        for key, one in value.items():
            if not _MEASURED.search(str(key)):
                kept[key] = without_measures(one)
        return kept
    return [without_measures(one) for one in value] if isinstance(value, list | tuple) else value


def flatten(value: Any, name: str) -> Values:
    """Return the leaves of a record under dotted names."""
    if isinstance(value, Mapping) and value:
        leaves = {}
        for part in value:
            for key, leaf in flatten(value[part], f"{name}.{part}").items():
                leaves[key] = leaf
        return leaves
    return {name: shorten(json.dumps(value, sort_keys=True, default=str))}


def compare_packs(old: Mapping[str, Values], new: Mapping[str, Values]) -> list[str]:
    """Return a line for every value that moved, is gone or is new,
    in the parts that the new pack has.
    """
    lines = []
    for part, values in new.items():
        before = old.get(part, {})
        lines += [
            f"{part}/{name}: gone, was {before[name]}" for name in before.keys() - values.keys()
        ]
        lines += [f"{part}/{name}: new, {values[name]}" for name in values.keys() - before.keys()]
        lines += [
            f"{part}/{name}: {before[name]} -> {values[name]}"
            for name in values.keys() & before.keys()
            if before[name] != values[name]
        ]
    return sorted(lines)
