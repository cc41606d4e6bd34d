"""Our verdicts against those of LiveCodeBench's own checker,
on what two models answered to LiveCodeBench.

    git clone https://github.com/LiveCodeBench/LiveCodeBench
    tar xf lcb_eval.tar.xz
    PYTHONPATH=LiveCodeBench python benchmarks/livecodebench.py lcb_eval [--every 8]

The published submissions hold problems and answers, not tests. Tests are taken from the statements'
samples (public) and from what the submissions say of failed tests where it is not abridged
(hidden), and are written as code_generation_lite publishes them, so that our reader is measured
too. Both checkers then judge every answer by the same file. Every disagreement is printed as one
JSON line, with a third opinion: what plain Python prints for every test, compared token by token
(real numbers to 1e-6). The last line has the sums, `confirmed` being disagreements in which plain
Python says what we say. Their limit is wall time: run it on a quiet machine.
"""

import argparse
import base64
import contextlib
import gzip
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import plain_execution

from microcoder.data.benchmarks import LiveCodeBench, Question
from microcoder.judge import Judge
from microcoder.judge.core.types import Checker, Program, Verdict

Row = dict[str, Any]
ABRIDGED = "...(truncated) ..."
TIMEOUT_SECONDS = 6
TO_A_MILLIONTH = Checker(type="float", tolerance=1e-6, case_sensitive=True)
FIELDS = (
    "question_title",
    "question_content",
    "platform",
    "question_id",
    "contest_id",
    "contest_date",
    "starter_code",
    "difficulty",
)


@contextlib.contextmanager
def open_submissions(folder: Path) -> Iterator[tuple[dict[str, dict[str, Row]], list[Question]]]:
    """Give model -> question id -> its row, and the questions of which a test is known."""
    models = {}
    for path in sorted(folder.glob("*.json.gz")):
        with gzip.open(path, "rt") as file:
            models[path.name.removesuffix(".json.gz")] = {
                row["question_id"]: row for row in json.load(file)
            }
    rows = []
    for name in next(iter(models.values())):
        rows.append(publish([answers[name] for answers in models.values()]))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "test.jsonl")
        lines = []
        for row in rows:
            if row is not None:
                lines.append(json.dumps(row) + "\n")
        path.write_text("".join(lines))
        yield models, LiveCodeBench(path=path).read()


def publish(rows: list[Row]) -> Row | None:
    """Return a problem as code_generation_lite has it; None where no test is known."""
    row = rows[0]
    name = re.search(r"def (\w+)\(self", row["starter_code"])
    kind = "functional" if name else "stdin"
    public = read_calls(row) if name else read_samples(row["question_content"])
    hidden: list[Row] = []
    # Of calls, a submission quotes the arguments after the program has changed them.
    told = rows if kind == "stdin" else []
    for answers in told:
        for text in answers["metadata"]:
            test = read_failed_test(json.loads(text))
            if test is not None and test not in public + hidden:
                hidden.append(test)
    if not public and not hidden:
        return None
    # As the releases have them: pickled JSON.
    packed = zlib.compress(pickle.dumps(json.dumps(hidden)))
    return {
        **{field: row[field] for field in FIELDS},
        "public_test_cases": json.dumps(public),
        "private_test_cases": base64.b64encode(packed).decode(),
        "metadata": json.dumps({"func_name": name[1]} if name else {}),
    }


def read_samples(statement: str) -> list[Row]:
    """Return AtCoder's samples."""
    inputs = dict(
        re.findall(r"Sample Input (\d+)\n\n(.*?)(?=\n\nSample|\nSample|\Z)", statement, re.S)
    )
    outputs = dict(re.findall(r"Sample Output (\d+)\n\n?(.*?)(?=\n\n|\Z)", statement, re.S))
    samples = []
    for number in inputs:
        if number in outputs:
            samples.append(as_stdin(inputs[number], outputs[number]))
    return samples


def read_calls(row: Row) -> list[Row]:
    """Return LeetCode's examples whose arguments and result are JSON."""
    signature = re.search(r"def \w+\(self,?\s*(.*?)\)\s*(?:->|:)", row["starter_code"], re.S)
    if signature:
        names = [part.split(":")[0].strip() for part in re.split(r",\s*(?=\w+\s*:)", signature[1])]
    else:
        names = []
    pattern = r",?\s*".join(rf"{re.escape(name)}\s*=\s*(.*?)" for name in names) + r"\s*\Z"
    tests = []
    for example in re.finditer(
        r"Input:\s*(.*?)\nOutput:\s*(.*?)(?:\n|\Z)",
        row["question_content"],
        re.S,
    ):
        arguments = re.match(pattern, example[1].strip(), re.S)
        try:
            if arguments:
                values = [json.loads(text.strip()) for text in arguments.groups()]
            else:
                values = None
            wanted = json.loads(example[2].strip())
        except ValueError:
            continue
        if values is not None:
            tests.append(as_call(values, wanted))
    return tests


def read_failed_test(note: Row) -> Row | None:
    """Return the hidden test that a submission says it failed; None where it says too little."""
    given = note.get("inputs")
    wanted = note.get("expected")
    if given is None or wanted is None or ABRIDGED in f"{given}{wanted}":
        return None
    return as_stdin(given, wanted)


def as_stdin(given: str, wanted: str) -> Row:
    # Some statements end their lines as Windows does; LiveCodeBench's tests do not.
    lines = (text.replace("\r\n", "\n").strip("\n") + "\n" for text in (given, wanted))
    return dict(zip(("input", "output", "testtype"), (*lines, "stdin"), strict=True))


def as_call(arguments: list[Any], wanted: object) -> Row:
    lines = "\n".join(json.dumps(value) for value in arguments)
    return {"input": lines, "output": json.dumps(wanted), "testtype": "functional"}


def judge_by_livecodebench(question: Question, code: str) -> tuple[bool, str]:
    """Return LiveCodeBench's verdict, from a process of its own as there."""
    problem = question.load()
    sample = {
        "inputs": [test.input for test in problem.tests],
        "outputs": [test.output for test in problem.tests],
        "fn_name": problem.fn_name,
    }
    ours, theirs = multiprocessing.Pipe(duplex=False)
    arguments = ({"input_output": json.dumps(sample)}, code, theirs)
    process = multiprocessing.Process(target=run_livecodebench, args=arguments)
    process.start()
    theirs.close()
    answer = (False, "no answer")
    if ours.poll((TIMEOUT_SECONDS + 1) * len(problem.tests) + 5):
        with contextlib.suppress(EOFError):
            answer = ours.recv()
    process.kill()
    process.join()
    return answer


def run_livecodebench(sample: Row, code: str, answer: Connection) -> None:
    from lcb_runner.evaluation.testing_util import run_test  # pyrefly: ignore[missing-import]

    with open(os.devnull, "w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        results, note = run_test(sample, test=code, timeout=TIMEOUT_SECONDS)
    passes = []
    for result in results:
        passes.append(result is True or (not isinstance(result, bool) and result > 0))
    is_right = all(passes)
    answer.send((is_right, str(note.get("error_message") or note)[:200]))


def ask_plain_python(question: Question, code: str) -> bool | None:
    """Return whether plain Python prints what is wanted; None for a function call."""
    if question.problem.fn_name:
        return None
    for test in question.load().tests:
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command,
            input=test.input,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if not plain_execution.agree(done.stdout.encode(), test.output.encode(), TO_A_MILLIONTH):
            return False
    return True


def compare(
    judge: Judge,
    questions: list[Question],
    answers: dict[str, Row],
) -> Iterator[tuple[Verdict, Row]]:
    """Judge one model's answers by both; yield what they say."""
    codes = []
    for question in questions:
        for code in answers[question.id]["code_list"]:
            codes.append((question, code))
    verdicts = judge.judge(
        [Program(code) for _, code in codes], [question.load() for question, _ in codes]
    )
    for (question, code), verdict in zip(codes, verdicts, strict=True):
        theirs, note = judge_by_livecodebench(question, code)
        record = {
            "problem": question.id,
            "ours": verdict.outcome.value,
            "theirs": theirs,
            "their_note": note,
        }
        if theirs != verdict.is_accepted:
            record |= {"our_note": verdict.detail, "plain_python": ask_plain_python(question, code)}
        yield verdict, record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="judge every n-th problem only")
    parser.add_argument("--workers", type=int)
    arguments = parser.parse_args()
    sys.set_int_max_str_digits(50_000)
    both: Counter[tuple[bool, bool]] = Counter()
    confirmed = 0
    with open_submissions(arguments.folder) as (models, read):
        questions = read[:: arguments.every]
        with Judge(workers=arguments.workers, stop="first_failure") as judge:
            for model, answers in models.items():
                for verdict, record in compare(judge, questions, answers):
                    both[verdict.is_accepted, record["theirs"]] += 1
                    if "plain_python" in record:
                        confirmed += record["plain_python"] == verdict.is_accepted
                        print(json.dumps({"model": model, **record}), flush=True)
    by_both = {f"ours {ours}, theirs {theirs}": number for (ours, theirs), number in both.items()}
    agree = both[True, True] + both[False, False]
    sums = {
        "answers": both.total(),
        "agree": agree,
        "disagree": both.total() - agree,
        "confirmed": confirmed,
    }
    print(json.dumps({"problems": len(questions), **by_both, **sums}))


if __name__ == "__main__":
    main()
