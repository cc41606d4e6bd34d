"""A step of real answers: what models answered to LiveCodeBench,
and what contestants sent to Kodsport, half and half.

Both are drawn by answer, so that time-outs, threads, numpy and what does not compile keep their
shares. LiveCodeBench's answers run on the tests that its statements and submissions show
(`livecodebench.py`), contestants' on their package's.
"""

import json
import random
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaluator_step import MOST_REFERENCE_SECONDS, find_reference, read_candidates
from evaluator_workloads import Task, Workload, can_be_told_to_peers
from livecodebench import open_submissions

from microcoder.judge import Judge
from microcoder.judge.core.types import Program

ARCHIVES = ("lcb_eval", "kodsport")
_OUT_OF_TIME = -3


def build_real(data: Path, *, num_answers: int, seed: int, limit_seconds: float) -> Workload:
    """Return the step; the same one for the same data and seed. `data` holds the archives."""
    dice = random.Random(seed)
    tasks = []
    for answers in (
        read_models(data, limit_seconds),
        _read_contestants(data, limit_seconds, dice),
    ):
        told = []
        for task in answers:
            if can_be_told_to_peers(task.problem):
                told.append(task)
        tasks += dice.sample(told, min(num_answers // 2, len(told)))
    dice.shuffle(tasks)
    return Workload("real", tuple(tasks), limit_seconds)


def read_models(data: Path, limit_seconds: float) -> Iterator[Task]:
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data / "lcb_eval.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        with open_submissions(Path(folder, "lcb_eval")) as (models, questions):
            for question in questions:
                problem = question.load().model_copy(update={"time_limit_seconds": limit_seconds})
                for row in (answers[question.id] for answers in models.values()):
                    for code, note, is_right in zip(
                        row["code_list"],
                        row["metadata"],
                        row["graded_list"],
                        strict=True,
                    ):
                        is_slow = json.loads(note).get("error_code") == _OUT_OF_TIME
                        yield Task(
                            code,
                            problem,
                            "right" if is_right else "endless" if is_slow else "wrong",
                        )


def _read_contestants(data: Path, limit_seconds: float, dice: random.Random) -> Iterator[Task]:
    """Yield Python submissions to problems that a right one solves quickly:
    else the programs are measured.
    """
    candidates = list(read_candidates(data, "kodsport", "kattis", dice))
    found = []
    for one in candidates:
        if code := find_reference(one):
            found.append((one, code))
    quick = []
    for one, _ in found:
        quick.append(one.to_trial("python", seconds=MOST_REFERENCE_SECONDS, memory_mib=2048))
    with Judge(stop="first_failure") as judge:
        verdicts = judge.judge([Program(code) for _, code in found], quick)
    for (candidate, _), problem, verdict in zip(found, quick, verdicts, strict=True):
        if (
            verdict.is_accepted
            and sum(test.cpu_seconds for test in verdict.tests) <= MOST_REFERENCE_SECONDS
        ):
            asked = problem.model_copy(update={"time_limit_seconds": limit_seconds})
            for sent in candidate.solutions:
                if sent.language == "python":
                    kind = {"accepted": "right", "time_limit": "endless"}.get(sent.known, "wrong")
                    yield Task(sent.code, asked, kind)  # type: ignore[arg-type]
