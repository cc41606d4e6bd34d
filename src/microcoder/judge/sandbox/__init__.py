"""The untrusted side of the evaluator: what runs inside the sandbox.

Nothing here ever sees an expected output. The files are loaded by `zygote.py` in an interpreter of its own,
without the rest of the package; the trusted side imports `protocol`, and names of some others.
"""
