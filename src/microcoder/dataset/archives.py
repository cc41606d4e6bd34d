"""Archives of data sets, unpacked once: folders and files inside their own folder; anything else is refused."""

from __future__ import annotations

import hashlib
import lzma
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from uuid import uuid4

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
    partial = into / f".{folder.name}.{uuid4().hex[:12]}.partial"
    partial.mkdir(parents=True)
    try:
        with tarfile.open(archive) as content:
            for member in content:
                _write(content, member, partial)
    except (tarfile.TarError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DataError(f"archive {archive} cannot be unpacked ({type(error).__name__}: {error})") from None
    try:
        partial.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        # Another build was faster; what it unpacked is the same.
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _write(content: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    # The standard library's own filter came with 3.11.4; systems with an older 3.11 are about.
    name = PurePosixPath(member.name)
    if not (member.isfile() or member.isdir()) or name.is_absolute() or ".." in name.parts:
        raise tarfile.TarError(f"{member.name!r} is no plain file or folder inside the archive")
    target = folder / name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = content.extractfile(member)
    assert source is not None
    with source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
