"""Difficulty: predict, calibrate, select. See docs/dataset-verify.md."""
