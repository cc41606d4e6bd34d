"""The viewer: curves and rollouts of runs in a browser, from a local server or a folder.

It only reads files. `open_collection` opens runs of any kind; a `ViewerServer` shows them, and
`write_bundle` and `write_report` write them into a folder with the page (`bundle`, `answers`,
`serve`). A kind of run is a source (`sources`, `training_source`) with an index of its rollouts
(`index`). Tests are read from problem files (`files`), if these hold what was asked
(`statements`).

Read `index` first, then `sources`.
"""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.view.bundle import Bundle, write_bundle, write_report
    from microcoder.view.collection import Collection, find_newest_run, open_collection
    from microcoder.view.serve import ViewerServer

__all__ = [
    "Bundle",
    "Collection",
    "ViewerServer",
    "find_newest_run",
    "open_collection",
    "write_bundle",
    "write_report",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bundle": ("Bundle", "write_bundle", "write_report"),
        "collection": ("Collection", "find_newest_run", "open_collection"),
        "serve": ("ViewerServer",),
    },
)
