"""Tests for problems that have too few, answered by programs known to be right and chosen by what they catch."""

from microcoder.dataset.generation.settings import GenerateSettings
from microcoder.dataset.generation.stage import Judges, generate
from microcoder.dataset.process.samples import count_hidden, find_shown

__all__ = ["GenerateSettings", "Judges", "count_hidden", "find_shown", "generate"]
