"""Judging one program: workers and sandboxes, limits and timing, which runs count, the reference.

Read `judging.py` first: a `Session` judges one program after the other, test by test. From there:

- `checks.py`, `verdicts.py`, `checkers.py`, `explanations.py`: a problem in the form in which it is
  judged, and what a test's run says about its program;
- `builds.py`, `executions.py`: compiling a program, and running one without judging it;
- `attempts.py`: which of its runs count;
- `screen.py` and `constant_modules.py`, with `sharing_names.py`, `scopes.py` and `main_threads.py`:
  which tests may share a process; `sharing.py`: how they do;
- `sandboxes.py`, `supervisor.py`, `isolation.py`: the trusted side of the sandboxes;
- `timing.py`, `slots.py`, `workers.py`: what is too slow, which programs run when, and their
  threads;
- `reference.py`: the same verdicts by the plainest means, against which all this is tested.
"""
