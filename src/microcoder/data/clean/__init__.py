"""Process: from a raw statement to a clean one in one layout, with what is missing said; English is kept."""

from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.stage import process

__all__ = ["clean", "process"]
