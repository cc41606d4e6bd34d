"""Single rows of Parquet files, of which a large one is never in memory whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from microcoder.errors import DataError

ROWS_AT_ONCE = 64


def read_row(path: Path, row: int, names: Sequence[str]) -> dict[str, Any]:
    """Return those of a row's columns that the file has.

    Raises:
        DataError: the file is gone, damaged or shorter.
    """
    try:
        with pq.ParquetFile(path) as file:
            left = row
            for group in range(file.metadata.num_row_groups):
                num_rows = file.metadata.row_group(group).num_rows
                if left < num_rows:
                    for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=present(file, names)):
                        if left < batch.num_rows:
                            return batch.slice(left, 1).to_pylist()[0]
                        left -= batch.num_rows
                left -= num_rows
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); was the run resumed or moved?") from None
    raise DataError(f"{path} has no row {row} any more; reload the page")


def present(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    """Return those of some columns, or of their parts (`tests.list.element.detail`), that a file has."""
    held = set(file.schema_arrow.names) | {file.schema.column(place).path for place in range(len(file.schema))}
    return [name for name in names if name in held]
