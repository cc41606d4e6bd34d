"""Verify stage: checks problems by running their programs in the sandbox.

    Candidate -> VerificationPlan -> runs -> Evidence -> Candidate with chosen tests, or Rejection

Read `execution.py` first: `verify` takes candidates through all phases. `plans.py` decides which
programs run, `runs.py` runs them, and `store.py` keeps their verdicts on disk. `limits.py` derives
time and memory limits from what accepted programs take.

Pure functions over plain records do the rest. `evidence.py` says why a problem must be rejected,
`choice.py` which tests are kept, `rates.py` how often the verifier is right, and `conclusion.py`
puts these together. See docs/dataset-verify.md.
"""
