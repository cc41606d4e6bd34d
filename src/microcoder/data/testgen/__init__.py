"""Generate stage: makes tests for problems that have few, with answers of accepted programs.

    Candidate -> inputs -> certified -> answered by references -> tried on wrong programs -> chosen

Read `stage.py` first: `generate` takes a candidate through all of it. `search.py` finds inputs by
all ways there are. `kits.py` runs generators, a package's own or a model's; `mutation.py` changes
known inputs; `extremes.py` makes the largest and small random ones. `validators.py` says which are
valid. `answers.py` finds outputs on which references agree. `trials.py` runs wrong programs on the
tests, with those that `mutants.py` makes of right ones, and `choice.py` keeps some.

`made.py` has what these hand over, and how programs are run; `settings.py` the options and budgets.
"""
