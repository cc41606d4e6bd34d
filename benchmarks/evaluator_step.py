"""A step as training has it: problems with many tests, eight answers each, most of them wrong.

Half of the problems are functions of LeetCodeDataset, half are programs of Kodsport's contests.
Right answers are the sets' own references; the others are references in which a seeded generator
swapped an operator, moved a number by one, returned early, raised an exception or cut the text off.
Which of these are wrong, and end, is looked up with our own judge once, before anything is timed:
what it says of them is what the peers are compared with.
"""

import ast
import itertools
import random
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluator_workloads import Task, Workload, can_be_told_to_peers

from microcoder.data.formats.candidates import Candidate
from microcoder.data.sources import collect_row, list_shards, open_source, read_shard
from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Problem, Program

NUM_ANSWERS = 8
NUM_RIGHT = 2
MOST_TESTS = 209
LEAST_TESTS = 15
_MUTANTS_TRIED = 12
REFERENCE_LIMIT_SECONDS = 4.0
"""For a test of a reference."""
MOST_REFERENCE_SECONDS = 0.25
"""For all tests of a reference: beyond that the programs are measured, not who judges them."""
_WRONG_AND_ENDS = (Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR, Outcome.COMPILE_ERROR)
_SETS = (("leetcodedataset", "leetcodedataset"), ("kodsport", "kattis"))
ARCHIVES = tuple(name for name, _ in _SETS)
_SWAPPED: dict[type, Callable[[], ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def build_step(data: Path, *, num_problems: int, seed: int, limit_seconds: float) -> Workload:
    """Return the step; the same one for the same data and seed.

    Args:
        data: the folder that holds `leetcodedataset.tar.xz` and `kodsport.tar.xz`.
        num_problems: half of them functions.
        seed: decides which problems, and what is wrong with the answers.
        limit_seconds: for each test.
    """
    dice = random.Random(seed)
    tasks: list[Task] = []
    with Judge(stop="first_failure") as judge:
        for name, row_format in _SETS:
            found = _choose_problems(
                judge,
                _read_problems(data, name, row_format, dice),
                num_problems // 2,
            )
            tasks += _write_answers(judge, found, dice, limit_seconds)
    # As rollouts land: the answers to one problem beside those to others.
    dice.shuffle(tasks)
    return Workload("step", tuple(tasks), limit_seconds)


def read_candidates(
    data: Path,
    name: str,
    row_format: str,
    dice: random.Random,
) -> Iterator[Candidate]:
    """Yield a set's problems in a seeded order."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        source = open_source(Path(folder), row_format, name=name)
        shards = sorted(list_shards(source, 1), key=str)
        dice.shuffle(shards)
        for shard in shards:
            rows = list(read_shard(source, shard))
            dice.shuffle(rows)
            for row in rows:
                candidate = collect_row(source, row)
                if isinstance(candidate, Candidate) and candidate.tests and not candidate.flags:
                    yield candidate


def _read_problems(
    data: Path,
    name: str,
    row_format: str,
    dice: random.Random,
) -> Iterator[Problem]:
    """Yield a set's problems with many tests and a reference, in a seeded order."""
    for candidate in read_candidates(data, name, row_format, dice):
        reference = find_reference(candidate)
        if reference and LEAST_TESTS <= len(candidate.tests) <= MOST_TESTS:
            problem = candidate.to_trial("python", seconds=REFERENCE_LIMIT_SECONDS, memory_mib=2048)
            problem = problem.model_copy(update={"reference": reference})
            if can_be_told_to_peers(problem) and "Node" not in (candidate.starter_code or ""):
                yield problem


def find_reference(candidate: Candidate) -> str | None:
    return next(
        (s.code for s in candidate.solutions if s.language == "python" and s.known == "accepted"),
        None,
    )


def _choose_problems(judge: Judge, problems: Iterator[Problem], wanted: int) -> list[Problem]:
    """Return the first so many whose reference is accepted, quickly."""
    found: list[Problem] = []
    while len(found) < wanted:
        tried = list(itertools.islice(problems, wanted - len(found)))
        if not tried:
            break
        verdicts = judge.judge([Program(problem.reference or "") for problem in tried], tried)
        for problem, verdict in zip(tried, verdicts, strict=True):
            seconds = sum(test.cpu_seconds for test in verdict.tests)
            if verdict.is_accepted and seconds <= MOST_REFERENCE_SECONDS:
                found.append(problem)
    return found


def _write_answers(
    judge: Judge,
    problems: Sequence[Problem],
    dice: random.Random,
    limit_seconds: float,
) -> Iterator[Task]:
    """Yield right and wrong answers; fewer wrong ones to a problem with too few mutants that are
    wrong and end.
    """
    quick = []
    for problem in problems:
        quick.append(problem.model_copy(update={"time_limit_seconds": MOST_REFERENCE_SECONDS}))
    mutants = []
    for problem in quick:
        for source in _mutate_often(problem, dice):
            mutants.append((problem, source))
    verdicts = judge.judge(
        [Program(source) for _, source in mutants], [problem for problem, _ in mutants]
    )
    for problem in problems:
        asked = problem.model_copy(update={"time_limit_seconds": limit_seconds})
        ending = (
            source
            for (tried, source), verdict in zip(mutants, verdicts, strict=True)
            if tried.id == problem.id and verdict.outcome in _WRONG_AND_ENDS
        )
        # Each its own: a judge that knows a program's verdict already would not judge it again.
        yield from (
            Task(f"{problem.reference}\n# {number}\n", asked, "right")
            for number in range(NUM_RIGHT)
        )
        for source in itertools.islice(ending, NUM_ANSWERS - NUM_RIGHT):
            yield Task(source, asked, "wrong")


def _mutate_often(problem: Problem, dice: random.Random) -> list[str]:
    return list(
        dict.fromkeys(mutate_program(problem.reference or "", dice) for _ in range(_MUTANTS_TRIED))
    )


def mutate_program(source: str, dice: random.Random) -> str:
    """Return a program with one fault of a kind that models' answers have."""
    change = dice.choice(
        (_swap_operator, _move_number, _swap_operator, _move_number, _leave_early, _raise, _cut_off)
    )
    if change is _cut_off:
        return _cut_off(source, dice)
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return _cut_off(source, dice)
    is_changed = change(tree, dice)  # type: ignore[arg-type]
    return ast.unparse(ast.fix_missing_locations(tree)) if is_changed else _cut_off(source, dice)


def _swap_operator(tree: ast.AST, dice: random.Random) -> bool:
    places: list[tuple[ast.AST, ast.AST]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in _SWAPPED:
            places.append((node, node.op))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
            places.append((node, node.ops[0]))
    if not places:
        return False
    node, operator = dice.choice(places)
    swapped = _SWAPPED[type(operator)]()
    if isinstance(node, ast.Compare):
        node.ops[0] = swapped  # type: ignore[call-overload]
    else:
        node.op = swapped  # type: ignore[attr-defined]
    return True


def _move_number(tree: ast.AST, dice: random.Random) -> bool:
    numbers = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            numbers.append(node)
    if not numbers:
        return False
    chosen = dice.choice(numbers)
    chosen.value += dice.choice((-1, 1))  # type: ignore[operator]
    return True


def _leave_early(tree: ast.AST, dice: random.Random) -> bool:
    functions = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            functions.append(node)
    if functions:
        return _insert(
            dice.choice(functions).body,
            f"return {dice.choice(('None', '0', '-1', '[]', 'True'))}",
            dice,
        )
    return _insert(_bodies(tree)[0], "raise SystemExit", dice)


def _raise(tree: ast.AST, dice: random.Random) -> bool:
    return _insert(
        dice.choice(_bodies(tree)),
        dice.choice(("[][1]", "{}['key']", "raise ValueError", "1 // 0")),
        dice,
    )


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    """Return all blocks in which something happens, the module's own first;
    a class's holds only definitions.
    """
    nodes: list[Any] = list(ast.walk(tree))
    found = []
    for node in nodes:
        if isinstance(getattr(node, "body", None), list):
            found.append(node.body)
    kept = []
    for body in found:
        if not any(isinstance(one, ast.FunctionDef) for one in body):
            kept.append(body)
    return kept or found[:1]


def _insert(body: list[ast.stmt], text: str, dice: random.Random) -> bool:
    statement = ast.parse(f"def f():\n    {text}").body[0]
    assert isinstance(statement, ast.FunctionDef)
    body.insert(dice.randrange(len(body) + 1), statement.body[0])
    return True


def _cut_off(source: str, dice: random.Random) -> str:
    """What a response that reached its length limit holds."""
    return source[: int(len(source) * dice.uniform(0.3, 0.9))]
