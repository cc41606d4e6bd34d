"""A run's model on the Hugging Face Hub: the repository before the first step, checkpoints as they appear, the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from microcoder.errors import ConfigError, TrainingError
from microcoder.runs import RunDirectory
from microcoder.training.checkpoints import list_model_files
from microcoder.training.config import HubConfig
from microcoder.training.model_card import render_card
from microcoder.training.observer import Observer

_FAILURES = (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError)


def open_repository(config: HubConfig) -> None:
    """Create the repository if missing: a wrong name or login shows before the first step, not after the last.

    Raises:
        ConfigError: the Hub cannot be reached, or refuses.
    """
    if config.repo_id is None:
        return
    try:
        hub = HfApi()
        hub.create_repo(config.repo_id, private=config.private, exist_ok=True)
        # Of a repository that exists, creating it says nothing of who may write.
        hub.auth_check(config.repo_id, write=True)
    except _FAILURES as error:
        raise ConfigError(
            f"hub.repo_id {config.repo_id} cannot be pushed to ({_reason(error)}); type `hf auth login`, check the "
            "name and the network, or leave hub.repo_id out"
        ) from None


def push_model(config: HubConfig, run: RunDirectory) -> str | None:
    """Push the final model with its card; return where it is.

    Raises:
        TrainingError: the Hub cannot be reached, or refuses; the same command tries again.
    """
    if config.repo_id is None:
        return None
    try:
        return _commit(config.repo_id, run.model, card=render_card(run), message="Model of the last step")
    except _FAILURES as error:
        raise TrainingError(
            f"the run is done, its model is in {run.model}, but it cannot be pushed to {config.repo_id} "
            f"({_reason(error)}); type the same command to retry, also with another --hub.repo_id or without"
        ) from None


class CheckpointPusher(Observer):
    """Pushes each new checkpoint, between two phases; `tell` hears what could not be pushed."""

    def __init__(self, config: HubConfig, run: RunDirectory, *, tell: Callable[[str], None]) -> None:
        self._config, self._run, self._tell = config, run, tell
        self._pushed = run.latest_checkpoint_step() or 0

    def phase(self, name: str) -> None:
        """Push the latest checkpoint, unless it was pushed before."""
        step = self._run.latest_checkpoint_step() or 0
        if step > self._pushed:
            self._pushed = step
            self._push(step)

    def _push(self, step: int) -> None:
        assert self._config.repo_id is not None
        folder = self._run.checkpoint(step)
        try:
            HfApi().create_branch(self._config.repo_id, branch=folder.name, exist_ok=True)
            _commit(
                self._config.repo_id,
                folder,
                card=render_card(self._run, step=step),
                message=f"Checkpoint of step {step}",
                branch=folder.name,
            )
        except _FAILURES as error:
            self._tell(f"checkpoint of step {step} was not pushed ({_reason(error)}); training continues")


def _commit(repo_id: str, folder: Path, *, card: str, message: str, branch: str | None = None) -> str:
    files = [CommitOperationAdd(file.name, str(file)) for file in list_model_files(folder)]
    operations = [CommitOperationAdd("README.md", card.encode()), *files]
    done = HfApi().create_commit(repo_id, operations, commit_message=message, revision=branch)
    return str(done.commit_url)


def _reason(error: Exception) -> str:
    return " ".join(str(error).strip().split("\n")[0].split())[:200] or type(error).__name__
