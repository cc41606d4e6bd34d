"""The trusted side of private folders: their names, their end, and the ones that a killed judge left behind."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from functools import cache
from pathlib import Path

from microcoder.machine import lock_file

PREFIX = "microcoder-sandbox-"
_NEW_SECONDS = 60.0
"""So long a folder may exist before its sandbox has marked it as in use."""
_TRIES = 20
_PAUSE_SECONDS = 0.05


def reserve_name() -> str:
    """Return the path of a folder that is not there yet."""
    try:
        parent = tempfile.gettempdir()
    except FileNotFoundError:
        # Nothing can be written anywhere. Where a sandbox can mount a folder of its own, that does not matter.
        parent = "/tmp"
    return f"{os.path.realpath(parent)}/{PREFIX}{os.urandom(12).hex()}"


def remove(path: str) -> None:
    """Remove the folder of a sandbox that was ended, if it had one.

    A process that was just killed may write once more; a folder that stays all the same is found by `sweep`.
    """
    # Imported here: Windows lacks it, and this module can be imported there all the same.
    from microcoder.evaluator.sandbox.folders import PRIVATE_MODE, empty_folder

    for _ in range(_TRIES):
        try:
            empty_folder(path, PRIVATE_MODE)
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@cache
def sweep(parent: str) -> None:
    """Once in a process: remove the folders of killed judges, which are no longer locked."""
    for path in Path(parent).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < time.time() - _NEW_SECONDS and is_abandoned(str(path)):
                remove(str(path))


def is_abandoned(path: str) -> bool:
    """Whether a folder is there that no sandbox has in use."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        lock_file(descriptor)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
