"""Generate stage: makes tests for problems that have few, with answers of accepted programs.

    Candidate -> inputs -> certified -> answered by references -> tried on wrong programs -> chosen

Read `stage.py` first: `generate` takes a candidate through all of it. `kits.py` runs generators, a
package's own or a model's; `mutation.py` changes known inputs; `validators.py` says which inputs
are valid. `answers.py` finds outputs on which references agree, and `choice.py` the tests to keep.

`made.py` has what these hand over, and how programs are run; `settings.py` the options and budgets.
"""
