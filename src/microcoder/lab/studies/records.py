"""The records of a study's runs in one small file: all that its pages are made from, without programs and weights."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import new_file
from microcoder.lab.studies.work import CATALOGUE, Work, distinct_work, group_labels
from microcoder.train.runs import RunDirectory

SUFFIX = ".tar.xz"


def pack_records(works: Sequence[Work], path: Path) -> None:
    """Write what the finished runs and measurements recorded, and which is which; equal records give equal bytes.

    Of a run these are manifest, summary, metrics and evaluations, and each held-out problem's tier.
    """
    done = [work for work in works if work.is_finished]
    code = done[0].folder.parent.name
    labels = group_labels({work.label: work.folder.name for work in done})
    with new_file(path) as partial, tarfile.open(partial, "w:xz") as archive:
        _add(archive, f"{code}/{CATALOGUE}", json.dumps(labels, indent=2).encode())
        for work in distinct_work(done):
            for name, content in _read_records(work):
                _add(archive, f"{code}/{work.folder.name}/{name}", content)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Give the folder of runs that `pack_records` wrote, named after their code, until the context ends.

    Raises:
        DataError: the file is not such an archive.
    """
    with TemporaryDirectory() as folder:
        try:
            # All of it is read: an archive without its last bytes would give its files all the same.
            with tarfile.open(fileobj=io.BytesIO(lzma.decompress(path.read_bytes()))) as archive:
                archive.extractall(folder, filter="data")
            (runs,) = (found.parent for found in Path(folder).glob(f"*/{CATALOGUE}"))
        except (OSError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
            raise DataError(f"{path} holds no records of a study ({error}); pass a file that a report wrote") from None
        yield runs


def _read_records(work: Work) -> Iterator[tuple[str, bytes]]:
    run = RunDirectory(work.folder)
    names = ["summary.json", "rows.jsonl"]
    if work.measurement is None:
        names = [path.name for path in (run.manifest, run.summary, run.metrics, run.evaluations)]
    for name in names:
        yield name, (work.folder / name).read_bytes()
    for step in run.evaluation_steps()[:1] if work.measurement is None else ():
        import pyarrow.parquet as pq

        path, light = run.evaluation_file(step), io.BytesIO()
        pq.write_table(pq.read_table(path, columns=["problem_id", "tier"]), light)
        yield path.relative_to(work.folder).as_posix(), light.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
