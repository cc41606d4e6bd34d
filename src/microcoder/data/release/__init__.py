"""Output of the pipeline: Parquet tables, a card with figures, a page to browse, exports for trainers."""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.data.release.exports import EXPORTS, export
    from microcoder.data.release.tables import read_released, write_tables

__all__ = ["EXPORTS", "export", "read_released", "write_tables"]

__getattr__, __dir__ = lazy_names(__name__, {
    "exports": ("EXPORTS", "export"),
    "tables": ("read_released", "write_tables"),
})  # fmt: skip
