"""Submissions to contests, with the verdicts of their juries: a folder of Kattis packages, or an archive of one."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from microcoder.dataset.collect import collect_row
from microcoder.dataset.sources import list_shards, open_source, read_shard
from microcoder.errors import DataError
from microcoder.formats.candidates import Candidate, Rejection
from microcoder.yardstick.cases import Case, make_id

_LIMIT_SECONDS = 10.0
"""Generous: what is asked is whether an output is right, and juries' limits are those of their machines."""
_MOST_TESTS, _MOST_CHARACTERS = 20, 200_000
_USELESS = ("interactive", "needs_files", "needs_checker", "gives_points")


def read_contests(path: Path) -> list[Case]:
    """Return the Python submissions below a folder, or in a tar archive, whose verdict is right or wrong answer.

    Raises:
        DataError: there is none.
    """
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file() or not tarfile.is_tarfile(path):
        raise DataError(
            f"--contests {path} is neither a folder nor a tar archive; pass one with Kattis problem packages"
        )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        return _read_folder(Path(folder))


def _read_folder(folder: Path) -> list[Case]:
    source = open_source(folder, "kattis", name="contests")
    packages = (collect_row(source, row) for shard in list_shards(source, 1) for row in read_shard(source, shard))
    cases = [case for package in packages for case in _read_package(package)]
    if not cases:
        raise DataError(f"--contests {folder}: no Python submission with a known verdict; pass Kattis problem packages")
    return cases


def _read_package(package: Candidate | Rejection) -> Iterator[Case]:
    if isinstance(package, Rejection) or not package.tests or set(_USELESS) & set(package.flags):
        return
    # A jury's own program or tolerance decides nothing for judges that cannot be given one.
    if (
        package.checker.type not in ("default", "tokens")
        or sum(len(t.input) + len(t.output) for t in package.tests) > _MOST_CHARACTERS
    ):
        return
    tests = tuple((test.input, test.output) for test in package.tests[:_MOST_TESTS])
    for solution in package.solutions:
        is_right = solution.known == "accepted"
        # A wrong submission may fail in a test that was left out here.
        is_wrong = solution.known == "wrong_answer" and len(package.tests) <= _MOST_TESTS
        if solution.language != "python" or not (is_right or is_wrong):
            continue
        yield Case(
            id=make_id("contests", package.id, solution.code),
            suite="contests",
            title=f"{package.id}: {solution.known}",
            flaw="V6" if is_right else "V5",
            expect=is_right,
            why=f"The contest's jury says {solution.known}.",
            code=solution.code,
            tests=tests,
            time_limit_seconds=_LIMIT_SECONDS,
            problem={"checker": package.checker.model_dump(mode="json", exclude_defaults=True)},
        )
