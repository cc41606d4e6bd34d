"""Compare outputs and returned values with the expected ones: pure functions; start with `compare.compare_output`."""
