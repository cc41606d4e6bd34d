"""The judges that made tests are answered by."""

from collections.abc import Callable, Iterator

import pytest

from microcoder.data.testgen import mutation
from microcoder.data.testgen.answers import Judges
from microcoder.judge import Judge

Open = Callable[[], Judges]


@pytest.fixture(scope="module")
def judges() -> Iterator[Open]:
    with (
        Judge(workers=1, stop="first_limit", cache_size=0) as thorough,
        Judge(workers=1, stop="first_failure", cache_size=0) as brief,
    ):
        yield lambda: Judges(thorough, brief)


@pytest.fixture(scope="module")
def few_mutations() -> Iterator[None]:
    """Fewer than in use: each made input is run by several programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutation, "MOST_MADE", 20)
        yield
