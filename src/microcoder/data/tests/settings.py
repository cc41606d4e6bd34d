"""What the generate stage is told. All values are our choice."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from microcoder.data.completions import EndpointSettings
from microcoder.judge.core.config import Config
from microcoder.judge.core.types import MOST_SECONDS


class GenerateSettings(Config):
    """How tests are made for problems that have too few."""

    mode: Literal["where_few", "off"] = "where_few"
    """`where_few`: for problems with fewer hidden tests than `min_hidden_tests`; `off`: the stage changes nothing."""
    min_hidden_tests: int = Field(default=10, ge=1)
    """Tests that the prompt does not show, from which a problem needs no more."""
    max_tests: int = Field(default=15, ge=1)
    """Tests that a problem has afterwards, the given ones included, unless it had more."""
    max_inputs: int = Field(default=72, ge=1)
    """Inputs that are made and answered, of which the best are kept."""
    max_package_inputs: int = Field(default=60, ge=0)
    """Inputs that the package's own generators are run for, spread over its groups."""
    max_test_bytes: int = Field(default=1 << 18, ge=256)
    """Longest input that is drawn here; a package's own may be up to `max_package_bytes`."""
    max_large_bytes: int = Field(default=1 << 21, ge=256)
    """The same for large inputs where slow or partial submissions are known: so long that a compiled one is caught."""
    max_package_bytes: int = Field(default=6 << 20, ge=256)
    """Longest input of a package's generator."""
    max_large: int = Field(default=3, ge=0)
    """Of the tests that are kept, the large ones, which are there for the slow and not for what they kill."""
    max_references: int = Field(default=3, ge=1)
    """Accepted programs that must agree on an answer, where there are so many."""
    max_mutants: int = Field(default=36, ge=0)
    """Mutants of a reference; half of them choose the tests, the other half measure the choice."""
    max_known_wrong: int = Field(default=12, ge=0)
    """Known-wrong, slow and partial submissions that choose tests too."""
    answer_seconds: float = Field(default=2.0, gt=0, le=MOST_SECONDS)
    """CPU seconds that a reference gets for an input; an input that takes longer is dropped."""
    large_answer_seconds: float = Field(default=6.0, gt=0, le=MOST_SECONDS)
    """The same, in a second round, for `max_large` of the inputs that took longer where slow or partial submissions are
    known: with `verify.headroom` it fits the longest limit that a problem may have."""
    mutant_seconds: float = Field(default=1.0, gt=0, le=MOST_SECONDS)
    """CPU seconds that a mutant gets for a test, or twice those of the slowest reference, rounded up."""
    generator_seconds: float = Field(default=20.0, gt=0, le=MOST_SECONDS)
    """CPU seconds of a generator or validator."""
    seed: int = 0
    """Of all random choices; the same seed makes the same tests."""
    endpoint: EndpointSettings | None = None
    """A model that writes generators and a validator for problems that still have too few tests; None: no model."""
    max_generators: int = Field(default=4, ge=1)
    """Generators that a model is asked for, each run `runs_per_generator` times."""
    runs_per_generator: int = Field(default=6, ge=1)
