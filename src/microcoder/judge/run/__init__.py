"""Judging one program: the policy, the executors that run it, limits and timing, the reference.

Read `policy.py` first: it takes a program through its tests, and knows nothing of processes. From
there:

- `executor.py`: the seam, what a program is run on and what is seen of it; `order.py`: in which
  order tests share a process;
- `checks.py`, `verdicts.py`, `checkers.py`, `explanations.py`: a problem in the form in which it is
  judged, and what a test's run says about its program;
- `local.py`: the executor of a worker, with `sandboxes.py`, `sharing.py`, `supervisor.py`,
  `watchdog.py` and `isolation.py`: the trusted side of the sandboxes;
- `reference.py`: the plainest executor, against which all this is tested;
- `builds.py`, `executions.py`: compiling a program, and running one without judging it;
- `timing.py`, `slots.py`, `judging.py`, `workers.py`: what is too slow, which programs run when,
  and their threads.
"""
