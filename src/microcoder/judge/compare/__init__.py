"""Compare outputs and returned values with the expected ones: pure functions, nothing is run.

`compare.compare_output` compares what a program printed, `compare.compare_value` what a function
returned; both give a `Comparison`. Read `compare.py` first, whose tables say what may differ.

- `text`: texts as streams of tokens and lines, and when two numbers agree;
- `literals`: whether two texts write the same list, tuple, set, dict or string;
- `values`: returned values, decoded and compared.
"""
