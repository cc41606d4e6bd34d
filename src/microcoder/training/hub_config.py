"""The Hub's part of a recipe: where the trained model is pushed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from microcoder.config import Config


class HubConfig(Config):
    """Push the model with its card to a Hugging Face Hub repository; see `hf auth login`."""

    repo_id: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$")
    """`owner/name`, created if missing. None: push nothing."""
    private: bool = True
    """Whether a created repository is private."""
    push: Literal["end", "checkpoints"] = "end"
    """`end`: the final model, to main; `checkpoints`: also each checkpoint when it was written, to a branch of its own
    name (step_000010); training waits for the upload."""

    @model_validator(mode="after")
    def _has_a_place(self) -> HubConfig:
        if self.push == "checkpoints" and self.repo_id is None:
            raise ValueError('push = "checkpoints" needs a repository; give hub.repo_id = "owner/name"')
        return self
