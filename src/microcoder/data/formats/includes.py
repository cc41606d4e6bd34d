"""Puts programs of several files into one: C++ headers in the place of their includes.

Nothing is executed here.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
"""An import in Python; its group is the module's name."""
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">].*$', re.MULTILINE)
"""An include in C++; its groups are the opening quote or bracket, and the path."""
_INCLUDED = (".h", ".hpp", ".hh", ".cpp", ".cc")
"""Suffixes of files that are looked for in other folders."""


def inline_includes(
    path: str,
    files: Mapping[str, str],
    *,
    anywhere: bool = False,
) -> tuple[str, list[str]]:
    """Return a source with the package's files in place of its includes, and the missing ones.

    Args:
        path: of the source. A Python source stays as it is; the modules beside it that it imports
            are missing.
        anywhere: also use headers from other folders of the package, and for includes in angle
            brackets.
    """
    if path.endswith((".py", ".py3")):
        return files[path], _find_modules_beside(path, files)
    missing: list[str] = []
    seen = {path}

    def inline(source: str) -> str:
        folder = posixpath.dirname(source)

        def replace(include: re.Match[str]) -> str:
            is_local = include[1] == '"'
            name = include[2]
            target = None
            if is_local or anywhere:
                target = _find_included(folder, name, files, anywhere)
            if target is None:
                # `#include "cstring"` is looked for beside the file, then among standard headers.
                is_standard = "." not in name or name.startswith("bits/")
                if is_local and not is_standard:
                    missing.append(name)
                return include[0]
            # As `#pragma once` does: a header is put in once.
            if target in seen:
                return ""
            seen.add(target)
            return inline(target)

        return _INCLUDE.sub(replace, files[source])

    return inline(path), missing


def _find_modules_beside(path: str, files: Mapping[str, str]) -> list[str]:
    """Return the names of the modules beside a Python source that it imports, sorted."""
    folder = posixpath.dirname(path)
    modules = set()
    for name in files:
        if posixpath.dirname(name) == folder and name != path:
            modules.add(PurePosixPath(name).stem)
    return sorted(modules & set(IMPORT.findall(files[path])))


def _find_included(
    folder: str,
    name: str,
    files: Mapping[str, str],
    anywhere: bool,
) -> str | None:
    """Return the path of an included file: beside the source, or `anywhere` if its name is one."""
    beside = posixpath.normpath(posixpath.join(folder, name))
    if beside in files:
        return beside
    base = posixpath.basename(name)
    if not anywhere or not base.endswith(_INCLUDED):
        return None
    # Sorted, so that of several files of one name it is always the same.
    for path in sorted(files):
        if posixpath.basename(path) == base:
            return path
    return None
