"""The algorithm: pure functions beside their equations, the same for every engine; no torch, no files."""
