"""Archives of data sets, unpacked once; the standard library's data filter refuses what a hostile one tries."""

from __future__ import annotations

import hashlib
import lzma
import shutil
import tarfile
import zlib
from pathlib import Path

from microcoder.errors import DataError

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")


def is_archive(path: str) -> bool:
    """Whether a source's path is one."""
    return path.endswith(SUFFIXES) and not path.startswith("hf://")


def unpack(archive: Path, *, into: Path, digest: str) -> Path:
    """Return the folder with an archive's content, which is whole or absent.

    Args:
        archive: a tar file, compressed or not.
        into: where folders of archives are made.
        digest: of the archive's content; a changed archive gets a folder of its own.

    Raises:
        DataError: it is damaged, or holds what could write outside its folder.
    """
    place = hashlib.sha256(f"{archive.name}\0{digest}".encode()).hexdigest()[:12]
    folder = into / f"{archive.name.split('.', 1)[0]}-{place}"
    if folder.exists():
        return folder
    partial = into / f".{folder.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with tarfile.open(archive) as content:
            content.extractall(partial, filter="data")
    except (tarfile.TarError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DataError(f"archive {archive} cannot be unpacked ({type(error).__name__}: {error})") from None
    partial.rename(folder)
    return folder
