"""Dataset pipeline: collect, process, filter, verify. So far: reading problem files."""
