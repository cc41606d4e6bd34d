"""Folders that are made once for this machine and kept: packages, and precompiled headers.

They are made when a judge first needs them:

    <root>/<digest>/             one profile for one Python: its modules, and `profile.json`, which
                                 describes it
    <root>/headers/<digest>/     one header for one compiler
    .<digest>.lock               beside each; held while it is made

The root is MICROCODER_PACKAGES if that is set. Else folders are looked for in the user's cache
(~/.cache/microcoder/packages) and then in the one that root fills for all users
(/var/cache/microcoder/packages).
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import lock_file

ROOT_VARIABLE = "MICROCODER_PACKAGES"
"""Environment variable: where packages are kept.

It may be a folder that all nodes of a cluster see.
"""
_FOR_EVERYBODY = Path("/var/cache/microcoder/packages")
"""The root that the user root fills for all users."""
_FOLDER_MODE = 0o755
"""Everybody may read a folder, its owner may change it."""
_FILE_MODE = 0o644
"""Everybody may read a file, its owner may change it."""


def find_roots() -> tuple[Path, ...]:
    """Return the roots that are searched for packages and headers.

    New ones are made in the first.
    """
    root = os.environ.get(ROOT_VARIABLE)
    if root:
        return (Path(root).absolute(),)
    cache = os.environ.get("XDG_CACHE_HOME")
    # Root has no cache of its own by default: it fills the one that all users read.
    if cache is None and os.geteuid() == 0:
        return (_FOR_EVERYBODY,)
    own = Path(cache or os.path.expanduser("~/.cache")) / "microcoder" / "packages"
    if not own.is_absolute():
        # A user id that the machine does not know, as in many containers, has no home.
        return (_FOR_EVERYBODY,)
    return (own, _FOR_EVERYBODY)


def find_kept(roots: Sequence[Path], digest: str) -> Path | None:
    """Return the folder named by a digest in the first root that has it; None if none has."""
    for root in roots:
        folder = root / digest
        if folder.is_dir():
            return folder
    return None


def keep_folder(
    roots: Sequence[Path],
    digest: str,
    make: Callable[[Path], object],
    *,
    waits: bool = True,
) -> Path:
    """Return the folder named by a digest; if no root has it, make it.

    It appears in the first root, and it appears whole.

    Args:
        roots: the roots that may have it.
        digest: the folder's name.
        make: fills an empty folder.
        waits: whether to wait for another process that fills it.

    Raises:
        BlockingIOError: another process fills it, and `waits` is false.
        EvaluatorFault: the root cannot be written, or `make` raised it.
    """
    kept = find_kept(roots, digest)
    if kept is not None:
        return kept
    root = roots[0]
    try:
        make_root(root)
        with (root / f".{digest}.lock").open("a") as lock:
            lock_file(lock, waits=waits)
            # The holder before may have made it.
            kept = find_kept(roots, digest)
            if kept is not None:
                return kept
            return _make_folder(root, digest, make)
    # An OSError, too, but no fault: the caller asked not to wait.
    except BlockingIOError:
        raise
    except OSError as error:
        raise EvaluatorFault(
            f"{root} cannot be written ({error.strerror}); set {ROOT_VARIABLE} to a folder that can"
        ) from None


def _make_folder(root: Path, digest: str, make: Callable[[Path], object]) -> Path:
    """Fill a folder under another name, then rename it; the caller holds its lock."""
    for left_by_a_kill in root.glob(f".{digest}-*"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    # In the same root: a rename is atomic only within one file system.
    staging = Path(tempfile.mkdtemp(prefix=f".{digest}-", dir=root))
    try:
        make(staging)
        # Programs and compilers run as users of their own, whatever the umask.
        for path in (staging, *staging.rglob("*")):
            path.chmod(_FOLDER_MODE if path.is_dir() else _FILE_MODE)
        return staging.rename(root / digest)
    # After the rename there is nothing left; after an error the half that was made goes.
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def make_root(root: Path) -> None:
    """Create a root if it is missing, readable by everybody whatever the umask."""
    if not root.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        # The mode of `mkdir` is cut by the umask.
        root.chmod(_FOLDER_MODE)
