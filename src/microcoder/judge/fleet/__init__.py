"""Where programs run: on this machine, at services, on a Ray cluster.

Read `judge.py` first: `BaseJudge` is what callers see of every judge, and `Judge` is the local one.
Behind it, `fleet.py` deals programs to judges and loses none where one of them is lost. Each other
file is one way to reach judges:

- `pipe.py`: processes of this machine, behind pipes;
- `remote.py`: what the two clients below have in common, messages included;
- `http.py`: `JudgeClient`, for services (`microcoder.judge.serve`);
- `ray.py`: `RayJudge`, for the nodes of a Ray cluster.
"""
