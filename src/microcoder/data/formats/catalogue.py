"""Every public format by its name, and formats by a reference to a reader of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from microcoder.data.formats import contests, functions, kattis, own, sets, verl
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.extensions import Extension, ExtensionSource, load_extension

# Of two formats that as many of a row's fields speak for, the earlier one is taken.
_MODULES = (own, sets, contests, functions, verl, kattis)

FORMATS: Mapping[str, Format] = MappingProxyType(
    {format.name: format for module in _MODULES for format in module.FORMATS}
)
_READERS = {name: format.read for name, format in FORMATS.items()}


@lru_cache(64)
def load_format(name: str) -> Format:
    """Return a format: a key of `FORMATS`, path/to/file.py:function, module:function, or an entry point's name.

    A function of the user's own with `is_benchmark = True` on it reads a benchmark, which is never trained on; one with
    `folders` (`Folders`) reads folders of files.
    """
    if name in FORMATS:
        return FORMATS[name]
    extension = load_extension("format", name, builtins=_READERS)
    return Format(
        extension.label,
        f"your own, {name}",
        _Reader(extension),
        folders=_find_folders(extension),
        is_benchmark=getattr(extension.function, "is_benchmark", False) is True,
        tests_in="what its reader reads",
        shape="tests",
    )


def _find_folders(extension: Extension) -> Folders | None:
    folders = getattr(extension.function, "folders", None)
    if folders is not None and not isinstance(folders, Folders):
        raise extension.fault(f'has folders = {folders!r:.80}; write Folders(("problem.yaml",), ("*", "*/*"))')
    return folders


def find_source(name: str) -> ExtensionSource | None:
    """Return where a format's reader is; None for a built-in.

    Raises:
        ConfigError: as `load_format`.
    """
    read = load_format(name).read
    return read.extension.source if isinstance(read, _Reader) else None


class _Reader:
    """A reader of the user's own."""

    def __init__(self, extension: Extension) -> None:
        self.extension = extension

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        """Travel to other processes by name: its module is known to this one only."""
        return _load_reader, (self.extension.reference,)

    def __call__(self, row: Row) -> Candidate:
        candidate = self.extension(row, passing=(Malformed,))
        if not isinstance(candidate, Candidate):
            raise self.extension.fault(f"returned {candidate!r:.80}; return row.candidate(statement, tests=...)")
        return candidate


def _load_reader(name: str) -> object:
    return load_format(name).read
