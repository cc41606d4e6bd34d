"""Tests for problems that have too few, answered by programs known to be right and chosen by what they catch."""

from microcoder.data.clean.stage import count_hidden, find_shown
from microcoder.data.tests.answers import GenerateSettings, Judges
from microcoder.data.tests.stage import generate

__all__ = ["GenerateSettings", "Judges", "count_hidden", "find_shown", "generate"]
