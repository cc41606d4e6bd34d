"""Real programs and one real judge."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcoder.judge import Judge

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0) as judging:
        yield judging


@pytest.fixture(scope="session")
def kodsport(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One real problem package out of the archive."""
    folder = Path(os.environ.get("MICROCODER_DATA") or REPOSITORY.parent / "shared" / "data")
    archive = folder / "kodsport.tar.xz"
    if not archive.exists():
        pytest.skip("kodsport.tar.xz is not here; set MICROCODER_DATA to its folder")
    target = tmp_path_factory.mktemp("kodsport")
    wanted = "kodsport/kth-challenge-2013/"
    with tarfile.open(archive) as files:
        for member in files:
            if member.name.startswith(wanted):
                files.extract(member, target)
            elif (target / wanted).exists():
                break
    return target / wanted
