"""Difficulty: predict, calibrate, select. See docs/difficulty.md."""
