"""One real judge for all tests of the data room that need no other."""

from collections.abc import Iterator

import pytest

from microcoder.judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0) as judging:
        yield judging
