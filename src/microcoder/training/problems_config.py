"""The problems' part of a recipe: training and held-out problems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from microcoder.config import Config
from microcoder.micro import World


class MicroProblems(Config):
    """Generated problems of the micro lab."""

    kind: Literal["micro"]
    world: World = "operations"
    """`operations` on the input, or `chains` of steps whose result the program needs, so that reasoning is
    computation."""
    num_train: int = Field(default=1500, ge=1)
    num_heldout: int = Field(default=120, ge=1)
    tiers: tuple[Literal["easy", "medium", "hard"], ...] = ("easy", "medium", "hard")
    heldout_tiers: tuple[Literal["easy", "medium", "hard"], ...] | None = None
    """Tiers of the held-out problems; None: `tiers`. Set it to compare mixtures on the same problems."""
    styles: tuple[Literal["stdin", "function"], ...] = ("stdin", "function")
    seed: int = 0


class ProblemFiles(Config):
    """Problem files in our format, one problem per line, or folders of finished corpora."""

    kind: Literal["files"]
    train: Path
    heldout: Path
    """Also LiveCodeBench as published: one of its files, or their folder (all problems)."""


class HubProblems(Config):
    """A Hugging Face Hub dataset in one of the public formats."""

    kind: Literal["hub"]
    id: str = Field(min_length=1)
    """`owner/name`, or a local folder with its files."""
    revision: str | None = None
    """Commit, tag or branch; a commit makes the run reproducible."""
    subset: str = "default"
    """The dataset's config on the Hub."""
    split: str = "train"
    format: str = Field(min_length=1)
    """Row format: `trl`, `verl`, `taco`, `deepcoder`, ..., see docs/rows.md."""
    heldout_split: str | None = None
    """Held-out split of the dataset; or set `heldout`."""
    heldout: Path | None = None
    """Held-out problems: a problem file, a finished corpus or LiveCodeBench; or set `heldout_split`."""

    def _contradictions(self) -> Iterator[str]:
        if (self.heldout is None) == (self.heldout_split is None):
            yield "set exactly one of problems.heldout (a file) and problems.heldout_split (such as test)"
