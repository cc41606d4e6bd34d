"""A judge for all tests of a file."""

from collections.abc import Iterator

import pytest

from microcoder.judge import Judge


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, stop="first_failure") as judge:
        yield judge
