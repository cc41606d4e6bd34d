"""The evaluator: judge untrusted programs against tests in a sandbox. Needs no torch."""
