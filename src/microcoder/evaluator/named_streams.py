"""Programs that open their standard streams by name: `/dev/stdin`, `/dev/fd/1`, `/proc/self/fd/0`.

A private root has no `/proc`, so streams in anonymous memory have no name there. A program whose text holds such a name
is given a copy of its input as a file, and files in the place of its output streams, which the fork server reads after
the test; every other program is spared them.
"""

from __future__ import annotations

import re

_NAMES_INPUT = re.compile(r"/dev/(?!null|zero|u?random|stdout|stderr)|/proc/")
_NAMES_OUTPUT = re.compile(r"/dev/(?!null|zero|u?random|stdin)|/proc/")


def names_input(code: str) -> bool:
    """Whether a program's text may name its standard input."""
    return _NAMES_INPUT.search(code) is not None


def names_output(code: str) -> bool:
    """Whether a program's text may name its standard output or error."""
    return _NAMES_OUTPUT.search(code) is not None
