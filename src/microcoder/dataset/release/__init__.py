"""What leaves the pipeline: parquet tables, a card with figures, a page to browse, exports for trainers."""

from microcoder.dataset.release.export import EXPORTS, export
from microcoder.dataset.release.tables import read_released, write_tables

__all__ = ["EXPORTS", "export", "read_released", "write_tables"]
