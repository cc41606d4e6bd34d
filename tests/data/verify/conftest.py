"""Real programs and one real judge."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from published import find_archive

from microcoder.judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0) as judging:
        yield judging


@pytest.fixture(scope="session")
def kodsport(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One real problem package out of the archive."""
    target = tmp_path_factory.mktemp("kodsport")
    wanted = "kodsport/kth-challenge-2013/"
    with tarfile.open(find_archive("kodsport")) as files:
        for member in files:
            if member.name.startswith(wanted):
                files.extract(member, target)
            elif (target / wanted).exists():
                break
    return target / wanted
