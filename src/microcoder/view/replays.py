"""What `microcoder replay RUN --save` left in a run's folder, for the page Replay."""

from dataclasses import asdict

from microcoder.replay.saving import read_replay, tell_changes
from microcoder.train.runs import RunDirectory
from microcoder.view.files import Row, stamp_of


class SavedAnswer:
    """The replay that is kept in a run's folder, if one is."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    @property
    def is_there(self) -> bool:
        """Whether the folder has one."""
        return self._run.replay.is_file()

    def read(self) -> Row:
        """Return what the page shows; `warning` says if the run has other rollouts by now.

        Raises:
            DataError: there is none, or it is damaged.
        """
        saved = read_replay(self._run)
        return {**asdict(saved), "warning": tell_changes(self._run, saved)}

    def stamp(self) -> str:
        """Return a text that changes when the file does."""
        return str(stamp_of(self._run.replay)[0])
