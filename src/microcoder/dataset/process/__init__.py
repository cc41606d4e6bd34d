"""Process: from a raw statement to a clean English one in one layout, with what is missing said."""

from microcoder.dataset.process.cleaning import clean
from microcoder.dataset.process.completeness import find_flags, parse_bounds
from microcoder.dataset.process.instructions import strip_instruction
from microcoder.dataset.process.languages import LanguageSettings, identify
from microcoder.dataset.process.sections import Example, Sections, render, split
from microcoder.dataset.process.stage import ProcessSettings, process
from microcoder.dataset.process.testcases import normalise_tests
from microcoder.dataset.process.translation import TranslationSettings, translate

__all__ = [
    "Example",
    "LanguageSettings",
    "ProcessSettings",
    "Sections",
    "TranslationSettings",
    "clean",
    "find_flags",
    "identify",
    "normalise_tests",
    "parse_bounds",
    "process",
    "render",
    "split",
    "strip_instruction",
    "translate",
]
