"""Process: from a raw statement to a clean English one in one layout, with what is missing said."""

from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.stage import ProcessSettings, process
from microcoder.data.clean.translation import TranslationSettings

__all__ = ["ProcessSettings", "TranslationSettings", "clean", "process"]
