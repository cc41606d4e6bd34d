"""The viewer: curves and rollouts of runs in a browser, from a local server or a folder; it only reads files."""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.view.serve import (
        Bundle,
        Collection,
        ViewerServer,
        open_collection,
        write_bundle,
        write_report,
    )

__all__ = [
    "Bundle",
    "Collection",
    "ViewerServer",
    "open_collection",
    "write_bundle",
    "write_report",
]

__getattr__, __dir__ = lazy_names(__name__, {
    "serve": ("Bundle", "Collection", "ViewerServer", "open_collection", "write_bundle", "write_report"),
})  # fmt: skip
