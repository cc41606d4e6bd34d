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
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

import microcoder
from microcoder.cli.display import Flag, Json, StepDisplay, describe_counts
from microcoder.cli.judge_options import JudgeFlags, describe_lacks
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.records import read_values
from microcoder.judge.core.suspicions import ProgramOutcome, find_suspicions
from microcoder.judge.core.types import CHECKER_CRASHED, Outcome, Verdict
from microcoder.judge.languages.packages import load_profile, name_environment
from microcoder.judge.run.judging import Session
from microcoder.judge.run.sandboxes import Sandboxes
from microcoder.judge.run.submissions import Submission, VerdictFile, digest_input, read_submissions
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.train.metrics import share_reasons

if TYPE_CHECKING:
    from microcoder.eval.recognition import Recognised

_DEFAULTS = JudgeFlags()
"""The options where a command names none."""


def judge(
    input_path: Path | None = None,
    answers: Path | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    problems: Path | None = None,
    responses: Path | None = None,
    options: Annotated[JudgeFlags, Parameter(name="*")] = _DEFAULTS,
    form: Annotated[str | None, Parameter(name=["--format"])] = None,
    columns: str = "",
    explain: str = "",
    against: str = "",
    json: Json = False,
    overwrite: Flag = False,
) -> None:
    """Judge the programs of a file; the same command resumes an interrupted run.

    `judge FILE`, or `judge PROBLEMS ANSWERS`, reads files of any form, and says what it takes them
    for. Named: `judge SUBMISSIONS -o VERDICTS`, and `judge --problems P --responses A`.

    Parameters
    ----------
    input_path
        Submissions (.jsonl or .jsonl.gz), one object per line: id, code, tests, and optionally
        language, fn_name, language_version, time_limit_seconds, memory_limit_mib, checker. Or rows
        of problems with answers in any form: JSON lines, JSON, Parquet, CSV.
    answers
        The file of answers, where input_path holds the problems alone; either may come first.
    output
        File for the verdicts, one line per submission, in the order of the input. With --responses,
        the folder of answers, verdicts and report, which `microcoder view` shows; by default
        runs/judged-DIGEST.
    problems
        Problems with their tests: rows of any format of docs/rows.md (JSON lines, JSON, Parquet),
        or a built corpus.
    responses
        Answers to them, whole responses or programs: lines of {problem_id, response} or
        {problem_id, code}, or another form of docs/evaluation.md.
    form
        Format of the rows in --problems, of docs/rows.md, or a reader of your own; by default told
        by their fields.
    columns
        Columns of rows with names of their own:
        id=uid,statement=task.text,tests=cases,input=stdin,output=stdout.
    explain
        Judge the submission of this id once more, and print what was decided about its time, and
        why; nothing is written.
    against
        Column beside the answers with another judge's verdicts or rewards: show where the two part,
        and what a plain run of the program says. Of files of any form.
    overwrite
        Discard what earlier runs wrote to this output.
    """
    if problems is not None or responses is not None:
        if input_path or explain or against:
            refused = "--against" if against else "--explain"
            if input_path:
                refused = "a file of submissions"
            raise DataError(f"{refused} does not go with --problems and --responses; leave it out")
        if problems is None or responses is None:
            raise DataError("--problems and --responses go together; pass both")
        saved = _SavedAnswers(problems, responses, form, columns)
        _judge_answers(saved, output, options, json=json, overwrite=overwrite)
        return
    if form or columns:
        raise DataError(
            "--format and --columns are of the rows in --problems; of submissions leave them out"
        )
    if input_path is None:
        raise DataError(
            "nothing to judge; type: microcoder judge FILE, or: microcoder judge PROBLEMS ANSWERS"
        )
    if answers is not None or against or not _has_submissions(input_path):
        if explain:
            raise DataError("--explain is for files of submissions; leave it out")
        paths = [path for path in (input_path, answers) if path is not None]
        _judge_any(paths, against, output, options, json=json, overwrite=overwrite)
        return
    _judge_file(input_path, output, options, explain, json=json, overwrite=overwrite)


# ----- A file of submissions.


def _judge_file(
    input_path: Path,
    output: Path | None,
    options: JudgeFlags,
    explain: str,
    *,
    json: bool,
    overwrite: bool,
) -> None:
    """Judge a file of submissions into a file of verdicts, or explain one verdict."""
    options.add_languages()
    submissions = read_submissions(input_path)
    if explain:
        _explain(submissions, explain, options.read())
        return
    # Before a judge is started, which takes a while.
    target = _check_output(output, input_path)
    verdicts = VerdictFile(target, origin=_describe_origin(input_path, options, submissions))
    if overwrite:
        verdicts.delete()
    summary = _judge_submissions(submissions, verdicts, options)
    if json:
        print(json_module.dumps({"output": str(target), **summary}))
    else:
        _print_summary(target, summary)


def _check_output(output: Path | None, input_path: Path) -> Path:
    """Return the file of verdicts; DataError if it cannot be one."""
    if output is None:
        raise DataError(f"-o is missing; type: microcoder judge {input_path} -o VERDICTS.jsonl")
    if output.is_dir():
        raise DataError(f"{output} is a folder; choose a file with -o")
    # By the file and not by its name, since a link may lead to the input.
    if output.exists() and output.samefile(input_path):
        raise DataError(f"{output} is the input file; choose another -o")
    return output


def _describe_origin(
    input_path: Path, options: JudgeFlags, submissions: list[Submission]
) -> dict[str, str]:
    """Return what verdicts depend on; a file of verdicts is resumed only if this is the same."""
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
    return origin


def _judge_submissions(
    submissions: list[Submission], verdicts: VerdictFile, options: JudgeFlags
) -> dict[str, Any]:
    """Judge the submissions without a verdict; return a summary of all."""
    started = time.monotonic()
    with verdicts:
        num_found = len(verdicts.done)
        missing = [submission for submission in submissions if submission.id not in verdicts.done]
        if missing:
            with options.open() as judging:
                _note_sandbox(judging, verdicts)
                _judge_all(judging, missing, verdicts, num_total=len(submissions))
        summary = _summarise(verdicts, num_found, time.monotonic() - started)
        done = verdicts.done
        judged = []
        for submission in submissions:
            if submission.id in done:
                judged.append(ProgramOutcome(submission.code, done[submission.id]["verdict"]))
        summary["suspicions"] = find_suspicions(judged)
        # A file that is complete keeps its time and its summary.
        if missing or not verdicts.path.exists():
            verdicts.finish([submission.id for submission in submissions], summary)
    return summary


def _note_sandbox(judging: Judge, verdicts: VerdictFile) -> None:
    """Record the sandbox in a file next to the verdicts, and describe it."""
    verdicts.note_isolation(
        {
            **judging.isolation.as_record(),
            "time_scale": judging.time_scale,
            "environment": judging.environment.as_record(),
        }
    )
    text = f"sandbox is {judging.isolation.level}"
    lacks = describe_lacks(judging)
    if lacks:
        text += f"; missing: {lacks}"
    if judging.time_scale != 1:
        text += f"; CPU limits are multiplied by {judging.time_scale:g}"
    print(f"microcoder: {text}", file=sys.stderr)


# ----- Saved answers.


class _SavedAnswers(NamedTuple):
    """Files of problems and of answers to them, and how the problems' rows are read."""

    problems: Path
    responses: Path
    form: str | None
    columns: str


def _judge_answers(
    saved: _SavedAnswers, output: Path | None, options: JudgeFlags, *, json: bool, overwrite: bool
) -> Path:
    """Judge saved answers by an evaluation with the file as its generation; print the results.

    Returns:
        The evaluation's folder.
    """
    # For its errors: an option of the sandbox may be wrong.
    options.read()
    # An evaluation has no keys for these.
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
        benchmark=ProblemFile(
            kind="problems", path=saved.problems, format=saved.form, columns=saved.columns
        ),
        # Answers to a few problems may be judged, too: the report counts the others.
        generation=GenerationFile(kind="file", path=saved.responses, allow_missing=True),
        judging=SandboxConfig(**judging),
    )
    # A folder for each content of the files: who mends an answer or a test types the same command.
    paths = (saved.problems, saved.responses)
    contents = [digest_input(path) for path in paths if path.is_file()]
    digest = sha256("".join([digest_config(config), *contents]).encode()).hexdigest()[:16]
    folder = output or Path("runs") / f"judged-{digest}"
    if overwrite and folder.exists():
        # Only an evaluation is deleted, whatever folder was typed.
        EvaluationFolder(folder).check_ours()
        shutil.rmtree(folder)
    with StepDisplay() as display:
        results = run_evaluation(
            config, run_directory=folder, observer=display, command=["microcoder", *sys.argv[1:]]
        )
    if json:
        print(json_module.dumps({"output": str(folder), **results}))
    else:
        command = f"microcoder view {folder}"
        if not find_spec("pyarrow"):
            command = f"{how_to_install('insights')}, then {command}"
        print(f"{render_results(results)}\n")
        print(f"written to {folder}; to read the answers: {command}")
    return folder


# ----- Files of any form.


def _has_submissions(path: Path) -> bool:
    """Whether a file's first row is, or is meant to be, one of our submissions."""
    # What is missing, or empty, has an error of its own there.
    if not path.exists():
        return True
    if path.suffix in (".parquet", ".csv", ".tsv") or not path.is_file():
        return not path.is_file()
    for _, row in read_values(path, "submissions"):
        return isinstance(row, dict) and "code" in row and "tests" in row
    return True


def _judge_any(
    paths: list[Path],
    against: str,
    output: Path | None,
    options: JudgeFlags,
    *,
    json: bool,
    overwrite: bool,
) -> None:
    """Judge files of any form, and compare the verdicts with another judge's if asked."""
    from microcoder.eval.second_opinion import index_opinions

    recognised = _recognise(paths, against)
    # Before anything is judged: a verdict of theirs may be unreadable.
    opinions = index_opinions(recognised.answers, recognised.opinions) if against else {}
    saved = _write_recognised(paths, recognised)
    folder = _judge_answers(saved, output, options, json=json, overwrite=overwrite)
    if against:
        _compare(folder, recognised, opinions, options, json=json)


def _recognise(paths: list[Path], against: str) -> "Recognised":
    """Return what files of any form hold, and say what they were taken for."""
    from microcoder.eval.recognition import recognise_files

    recognised = recognise_files(paths, against=against)
    for line in recognised.said:
        print(f"microcoder: {line}", file=sys.stderr)
    return recognised


def _write_recognised(paths: list[Path], recognised: "Recognised") -> _SavedAnswers:
    """Write what was recognised in our own forms, and say by which command it would be named."""
    contents = sorted(digest_input(path) for path in paths)
    # By content: the same files give the same folder, and so the same evaluation goes on.
    digest = sha256("".join(contents).encode()).hexdigest()[:16]
    problems, answers = recognised.write(Path("runs") / f"read-{digest}")
    print(
        f"microcoder: {len(recognised.problems)} problems and {len(recognised.answers)} rows of "
        f"answers; the same in so many words: microcoder judge --problems {problems} "
        f"--responses {answers}",
        file=sys.stderr,
    )
    return _SavedAnswers(problems, answers, None, "")


def _compare(
    folder: Path,
    recognised: "Recognised",
    opinions: dict[tuple[str, int], bool | None],
    options: JudgeFlags,
    *,
    json: bool,
) -> None:
    """Print another judge's verdicts beside ours, and write them into the evaluation's folder."""
    from microcoder.eval.report import EvaluationFolder
    from microcoder.eval.second_opinion import compare

    with options.open() as judging:
        comparison = compare(EvaluationFolder(folder), recognised.problems, opinions, judging)
    page = folder / "against.md"
    page.write_text(f"{comparison.describe()}\n", encoding="utf-8")
    # With --json stdout is one object.
    stream = sys.stderr if json else sys.stdout
    print(f"\n{comparison.describe()}\n\nwritten to {page}", file=stream)


# ----- One submission, explained.


def _explain(submissions: list[Submission], name: str, options: JudgeOptions) -> None:
    """Judge one submission and print what was decided about the time of each test."""
    # The first counts where several have one id.
    by_id = {submission.id: submission for submission in reversed(submissions)}
    if name not in by_id:
        known = ", ".join(submission.id for submission in submissions[:3])
        raise DataError(f"--explain {name}: no submission has this id; the first ones are {known}")
    chosen = by_id[name]
    with contextlib.closing(Session(Sandboxes(options))) as session:
        session.open()
        # As for a verdict, or the limits that are explained would be others.
        scale = options.time_scale or session.sandboxes.measure_time_scale()
        prepared = PreparedProblem(
            chosen, time_scale=scale, checker_seconds=options.checker_seconds
        )
        verdict = session.judge(chosen.program, prepared)
    print(
        f"limit {chosen.time_limit_seconds:g} s, on this machine "
        f"{prepared.limits.cpu_seconds:.2f} s of CPU time (factor {scale:g}), at most "
        f"{prepared.limits.wall_seconds:.2f} s of wall time"
    )
    for number, test in enumerate(verdict.tests, 1):
        lines = [reason for of_test, reason in session.explained if of_test == number]
        for run in verdict.uncounted:
            if run.test == number:
                lines.append(f"a run that did not count, {run.reason.value}")
        outcome = f"{test.verdict.value}, cpu {test.cpu_seconds:.2f} s"
        outcome += f", wall {test.wall_seconds:.2f} s"
        if test.detail:
            outcome += f"; {test.detail}"
        lines.append(outcome)
        print("\n".join(f"test {number}: {line}" for line in lines))
    print(f"{name}: {verdict.outcome.value} {verdict.detail}".rstrip())


# ----- Judging, and its summary.


def _judge_all(
    judging: Judge, missing: list[Submission], verdicts: VerdictFile, *, num_total: int
) -> None:
    """Judge submissions and add each verdict to the file as it comes."""
    counts = Counter(row["verdict"] for row in verdicts.done.values())
    with StepDisplay() as display:
        # Verdicts of earlier commands count, so that the line agrees with the file.
        display.phase("judging", done=counts.total(), total=num_total, counts=counts)

        def keep(index: int, verdict: Verdict) -> None:
            verdicts.add(missing[index].id, verdict)
            display.advance(verdict.outcome.value)

        judging.judge([submission.program for submission in missing], missing, on_verdict=keep)


def _summarise(verdicts: VerdictFile, num_found: int, seconds: float) -> dict[str, Any]:
    """Return counts of a file of verdicts; `num_found` of them were there before this command."""
    rows = list(verdicts.done.values())
    counts = Counter(row["verdict"] for row in rows)
    reasons = []
    for row in rows:
        if row["verdict"] == Outcome.ACCEPTED:
            reasons.append({run["reason"] for run in row.get("uncounted", ())})
    uncounted = share_reasons(reasons)
    return {
        "num_submissions": len(rows),
        "num_judged": len(rows) - num_found,
        "verdicts": {
            outcome.value: counts[outcome.value] for outcome in Outcome if counts[outcome.value]
        },
        "checker_crashes": sum(map(_has_crashed_checker, rows)),
        "uncounted": {reason: round(share, 6) for reason, share in uncounted.items()},
        "seconds": round(seconds, 3),
        "isolation": verdicts.isolation,
    }


def _has_crashed_checker(row: dict[str, Any]) -> bool:
    """Whether the first failed test of a verdict crashed the problem's checker."""
    for test in row["tests"]:
        if test["verdict"] != Outcome.ACCEPTED:
            return test.get("method") == CHECKER_CRASHED
    return False


def _print_summary(output: Path, summary: dict[str, Any]) -> None:
    counts = describe_counts(summary["verdicts"]) or "nothing yet"
    # Nothing was judged now, so there is no time of this command to print.
    if not summary["num_judged"]:
        print(f"{output} was already complete: {counts}")
        return
    print(f"{output}: {counts}, {summary['seconds']:.1f} s")
    if summary["uncounted"]:
        uncounted = summary["uncounted"].items()
        shares = ", ".join(f"{reason} {share:.2%}" for reason, share in uncounted)
        print(f"accepted programs with a run of a test that did not count: {shares}")
    warnings = [f"suspicious: {suspicion}" for suspicion in summary["suspicions"]]
    num_faults = summary["verdicts"].get(Outcome.SANDBOX_FAULT, 0)
    if num_faults:
        warnings.append(
            f"{num_faults} submissions have no verdict because the sandbox failed; "
            "type the same command again to judge only these"
        )
    if summary["checker_crashes"]:
        warnings.append(
            f"{summary['checker_crashes']} wrong answers crashed the problem's checker, which "
            "accepts the reference answer"
        )
    for warning in warnings:
        print(f"microcoder: {warning}", file=sys.stderr)
