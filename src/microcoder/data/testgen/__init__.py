"""Tests for problems that have too few, answered by programs known to be right and chosen by what they catch."""
