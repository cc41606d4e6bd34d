"""`microcoder judge`: verdicts for a file of programs."""

import contextlib
import json as json_module
import shutil
import sys
import time
from collections import Counter
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import microcoder
from microcoder.cli.display import Flag, Json, StepDisplay, describe_counts
from microcoder.cli.judge_options import JudgeFlags, describe_lacks
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.suspicions import Judged, find_suspicions
from microcoder.judge.core.types import CHECKER_CRASHED, Outcome, Verdict
from microcoder.judge.languages.packages import load_profile, name_environment
from microcoder.judge.run.judging import Session
from microcoder.judge.run.sandboxes import Sandboxes
from microcoder.judge.run.submissions import Submission, VerdictFile, digest_input, read_submissions
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.train.metrics import share_reasons

_DEFAULTS = JudgeFlags()


def judge(
    input_path: Path | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    problems: Path | None = None,
    responses: Path | None = None,
    options: Annotated[JudgeFlags, Parameter(name="*")] = _DEFAULTS,
    form: Annotated[str | None, Parameter(name=["--format"])] = None,
    columns: str = "",
    explain: str = "",
    json: Json = False,
    overwrite: Flag = False,
) -> None:
    """Judge the programs of a file; the same command resumes an interrupted run.

    Two ways: `judge SUBMISSIONS -o VERDICTS`, and `judge --problems P --responses A` for a model's saved answers.

    Parameters
    ----------
    input_path
        Submissions (.jsonl or .jsonl.gz), one object per line: id, code, tests, and optionally language, fn_name,
        language_version, time_limit_seconds, memory_limit_mib, checker.
    output
        File for the verdicts, one line per submission, in the order of the input. With --responses, the folder of
        answers, verdicts and report, which `microcoder view` shows; by default runs/judged-DIGEST.
    problems
        Problems with their tests: rows of any format of docs/rows.md (JSON lines, JSON, Parquet), or a built corpus.
    responses
        Answers to them, whole responses or programs: lines of {problem_id, response} or {problem_id, code}, or another
        form of docs/evaluation.md.
    form
        Format of the rows in --problems, of docs/rows.md, or a reader of your own; by default told by their fields.
    columns
        Columns of rows with names of their own: id=uid,statement=task.text,tests=cases,input=stdin,output=stdout.
    explain
        Judge the submission of this id once more, and print what was decided about its time, and why;
        nothing is written.
    overwrite
        Discard what earlier runs wrote to this output.
    """
    if problems is not None or responses is not None:
        given = {"a file of submissions": input_path, "--explain": explain}
        if refused := next((name for name, value in given.items() if value), None):
            raise DataError(f"{refused} does not go with --problems and --responses; leave it out")
        reading = {"format": form, "columns": columns}
        _judge_responses(
            problems, responses, output, options, reading, json=json, overwrite=overwrite
        )
        return
    if form or columns:
        raise DataError(
            "--format and --columns are of the rows in --problems; of submissions leave them out"
        )
    if input_path is None:
        raise DataError(
            "nothing to judge; type: microcoder judge SUBMISSIONS.jsonl -o VERDICTS.jsonl, or: microcoder judge "
            "--problems PROBLEMS.jsonl --responses ANSWERS.jsonl"
        )
    options.add_languages()
    submissions = read_submissions(input_path)
    if explain:
        _explain(submissions, explain, options.read())
        return
    if output is None:
        raise DataError(f"-o is missing; type: microcoder judge {input_path} -o VERDICTS.jsonl")
    if output.is_dir():
        raise DataError(f"{output} is a folder; choose a file with -o")
    if output.exists() and output.samefile(input_path):
        raise DataError(f"{output} is the input file; choose another -o")
    origin = {
        "input": digest_input(input_path),
        "stop rule": options.stop,
        "time scale": "measured" if options.time_scale is None else f"{options.time_scale:g}",
        "version": microcoder.__version__,
        "checker seconds": f"{options.checker_seconds:g}",
        **name_environment(load_profile(options.packages), submissions),
    }
    if options.build_seconds is not None:
        origin["build seconds"] = f"{options.build_seconds:g}"
    verdicts = VerdictFile(output, origin=origin)
    if overwrite:
        verdicts.delete()
    started = time.monotonic()
    with verdicts:
        num_found = len(verdicts.done)
        todo = [submission for submission in submissions if submission.id not in verdicts.done]
        if todo:
            with options.open() as judging:
                held = {**judging.isolation.as_record(), "time_scale": judging.time_scale}
                verdicts.note_isolation({**held, "environment": judging.environment.as_record()})
                lacks = describe_lacks(judging)
                text = f"sandbox is {judging.isolation.level}" + (
                    f"; missing: {lacks}" if lacks else ""
                )
                if judging.time_scale != 1:
                    text += f"; CPU limits are multiplied by {judging.time_scale:g}"
                print(f"microcoder: {text}", file=sys.stderr)
                _judge_all(judging, todo, verdicts, num_total=len(submissions))
        summary = _summarise(verdicts, num_found, time.monotonic() - started)
        done = verdicts.done
        judged = [
            Judged(one.code, done[one.id]["verdict"]) for one in submissions if one.id in done
        ]
        summary["suspicions"] = find_suspicions(judged)
        if todo or not output.exists():
            verdicts.finish([submission.id for submission in submissions], summary)
    if json:
        print(json_module.dumps({"output": str(output), **summary}))
    else:
        _print_summary(output, summary)


def _judge_responses(
    problems: Path | None,
    responses: Path | None,
    output: Path | None,
    options: JudgeFlags,
    reading: dict[str, Any],
    *,
    json: bool,
    overwrite: bool,
) -> None:
    """Judge saved answers by an evaluation (`run_evaluation`) with the file as its generation; print the results."""
    if problems is None or responses is None:
        raise DataError("--problems and --responses go together; pass both")
    options.read()
    for name in ("time_scale", "checker_seconds", "build_seconds"):
        if getattr(options, name) != getattr(_DEFAULTS, name):
            raise DataError(
                f"--{name.replace('_', '-')} does not go with --responses; leave it out"
            )
    # They pull in what reads benchmarks, which files of submissions do without.
    from microcoder.data.benchmarks import ProblemFile
    from microcoder.eval import EvalConfig, run_evaluation
    from microcoder.eval.config import GenerationFile
    from microcoder.eval.evaluation import digest_config
    from microcoder.eval.report import EvaluationFolder, render_results
    from microcoder.train.recipe.judge import SandboxConfig

    judging = {name: getattr(options, name) for name in SandboxConfig.model_fields}
    config = EvalConfig(
        benchmark=ProblemFile(kind="problems", path=problems, **reading),
        generation=GenerationFile(kind="file", path=responses, allow_missing=True),
        judging=SandboxConfig(**judging),
    )
    # A folder for each content of the files: who mends an answer or a test types the same command.
    contents = [digest_input(path) for path in (problems, responses) if path.is_file()]
    digest = sha256("".join([digest_config(config), *contents]).encode()).hexdigest()[:16]
    folder = output or Path("runs") / f"judged-{digest}"
    if overwrite and folder.exists():
        EvaluationFolder(folder).check_ours()
        shutil.rmtree(folder)
    with StepDisplay() as display:
        results = run_evaluation(
            config, run_directory=folder, observer=display, command=["microcoder", *sys.argv[1:]]
        )
    if json:
        print(json_module.dumps({"output": str(folder), **results}))
    else:
        needs = "" if find_spec("pyarrow") else f"{how_to_install('insights')}, then "
        print(
            f"{render_results(results)}\n\nwritten to {folder}; to read the answers: {needs}microcoder view {folder}"
        )


def _explain(submissions: list[Submission], name: str, options: JudgeOptions) -> None:
    """Judge one submission and print what was decided about the time of each test."""
    chosen = next((one for one in submissions if one.id == name), None)
    if chosen is None:
        known = ", ".join(submission.id for submission in submissions[:3])
        raise DataError(f"--explain {name}: no submission has this id; the first ones are {known}")
    with contextlib.closing(Session(Sandboxes(options))) as session:
        session.open()
        scale = options.time_scale or session.sandboxes.measure_time_scale()
        prepared = PreparedProblem(
            chosen, time_scale=scale, checker_seconds=options.checker_seconds
        )
        verdict = session.judge(chosen.program, prepared)
    print(
        f"limit {chosen.time_limit_seconds:g} s, on this machine {prepared.limits.cpu_seconds:.2f} s of CPU time "
        f"(factor {scale:g}), at most {prepared.limits.wall_seconds:.2f} s of wall time"
    )
    for number, test in enumerate(verdict.tests, 1):
        said = [reason for place, reason in session.explained if place == number]
        said += [
            f"a run that did not count, {run.reason.value}"
            for run in verdict.uncounted
            if run.test == number
        ]
        used = f"cpu {test.cpu_seconds:.2f} s, wall {test.wall_seconds:.2f} s"
        said.append(f"{test.verdict.value}, {used}{test.detail and f'; {test.detail}'}")
        print("\n".join(f"test {number}: {line}" for line in said))
    print(f"{name}: {verdict.outcome.value} {verdict.detail}".rstrip())


def _judge_all(
    judging: Judge, todo: list[Submission], verdicts: VerdictFile, *, num_total: int
) -> None:
    counts = Counter(row["verdict"] for row in verdicts.done.values())
    with StepDisplay() as display:
        display.phase("judging", done=counts.total(), total=num_total, counts=counts)

        def keep(index: int, verdict: Verdict) -> None:
            verdicts.add(todo[index].id, verdict)
            display.advance(verdict.outcome.value)

        judging.judge([submission.program for submission in todo], todo, on_verdict=keep)


def _summarise(verdicts: VerdictFile, num_found: int, seconds: float) -> dict[str, Any]:
    rows = list(verdicts.done.values())
    counts = Counter(row["verdict"] for row in rows)
    failed = [
        next((test for test in row["tests"] if test["verdict"] != Outcome.ACCEPTED), {})
        for row in rows
    ]
    accepted = [row for row in rows if row["verdict"] == Outcome.ACCEPTED]
    uncounted = share_reasons(
        {run["reason"] for run in row.get("uncounted", ())} for row in accepted
    )
    return {
        "num_submissions": len(rows),
        "num_judged": len(rows) - num_found,
        "verdicts": {
            outcome.value: counts[outcome.value] for outcome in Outcome if counts[outcome.value]
        },
        "checker_crashes": sum(test.get("method") == CHECKER_CRASHED for test in failed),
        "uncounted": {reason: round(share, 6) for reason, share in uncounted.items()},
        "seconds": round(seconds, 3),
        "isolation": verdicts.isolation,
    }


def _print_summary(output: Path, summary: dict[str, Any]) -> None:
    if not summary["num_judged"]:
        print(
            f"{output} was already complete: {describe_counts(summary['verdicts']) or 'nothing yet'}"
        )
        return
    print(
        f"{output}: {describe_counts(summary['verdicts']) or 'nothing yet'}, {summary['seconds']:.1f} s"
    )
    if summary["uncounted"]:
        shares = ", ".join(
            f"{reason} {share:.2%}" for reason, share in summary["uncounted"].items()
        )
        print(f"accepted programs with a run of a test that did not count: {shares}")
    warnings = [f"suspicious: {line}" for line in summary["suspicions"]]
    if num_faults := summary["verdicts"].get(Outcome.SANDBOX_FAULT, 0):
        warnings.append(
            f"{num_faults} submissions have no verdict because the sandbox failed; "
            "type the same command again to judge only these"
        )
    if crashes := summary["checker_crashes"]:
        warnings.append(
            f"{crashes} wrong answers crashed the problem's checker, which accepts the reference answer"
        )
    for line in warnings:
        print(f"microcoder: {line}", file=sys.stderr)
