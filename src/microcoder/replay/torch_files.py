"""Files of `torch.save` without torch: an archive with a pickle of plain values.

A pickle can run code, so only values of Python's own kinds are read: dictionaries, lists, texts and
numbers. What else it names, and every tensor, is None.
"""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import DataError

_DAMAGES = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    OSError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)
"""What a damaged archive or pickle raises."""


def read_saved(path: Path) -> Any:  # noqa: ANN401 - any plain value
    """Return the plain values of a file that `torch.save` wrote; DataError if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            content = archive.read(names[0])
        return _Plain(io.BytesIO(content)).load()
    except _DAMAGES as error:
        raise DataError(
            f"{path} is no file that torch.save wrote ({type(error).__name__}: {error})"
        ) from None


class _Nothing:
    """Stands for an object of a class that is not loaded, and takes whatever it is given."""

    def __init__(self, *_: object) -> None:
        """Ignore the arguments."""

    def __setstate__(self, _: object) -> None:
        """Ignore the state."""

    def __call__(self, *_: object) -> "_Nothing":
        """Do nothing where it stands for a function."""
        return self


class _Plain(pickle.Unpickler):
    """Reads Python's own kinds of values, and loads no class."""

    def find_class(self, module: str, name: str) -> type:
        """Return a stand-in, whatever is named."""
        return _Nothing

    def persistent_load(self, pid: object) -> None:
        """Return nothing for a tensor's storage."""
        return
