"""Filter stage: drops rows that are no problem, may not be used, or copy something known.

    Candidate -> filter_row -> Candidate or Rejection        whole set -> find_duplicates -> merge

Read `rules.py` first: `filter_row` takes one row through all rules. `licences.py` brings licences
to one name. `contamination.py` compares a row with the problems of benchmarks: `build_index` once,
`find_hits` for each row.

`duplicates.py` finds records of one problem in the whole set, `signatures.py` is its MinHash, and
`merging.py` makes one record of several. `texts.py` cuts texts into words and hashes their runs,
and `keys.py` gives the names by which a problem is known.
"""
