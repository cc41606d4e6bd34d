"""Verify stage: checks problems by running their programs in the sandbox. See docs/dataset-verify.md."""
