"""Split files into pieces, for machines that take only small ones, and join them again, checked.

    python benchmarks/pieces.py split CHECKPOINT PIECES [--mib 56]     a file or a folder
    python benchmarks/pieces.py join PIECES CHECKPOINT

A folder of pieces has `pieces.json`: each file's size, SHA-256 and pieces. Joining writes nothing
under the target's name before every file has its size and digest. A file's pieces are numbered;
files that are small stay whole.
"""

import argparse
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import TypedDict

INDEX = "pieces.json"
"""Name of the file that says which pieces make which file."""

BLOCK_BYTES = 1 << 20
"""Bytes read at a time."""


class Entry(TypedDict):
    """What the index says of a file."""

    bytes: int
    sha256: str
    pieces: list[str]


def split(source: Path, target: Path, *, piece_mib: int) -> dict[str, Entry]:
    """Write the pieces of a file, or of all files under a folder, and return the index.

    Raises:
        FileExistsError: the target holds something already.
        FileNotFoundError: there is no source.
    """
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty; name a new folder for the pieces")
    if not source.exists():
        raise FileNotFoundError(f"there is no file or folder {source}")
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.is_file())
        root = source
    else:
        files = [source]
        root = source.parent
    target.mkdir(parents=True, exist_ok=True)
    index: dict[str, Entry] = {}
    for number, path in enumerate(files):
        name = path.relative_to(root).as_posix()
        index[name] = _split_file(path, target, prefix=f"{number:03d}", piece_mib=piece_mib)
    (target / INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
    return index


def _split_file(path: Path, target: Path, *, prefix: str, piece_mib: int) -> Entry:
    """Write one file's pieces, and return its entry of the index."""
    whole = hashlib.sha256()
    names: list[str] = []
    with path.open("rb") as stream:
        while True:
            block = stream.read(piece_mib << 20)
            # An empty file is one empty piece.
            if not block and names:
                break
            name = f"{prefix}-{len(names):03d}.piece"
            (target / name).write_bytes(block)
            names.append(name)
            whole.update(block)
    return {"bytes": path.stat().st_size, "sha256": whole.hexdigest(), "pieces": names}


def join(pieces: Path, target: Path) -> int:
    """Write the files of a folder of pieces under `target`, and return how many there are.

    Raises:
        FileExistsError: the target is there already.
        FileNotFoundError: the index or a piece is missing.
        ValueError: a file's size or digest is not that of the index, or its name leaves the target.
    """
    if target.exists():
        raise FileExistsError(f"{target} is there already; name a new folder")
    index = json.loads((pieces / INDEX).read_text(encoding="utf-8"))
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for name, entry in index.items():
        place = partial / name
        if not place.resolve().is_relative_to(partial.resolve()):
            raise ValueError(f"{INDEX} names {name!r}, which is outside {target}")
        place.parent.mkdir(parents=True, exist_ok=True)
        _join_file(pieces, place, name, entry)
    partial.replace(target)
    return len(index)


def _join_file(pieces: Path, place: Path, name: str, entry: Entry) -> None:
    """Write one file from its pieces; ValueError unless it is the one that was split."""
    digest = hashlib.sha256()
    with place.open("wb") as out:
        for piece in entry["pieces"]:
            with (pieces / piece).open("rb") as stream:
                while block := stream.read(BLOCK_BYTES):
                    out.write(block)
                    digest.update(block)
    size = place.stat().st_size
    if size != entry["bytes"]:
        raise ValueError(f"{name} has {size} bytes, {entry['bytes']} were split; copy it again")
    if digest.hexdigest() != entry["sha256"]:
        raise ValueError(f"{name} is damaged: its SHA-256 is another; copy its pieces again")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=("split", "join"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--mib", type=int, default=56, help="most MiB of a piece")
    arguments = parser.parse_args()
    try:
        if arguments.verb == "split":
            index = split(arguments.source, arguments.target, piece_mib=arguments.mib)
            print(f"{len(index)} files in {arguments.target}")
        else:
            count = join(arguments.source, arguments.target)
            print(f"{count} files in {arguments.target}")
    except (OSError, ValueError) as error:
        sys.exit(f"pieces: {error}")


if __name__ == "__main__":
    main()
