"""The rollouts of a run as a data frame, for questions that no page answers."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.train.runs import RunDirectory

if TYPE_CHECKING:
    import pandas

SPLITS = ("train", "heldout")


def rollouts_df(
    run: Path | str, *, split: str | None = None, columns: Collection[str] | None = None
) -> pandas.DataFrame:
    """Return a run's rollouts, one a row, in the order of steps: what `rollouts/` and `evaluations/` hold, and `split`.

    Args:
        run: a folder that `microcoder train` wrote, finished or not.
        split: `train` or `heldout`; None: both.
        columns: of the files, to read no others: texts and tests are most of their size. None: all.

    Raises:
        DataError: the folder is no run, has no rollouts, or a file is damaged.
        ConfigError: pandas or pyarrow is not installed, or there is no such split or column.
    """
    try:
        import pandas  # noqa: F401 - what Arrow turns a table into
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigError(f"rollouts_df needs {error.name}; type: pip install {error.name}") from None
    if split not in (None, *SPLITS):
        raise ConfigError(f"split={split!r} is not allowed; use one of {', '.join(SPLITS)}, or None for both")
    directory = RunDirectory(Path(run))
    directory.read_manifest()
    files = [
        *(("train", directory.rollout_file(step)) for step in directory.rollout_steps()),
        *(("heldout", directory.evaluation_file(step)) for step in directory.evaluation_steps()),
    ]
    tables = []
    for name, path in files:
        if split not in (None, name):
            continue
        try:
            known = pq.read_schema(path).names
            if unknown := sorted(set(columns or ()) - set(known)):
                raise ConfigError(f"{path} has no column {', '.join(unknown)}; it has {', '.join(known)}")
            table = pq.read_table(path, columns=list(columns) if columns is not None else None)
        except (OSError, ValueError) as error:
            if isinstance(error, ConfigError):
                raise
            raise DataError(f"{path} is no readable Parquet ({error}); remove it or copy it anew") from None
        tables.append(table.add_column(0, "split", pa.array([name] * table.num_rows)))
    if not tables:
        raise DataError(f"{directory.root} has no rollouts{f' of split {split}' if split else ''} yet")
    frame = pa.concat_tables(tables, promote_options="default").to_pandas()
    return frame.sort_values("step", kind="stable", ignore_index=True) if "step" in frame else frame
