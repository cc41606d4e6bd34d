"""Process: from a raw statement to a clean English one in one layout, with what is missing said."""

from microcoder.dataset.process.cleaning import clean
from microcoder.dataset.process.stage import ProcessSettings, process
from microcoder.dataset.process.translation import TranslationSettings

__all__ = ["ProcessSettings", "TranslationSettings", "clean", "process"]
