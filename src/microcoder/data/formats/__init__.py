"""Readers of public formats: from a raw row to a candidate, without executing anything of it.

The corpus, the benchmarks and `read_problem` read through them: a format is read in one way. `rows.FORMATS` has all
of them; nothing is imported here, so that candidates can be used without them.
"""
