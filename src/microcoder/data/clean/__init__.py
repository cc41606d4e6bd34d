"""Process stage: cleans statements into one layout and flags what is missing; only English ones are kept."""

from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.stage import process

__all__ = ["clean", "process"]
