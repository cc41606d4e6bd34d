"""What the steps of a build that run programs are told, each beside its own settings."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from microcoder.config import Config
from microcoder.evaluator import Judge
from microcoder.evaluator.packages import STANDARD


class JudgingStep(Config):
    """What runs programs."""

    packages: str = Field(default=STANDARD, exclude=True)
    environment: str
    """What programs run on, by the content of the packages' file."""
    workers: int | None = Field(default=None, exclude=True)
    unsafe: bool = Field(default=False, exclude=True)

    def open_judge(self, **rules: Any) -> Judge:
        """Start a judge with further arguments of `Judge`."""
        return Judge(workers=self.workers, packages=self.packages, unsafe=self.unsafe, **rules)
