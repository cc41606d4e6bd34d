"""Adapters of public formats: from a raw row to a candidate. Each is a small file; reading executes nothing.

The corpus, the benchmarks and `Problem.from_row` read through them: a format is read in one way. `catalogue` has all of
them; nothing is imported here, so that what a candidate is can be had without.
"""
