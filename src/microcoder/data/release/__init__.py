"""Output of the pipeline: Parquet tables, a card with figures, exports for trainers.

`tables` writes and reads a finished corpus, `card` describes it in a README.md, `publishing` passes
it on to the Hugging Face Hub. `exports` writes its problems as rows of other programs. `problems`
reads whatever problems come from, for training and evaluation; `convert` makes a problem file of
rows of any known format.
"""

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
