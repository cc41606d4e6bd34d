"""Readers of public formats: from a raw row to a candidate, without executing anything of it.

The corpus, the benchmarks and `read_problem` read through them: a format is read in one way.
Start with `rows`, where `FORMATS` has all of them by name, and with `format`, which says what a
format is. `sets`, `contests`, `livecodebench`, `functions`, `trainers`, `kattis` and `polygon`
describe the formats. They read the fields of a `row` as plain `values`, and its tests in any known
encoding (`tests`), among them assertions (`assertions`, `test_programs`, `evalplus`). The result is
a `Candidate` (`candidates`).

Nothing is imported here, so that candidates can be used without the readers.
"""
