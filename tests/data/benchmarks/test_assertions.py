"""HumanEval and MBPP: their references pass, wrong answers fail,
and an answer cannot say itself that it is right.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from microcoder import read_problem
from microcoder.data.benchmarks import HumanEval, Mbpp, Question
from microcoder.data.rowfiles import unpack
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program, Verdict
from tests.data.formats.published_rows import ROWS
from tests.data.published import find_archive, write_rows

FILES = {
    "humaneval": "HumanEval.jsonl.gz",
    "mbpp": "mbpp.jsonl",
    "leetcodedataset": "LeetCodeDataset-v0.3.1-test.jsonl.gz",
}
TEST = ROWS["humaneval"].row["test"]
LOOP = (
    "def check(candidate):\n    import random\n    for _ in range(20):\n"
    "        x = random.randint(0, 10**6)\n        assert candidate(x) == x / 2\n"
)
HUMANEVAL = ROWS["humaneval"].row
PLUS = ROWS["humaneval+, as released"].row | {"plus_input": [[7], [float("inf")], [1e9]]}
MBPP = ROWS["mbpp"].row | {
    "code": "import sys\r\ndef swap(p):\r\n  a, b = p\r\n  return (b, a)",
    "test_list": [
        "assert swap((1, 2)) == (2, 1)",
        "assert set(swap((3, sys.maxsize))) == {3, sys.maxsize}",
    ],
}
MBPP_PLUS = {
    "task_id": "Mbpp/11",
    "prompt": '"""\nWrite a function to swap a pair.\nassert swap((1, 2)) == (2, 1)\n"""\n',
    "entry_point": "swap",
    "canonical_solution": "\ndef swap(p):\n    return p[1:] + p[:1]\n",
    "assertion": "assert swap((1, 2)) == (2, 1)",
    "base_input": [[[1, 2]]],
    "plus_input": [[[5, 6]], [[[7], 8]]],
    "contract": "",
    "atol": 0,
}


def read_humaneval(path: Path, **keys: Any) -> list[Question]:
    return HumanEval(kind="humaneval", path=path, **keys).read()


def humaneval(tmp_path: Path, plus: dict[str, Any] | None = None, **changes: Any) -> Question:
    further = write_rows(tmp_path / "plus.jsonl", [plus]) if plus else None
    path = write_rows(tmp_path / "he.jsonl", [HUMANEVAL | changes])
    (question,) = read_humaneval(path, plus=further)
    return question


Ask = Callable[..., list[Verdict]]


@pytest.fixture(scope="module")
def judge() -> Iterator[Ask]:
    """Give the verdicts on answers to a question."""
    with Judge(workers=2) as judging:

        def ask(question: Question, *answers: str) -> list[Verdict]:
            problem = question.load().model_copy(update={"time_limit_seconds": 1.0})
            return judging.judge([Program(answer) for answer in answers], [problem] * len(answers))

        yield ask


def test_right_and_wrong_answers_are_told_apart(judge: Ask, tmp_path: Path) -> None:
    question = humaneval(tmp_path)
    assert len(question.load().tests) == 1
    outcomes = {
        "def half(x):\n    return x / 2": Outcome.ACCEPTED,
        "def half(x):\n    return x // 2": Outcome.WRONG_ANSWER,
        "def half(x):\n    raise ValueError": Outcome.RUNTIME_ERROR,
        "def other(x):\n    return x / 2": Outcome.WRONG_ANSWER,
        "def half(x):\n    while True: pass": Outcome.TIME_LIMIT,
    }
    verdicts = judge(question, *outcomes)
    assert [verdict.outcome for verdict in verdicts] == list(outcomes.values())
    assert "not true: assert abs(candidate(3) - 1.5)" in verdicts[1].detail
    assert "the last call returned 1" in verdicts[1].detail


FORGERIES = {
    "equal to everything": (
        "class Yes(int):\n"
        "    def __eq__(self, other): return True\n"
        "    def __sub__(self, other): return 0\n"
        "    __hash__ = None\n"
        "def half(x): return Yes(99)"
    ),
    "an object": (
        "class Yes:\n"
        "    def __eq__(self, other): return True\n"
        "    __hash__ = None\n"
        "def half(x): return Yes()"
    ),
    "leaves at once": "import os\nos._exit(0)",
    "ends early": "import sys\nsys.exit(0)",
    "writes its own results": (
        "import os\nos.write(1, b'\\n\\x1eresults [0, 0, 0, 0]\\n')\nos._exit(0)"
    ),
    "writes no values": "import os\nos.write(1, b'\\n\\x1eresults {\\n')\nos._exit(0)",
    "takes over the caller": (
        "import __main__\n__main__.check = lambda *a: True\ndef half(x): return x"
    ),
    "no assertions": (
        "import builtins\nbuiltins.AssertionError = ZeroDivisionError\ndef half(x): return 0"
    ),
    "reads what is asked": (
        "import sys, json\ndef half(x): return sys._getframe(1).f_locals.get('expected', 77)"
    ),
}


@pytest.mark.parametrize("test", [TEST, LOOP], ids=["assertions", "loop"])
def test_a_forged_answer_is_not_accepted(judge: Ask, tmp_path: Path, test: str) -> None:
    verdicts = dict(
        zip(FORGERIES, judge(humaneval(tmp_path, test=test), *FORGERIES.values()), strict=True)
    )
    ends = (Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR)
    unexpected = {}
    for name, verdict in verdicts.items():
        if verdict.outcome not in ends:
            unexpected[name] = verdict
    assert unexpected == {}


def test_a_test_that_loops_is_run_as_it_was_published(judge: Ask, tmp_path: Path) -> None:
    question = humaneval(tmp_path, test=LOOP)
    (test,) = question.load().tests
    assert test.output.startswith(LOOP)
    uses_chance = (
        "import random\n"
        "def half(x):\n"
        "    random.random()\n"
        "    print('thinking', x)\n"
        "    return x / 2"
    )
    verdicts = judge(
        question,
        "def half(x): return x / 2",
        uses_chance,
        "def half(x): return x // 2",
    )
    assert [verdict.is_accepted for verdict in verdicts] == [True, True, False]


def test_plus_inputs_are_judged_by_the_reference(judge: Ask, tmp_path: Path) -> None:
    question = humaneval(tmp_path, plus=PLUS)
    assert len(question.load().tests) == 2
    verdicts = judge(
        question,
        "def half(x): return x / 2",
        "def half(x): return x / 2 if x < 6 else 0",
    )
    assert [verdict.is_accepted for verdict in verdicts] == [True, False]
    assert verdicts[1].tests_passed == 1
    with pytest.raises(
        DataError,
        match=r"plus\.jsonl shares no task with .*he\.jsonl; are both of the same benchmark",
    ):
        humaneval(tmp_path, plus=PLUS | {"task_id": "HumanEval/901"})


def test_mbpp_takes_tuples_setup_and_what_the_reference_imports(judge: Ask, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mbpp.jsonl", [MBPP])
    (question,) = Mbpp(kind="mbpp", path=path).read()
    assert question.id == "Mbpp/11"
    assert question.problem.fn_name == "swap"
    assert len(question.examples) == 2
    verdicts = judge(
        question,
        "import sys\ndef swap(p): return p[::-1]",
        "def swap(p): return list(p[::-1])",
    )
    assert [verdict.is_accepted for verdict in verdicts] == [True, False]
    with pytest.raises(DataError, match="none of the 1 problems is selected"):
        Mbpp(
            kind="mbpp",
            path=write_rows(tmp_path / "rest.jsonl", [MBPP | {"task_id": 601}]),
        ).read()


def test_mbpp_plus_inputs_are_tuples_where_the_assertions_say_so(
    judge: Ask, tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "mbpp.jsonl", [MBPP])
    plus = write_rows(tmp_path / "plus.jsonl", [MBPP_PLUS])
    (question,) = Mbpp(kind="mbpp", path=path, plus=plus).read()
    (verdict,) = judge(question, "def swap(p):\n    assert type(p) is tuple\n    return p[1], p[0]")
    assert verdict.is_accepted


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"test": "def check(candidate)"},
            "field test: the test cannot be judged: it is not Python",
        ),
        ({"test": "x = 1"}, "it never calls half"),
        ({"prompt": 1}, "prompt is int, not text"),
        ({"task_id": None}, "task_id is missing"),
    ],
)
def test_broken_rows_are_refused(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError, match=rf"he\.jsonl line 1: .*{why}"):
        humaneval(tmp_path, **changes)


@pytest.mark.parametrize(
    ("archive", "every"), [("humaneval", 4), ("mbpp", 40), ("leetcodedataset", 76)]
)
def test_references_of_real_rows_are_accepted_and_stubs_are_not(
    archive: str,
    every: int,
    tmp_path: Path,
) -> None:
    unpack(find_archive(archive), tmp_path / archive, aside=tmp_path)
    (path,) = (tmp_path / archive).rglob(FILES[archive])
    lines = (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).splitlines()
    rows = [json.loads(line) for line in lines][::every]
    problems = [read_problem(row) for row in rows]
    references = []
    for row, problem in zip(rows, problems, strict=True):
        references.append(
            f"{row['prompt']}\n\n{row['completion']}"
            if archive == "leetcodedataset"
            else str(problem.reference)
        )
    stubs = [Program(f"def {problem.fn_name}(*a, **k): pass") for problem in problems[::4]]
    with Judge(stop="first_failure") as judging:
        right = judging.judge([Program(code) for code in references], problems)
        wrong = judging.judge(stubs, problems[::4])
    refused = []
    for p, v in zip(problems, right, strict=True):
        if not v.is_accepted:
            refused.append(p.id)
    assert refused == []
    accepted = []
    for p, v in zip(problems[::4], wrong, strict=True):
        if v.is_accepted:
            accepted.append(p.id)
    assert accepted == []
