"""The viewer: curves and rollouts of runs in a browser, from a local server or a folder; it only reads files."""

from microcoder.viewer.bundle import Bundle, write_bundle
from microcoder.viewer.collection import Collection, open_collection
from microcoder.viewer.server import ViewerServer

__all__ = ["Bundle", "Collection", "ViewerServer", "open_collection", "write_bundle"]
