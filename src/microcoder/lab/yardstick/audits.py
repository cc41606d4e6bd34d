"""An audit of judges: names, cases, each judge in a disposable process; results as JSON and as a Markdown page."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import runpy
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import microcoder
from microcoder.judge.core.errors import ConfigError, EvaluatorFault, suggest
from microcoder.judge.sandbox import kernel
from microcoder.lab.studies.accuracy import wilson_interval
from microcoder.lab.yardstick.cases import (
    DATA_VERSION,
    STORED,
    Case,
    build_fresh,
    choose_cases,
    load_suite,
)
from microcoder.lab.yardstick.inside import judges


@dataclass(frozen=True, slots=True)
class TestedJudge:
    """A judge to benchmark, as named on the command line."""

    label: str
    name: str
    """A function of `inside/judges.py`, or `file.py:function` of an adapter."""
    path: str
    python: str
    """Path of the Python interpreter that has the judge's packages."""
    abilities: frozenset[str]
    about: str
    runs_here: bool
    """Whether programs run in the judge's process here, which must be isolated; else a service runs them."""


def read_judge(text: str, *, python: str) -> TestedJudge:
    """Parse `NAME` or `NAME=WHERE`; NAME may be `adapters.py:function`. Raises ConfigError."""
    name, _, where = text.partition("=")
    for file in (given.rpartition(":")[0] for given in (name, where)):
        if file.endswith(".py") and not Path(file).is_file():
            raise ConfigError(f"--judge {text}: there is no {file}; give the path of a file")
    file, _, function = name.rpartition(":")
    if file.endswith(".py"):
        # What peers share with ours, by the name that it has where they are asked.
        sys.modules[judges.MODULE] = judges
        try:
            found, name = runpy.run_path(file), _absolute(name)
        except ImportError as error:
            raise ConfigError(
                f"--judge {text}: {file} cannot be imported ({error}); install what it needs"
            ) from None
        if not callable(found.get(function)):
            raise ConfigError(
                f"--judge {text}: {file} has no function {function!r}; see docs/judges.md"
            )
    else:
        if name not in judges.JUDGES:
            hint = f"{suggest(name, judges.JUDGES)} use one of {', '.join(judges.JUDGES)}, or FILE.py:FUNCTION".lstrip()
            raise ConfigError(f"--judge {text}: unknown judge {name!r}; {hint}")
        takes = judges.JUDGES[name]
        if bool(where) != bool(takes) or (
            takes == judges.REFERENCE and not all(where.partition(":"))
        ):
            needed = (
                f"{takes}; type --judge {name}=..." if takes else f"no path; type --judge {name}"
            )
            raise ConfigError(f"--judge {text}: {name} takes {needed}")
        found, function = vars(judges), name.replace("-", "_")
    abilities = frozenset(found.get("ABILITIES", {}).get(function, ["function", "packages"]))
    about = (found[function].__doc__ or function).split("\n")[0].strip().rstrip(".")
    runs_here = function not in found.get("SERVICES", ())
    label = function.replace("_", "-")
    return TestedJudge(label, name, _absolute(where), python, abilities, about, runs_here)


def _absolute(place: str) -> str:
    """Return `file.py:function` or a path with the path made absolute; any other text unchanged."""
    file, _, function = place.rpartition(":")
    if file.endswith(".py"):
        return f"{Path(file).absolute()}:{function}"
    return str(Path(place).absolute()) if place and Path(place).exists() else place


_QUICK_SECONDS = 10.0
"""Time of an answer above which a case is not asked again."""

_SUM, _TESTS = "print(sum(map(int, input().split())))", (("20 22\n", "42\n"),)
_RIGHT = Case("canary-right", "isolation", "canary", "V1", True, "", _SUM, _TESTS)
_WRONG = Case("canary-wrong", "isolation", "canary", "V1", False, "", "print(41)", _TESTS)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A judge's answer to a case, and what was wrong with it."""

    case: Case
    accepted: bool | None = None
    """The judge's answer; None if there was none, or it was undecided."""
    error: str = ""
    """The exception that the judge raised; `killed` if it gave no answer in time, `ended` if its process ended."""
    seconds: float = 0.0
    left: tuple[str, ...] = ()
    """Processes without a parent and files in shared folders that were not there before."""
    what: str = ""
    """What was wrong with the first answer; empty if nothing was."""
    is_unsteady: bool = False
    """Whether the judge was wrong at first and right on the second try, which does not count as a miss."""

    @property
    def is_miss(self) -> bool:
        """Whether the judge was wrong on all tries."""
        return bool(self.what) and not self.is_unsteady


def put_case(lane: Lane, case: Case) -> CaseResult:
    """Run a case on a judge, again after a miss, so that a busy machine does not count against the judge."""
    first = _put_once(lane, case)
    if not first.what or first.seconds > _QUICK_SECONDS or first.error in ("killed", "ended"):
        return first
    second = _put_once(lane, case)
    return first if second.what else replace(second, what=first.what, is_unsteady=True)


def _put_once(lane: Lane, case: Case) -> CaseResult:
    answer = lane.ask(case)
    what = _find_miss(case, answer)
    if case.suite == "isolation" and not what:
        what = _find_damage(lane, answer)
    return replace(answer, what=what)


def _find_miss(case: Case, answer: CaseResult) -> str:
    """Return what is wrong with an answer; empty if nothing is.

    Any way of not accepting counts as a refusal, also that the judge's process ended, unless the case is about that.
    """
    broken = {"killed": "no verdict in time", "ended": "the judge's own process ended"}.get(
        answer.error
    )
    if broken and (case.expect or case.suite in ("isolation", "timeouts")):
        return broken
    if case.expect and answer.accepted is None:
        return f"no verdict: {answer.error or 'unscored'}"
    if bool(answer.accepted) == case.expect:
        return ""
    if case.expect:
        return "refused"
    return "the program says that it did harm" if case.suite == "isolation" else "accepted"


def _find_damage(lane: Lane, answer: CaseResult) -> str:
    """Return the damage that a case's program did: things left behind, or a judge that now errs; empty if none."""
    if answer.left:
        return f"left behind: {', '.join(answer.left[:3])}"
    if not lane.ask(_RIGHT).accepted:
        return "the judge then refused a right program"
    if lane.ask(_WRONG).accepted:
        return "the judge then accepted a wrong program"
    return ""


_WORKER = Path(__file__).parent / "inside" / "worker.py"
_START_SECONDS = 180.0
_KILL_SECONDS, _KILL_FACTOR = 25.0, 2.0
_ASKED = ("id", "title", "code", "tests", "fn_name", "time_limit_seconds", "problem")
"""Fields of a case that are sent to a judge: without the right answer and its reason."""
_READ_BYTES, _LONGEST_BYTES = 1 << 16, 1 << 20


class Lane:
    """One judge's process; a new one is started whenever the last was killed or ended."""

    def __init__(
        self, judged: TestedJudge, *, contain: bool = True, patience_seconds: float = _KILL_SECONDS
    ) -> None:
        """Start the process of a judge.

        Args:
            contain: whether its process is isolated from this machine, if it runs programs itself.
            patience_seconds: how long an answer may take beyond twice the time limits of a case's tests.

        Raises:
            EvaluatorFault: it does not start, or cannot be isolated.
        """
        self.judged, self._contain, self._patience = (
            judged,
            contain and judged.runs_here,
            patience_seconds,
        )
        self.about = self.containment = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def ask(self, case: Case) -> CaseResult:
        """Return the judge's answer to a case; a judge that takes too long is killed."""
        if self._process is None:
            self._start()
        patience = self._patience + _KILL_FACTOR * case.time_limit_seconds * len(case.tests)
        started = time.monotonic()
        said = None
        with contextlib.suppress(OSError):
            self._requests.write(
                json.dumps({name: getattr(case, name) for name in _ASKED}).encode() + b"\n"
            )
            self._requests.flush()
            said = self._read_answer(patience, case.id)
        if said is None:
            seconds = time.monotonic() - started
            self.close()
            return CaseResult(case, None, "killed" if seconds >= patience else "ended", seconds)
        return CaseResult(
            case, said["accepted"], said["error"], said["seconds"], tuple(said["left"])
        )

    def close(self) -> None:
        """Kill the judge's process and all that it started."""
        if self._process is None:
            return
        process, self._process = self._process, None
        # Its namespaces end with it; without them, what it started in its session does.
        with contextlib.suppress(OSError), process:
            os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder, self._token = tempfile.mkdtemp(prefix="yardstick-"), secrets.token_hex(8)
        log = Path(self._folder) / "log"
        keep = [str(_WORKER.parents[2]), *_folders_of(self.judged)]
        settings = {
            "judge": self.judged.name,
            "path": self.judged.path,
            "contain": self._contain,
            "keep": keep,
            "kernel": kernel.__file__,
            "token": self._token,
            "folder": os.path.join("/tmp", os.path.basename(self._folder)),
        }
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if self.judged.name in ("microcoder", "http-v1"):
            keep.append(str(Path(microcoder.__file__).parents[1]))
            environment["PYTHONPATH"] = keep[-1]
        command = [self.judged.python, str(_WORKER), json.dumps(settings)]
        pipe = subprocess.PIPE
        with log.open("ab") as said_of_it:
            self._process = process = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=said_of_it,
                start_new_session=True,
                env=environment,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests, self._answers, self._unread = process.stdin, process.stdout.fileno(), b""
        said = self._read_answer(_START_SECONDS)
        if said is None:
            words = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            self.close()
            raise EvaluatorFault(f"the judge {self.judged.label} does not start: {words[0]}")
        if self._contain and said["containment"]:
            self.close()
            raise EvaluatorFault(
                f"the judge {self.judged.label} cannot be isolated here ({said['containment']}), and hostile programs "
                "would run with your rights; use a machine with user namespaces, or a container made for nothing else, "
                "with --uncontained"
            )
        self.about, self.containment = said["about"], said["containment"]

    def _read_answer(self, patience: float, case_id: str | None = None) -> dict[str, Any] | None:
        """Return the worker's next message, known by its token since programs may write too; None if none comes."""
        end = time.monotonic() + patience
        while (rest := end - time.monotonic()) > 0 and select.select([self._answers], [], [], rest)[
            0
        ]:
            if not (read := os.read(self._answers, _READ_BYTES)):
                return None
            *lines, last = (self._unread + read).split(b"\n")
            self._unread = last[:_LONGEST_BYTES]
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    said = json.loads(line)
                    if (
                        isinstance(said, dict)
                        and said.get("token") == self._token
                        and said.get("id") == case_id
                    ):
                        return said
        return None


def _folders_of(judged: TestedJudge) -> list[str]:
    """Return the folders that a judge is loaded from, which its isolated process must see."""
    named = (judged.name.rpartition(":")[0], judged.path, judged.path.rpartition(":")[0])
    paths = [Path(one).absolute() for one in named if one and Path(one).exists()]
    folders = [str(path if path.is_dir() else path.parent) for path in paths]
    # A virtual environment: what its interpreter is, and what it holds.
    environment = Path(judged.python).absolute().parents[1]
    return [*folders, str(environment)] if (environment / "pyvenv.cfg").exists() else folders


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of auditing one judge on the yardstick's cases."""

    judged: TestedJudge
    about: str = ""
    containment: str = ""
    """Why the judge's process was not isolated; empty if it was."""
    results: tuple[CaseResult, ...] = ()
    num_not_asked: int = 0
    """Number of cases not asked, since they need an ability that this judge lacks."""
    problem: str = ""
    """Why a process of the judge did not start, or not again: there are then no results. Empty otherwise."""


@dataclass(frozen=True, slots=True)
class YardstickPlan:
    """The cases of an audit, the same for every judge, and how they were chosen."""

    cases: tuple[Case, ...]
    seed: int
    most: int | None
    machine: str = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def make_plan(*, seed: int, most: int | None, suites: Sequence[str] = ()) -> YardstickPlan:
    """Return a plan: at most `most` cases of each stored suite, and all that are generated from the seed."""
    chosen = [case for suite in STORED for case in choose_cases(load_suite(suite), most, seed=seed)]
    chosen += build_fresh(seed)
    return YardstickPlan(
        tuple(case for case in chosen if not suites or case.suite in suites), seed, most
    )


def ask_judge(
    judged: TestedJudge,
    plan: YardstickPlan,
    *,
    lanes: int,
    contain: bool,
    note: Callable[[str], None],
) -> Audit:
    """Run all cases that a judge supports, in `lanes` processes; return the results or, if a process does not start, or
    not again, only the `problem`."""
    started = time.monotonic()
    needs_function = "only-function" in judged.abilities
    able = [case for case in plan.cases if judged.abilities.issuperset(case.needs)]
    asked = [case for case in able if case.fn_name is not None or not needs_function]

    def put(place: int) -> tuple[Lane, list[CaseResult]]:
        with contextlib.closing(Lane(judged, contain=contain)) as lane:
            return lane, [put_case(lane, case) for case in asked[place::lanes]]

    try:
        with ThreadPoolExecutor(lanes) as pool:
            opened, shares = zip(*pool.map(put, range(lanes)), strict=True)
    except EvaluatorFault as fault:
        note(f"{judged.label}: left out: {fault}")
        return Audit(judged, problem=str(fault))
    found = {result.case.id: result for share in shares for result in share}
    results = tuple(found[case.id] for case in asked)
    seconds, num_misses = time.monotonic() - started, sum(one.is_miss for one in results)
    note(f"{judged.label}: {num_misses} misses in {len(results)} cases, {seconds:.0f} s")
    return Audit(
        judged, opened[0].about, opened[0].containment, results, len(plan.cases) - len(asked)
    )


# ----- The results as JSON and as a page.


FRESH = "fresh"
COLUMNS = {
    "forgery": "forged programs accepted",
    "fidelity": "right programs refused",
    "wrong pairs": "wrong outputs accepted",
    "right pairs": "right outputs refused",
    "isolation": "harm done",
    "timeouts": "endless programs without a verdict",
    FRESH: "misses in cases made anew from the seed",
}
"""Group of cases -> title of its column, which counts the misses."""
OURS, NOTHING = "microcoder", "None in these cases.\n"
Rate = dict[str, float]
"""Counts `misses`, `asked` and `unsteady`, and `low` and `high`, the 95 % interval of the share of misses."""


def _is_in(column: str, result: CaseResult) -> bool:
    """Whether a result counts in a column of `COLUMNS`."""
    case = result.case
    if column == FRESH:
        return case.is_fresh
    if case.suite == "pairs":
        return column == ("right pairs" if case.expect else "wrong pairs")
    return column == case.suite


def _rates(audit: Audit) -> dict[str, Rate]:
    rates = {}
    for column in COLUMNS:
        asked = [one for one in audit.results if _is_in(column, one)]
        misses, unsteady = sum(one.is_miss for one in asked), sum(one.is_unsteady for one in asked)
        low, high = wilson_interval(misses, len(asked))
        rates[column] = {
            "misses": misses,
            "asked": len(asked),
            "low": low,
            "high": high,
            "unsteady": unsteady,
        }
    return rates


def write_json(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return all results as JSON text: each judge's `Audit` with its rates, and the cases with their programs."""
    record = {
        "microcoder": microcoder.__version__,
        "data_version": DATA_VERSION,
        "seed": plan.seed,
        "most": plan.most,
        "machine": plan.machine,
        "cases": len(plan.cases),
        "judges": [{**asdict(audit), "rates": _rates(audit)} for audit in audits],
    }
    return json.dumps(record, indent=1, default=sorted) + "\n"


def write_page(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return the page as Markdown: MicroCoder's misses, all judges side by side, then the misses of each."""
    asked = [audit for audit in audits if not audit.problem]
    most = "all cases" if plan.most is None else f"at most {plan.most} cases of each stored suite"
    rates, about, ours, others = [], [], [], []
    for audit in asked:
        rates.append([audit.judged.label, *map(_cell, _rates(audit).values())])
        about.append(
            [audit.judged.label, audit.about, audit.judged.about, str(audit.num_not_asked)]
        )
        is_own = audit.judged.name == OURS
        title = "Our own misses" if is_own else f"What {audit.judged.label} got wrong"
        (ours if is_own else others).append(f"## {title}\n\n{_list_misses(audit) or NOTHING}")
    parts = [
        "# How good are judges of programs?\n",
        f"`microcoder audit-judge`, data version {DATA_VERSION}, seed {plan.seed}, {most}; {plan.machine}. Every "
        "figure is misses / asked with the 95 % Wilson interval in per cent: fewer is better.\n",
        *ours,
        "## Side by side\n",
        _table(["judge", *COLUMNS.values()], rates),
        "## Which judge is which\n",
        _table(["judge", "version", "what was asked", "cases it cannot take"], about),
        *(
            f"- {audit.judged.label}: left out. {audit.problem}\n"
            for audit in audits
            if audit.problem
        ),
        *others,
    ]
    return "\n".join(parts)


def _list_misses(audit: Audit) -> str:
    lines = []
    for column, title in COLUMNS.items():
        missed = [
            one for one in audit.results if one.is_miss and _is_in(column, one) and column != FRESH
        ]
        found = [f"{_plain(one.case.title)} ({_plain(one.what)})" for one in missed]
        lines += [f"- {title}, {len(found)}: {'; '.join(found)}\n"] if found else []
    return "".join(lines)


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'").replace("*", "\\*")


def _cell(rate: Rate) -> str:
    share = f"{100 * rate['low']:.0f}-{100 * rate['high']:.0f}"
    return f"{rate['misses']} / {rate['asked']} ({share})" if rate["asked"] else "-"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rows))
