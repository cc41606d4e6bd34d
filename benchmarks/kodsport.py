"""Known verdicts: the jury's submissions of Swedish contest archives, judged again.

    tar xf kodsport.tar.xz && python benchmarks/kodsport.py kodsport [--every 8] [--languages python cpp]

Accepted submissions must be accepted; those of the folders wrong_answer, run_time_error and time_limit_exceeded must
be refused (for any reason: a wrong program may also crash). A problem's time limit is what its archive says: the
slowest accepted submission times its multiplier. Tests in the archive are capped, so a wrong submission may pass for
want of the test that breaks it; every disagreement is listed with what was seen. One JSON object a line.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from microcoder.evaluator import Judge
from microcoder.types import Checker, Outcome, Problem, Program, TestCase, Verdict

LANGUAGES = {".py": "python", ".cpp": "cpp", ".cc": "cpp"}
REFUSED = ("wrong_answer", "run_time_error", "runtime_error", "time_limit_exceeded")
DEFAULT_MULTIPLIER = 5.0
GENEROUS_SECONDS = 20.0
LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)".*$', re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """One problem package."""

    folder: Path
    settings: dict[str, Any]
    tests: tuple[TestCase, ...]

    @property
    def name(self) -> str:
        return "/".join(self.folder.parts[-3:])

    def problem(self, language: str, seconds: float) -> Problem:
        megabytes = (self.settings.get("limits") or {}).get("memory", 2048)
        return Problem(
            id=self.name,
            language=language,
            tests=self.tests,
            time_limit_seconds=seconds,
            memory_limit_mib=int(megabytes),
            checker=read_checker(self),
        )


def read_package(folder: Path) -> Package | None:
    """Return a package that has tests and does not talk back."""
    settings = yaml.safe_load((folder / "problem.yaml").read_text(errors="replace")) or {}
    is_plain = not any((folder / part).exists() for part in ("include", "attachments", "graders"))
    if "interactive" in str(settings.get("validation", "")) or not is_plain:
        return None
    tests = [
        TestCase(input=file.read_text(errors="surrogateescape"), output=answer.read_text(errors="surrogateescape"))
        for file in sorted(folder.glob("data/**/*.in"))
        if (answer := file.with_suffix(".ans")).exists()
    ]
    return Package(folder, settings, tuple(tests)) if tests else None


def read_checker(package: Package) -> Checker:
    """Return what the package compares by: its own validator, or the default one with its flags."""
    flags = str(package.settings.get("validator_flags") or "").split()
    if "custom" in str(package.settings.get("validation", "")):
        sources = [
            file
            for pattern in ("output_validators/*", "output_validators/*/*")
            for file in sorted(package.folder.glob(pattern))
            if file.suffix in LANGUAGES
        ]
        if len(sources) != 1:
            raise ValueError(f"{len(sources)} validator sources")
        code = inline_includes(sources[0])
        language = LANGUAGES[sources[0].suffix]
        return Checker(type="program", code=code, language=language, protocol="kattis", arguments=tuple(flags))
    values = dict(itertools.pairwise(flags))
    is_case_sensitive = "case_sensitive" in flags
    both = values.get("float_tolerance")
    absolute = both or values.get("float_absolute_tolerance")
    relative = both or values.get("float_relative_tolerance")
    if "space_change_sensitive" in flags:
        return Checker(type="exact")
    if absolute or relative:
        tolerances = {"absolute": absolute and float(absolute), "relative": relative and float(relative)}
        given = {name: value for name, value in tolerances.items() if value}
        return Checker(type="float", case_sensitive=is_case_sensitive, **given)
    return Checker(type="tokens", case_sensitive=is_case_sensitive)


def inline_includes(source: Path) -> str:
    """Return a source with the files beside it in place of their includes."""

    def replace(found: re.Match[str]) -> str:
        file = source.parent / found[1]
        return file.read_text(errors="replace") if file.exists() else found[0]

    return LOCAL_INCLUDE.sub(replace, source.read_text(errors="replace"))


def submissions(package: Package, kinds: tuple[str, ...], languages: list[str]) -> list[tuple[str, Path]]:
    """Return the single-file submissions of these kinds."""
    found = []
    for kind in kinds:
        for file in sorted((package.folder / "submissions" / kind).glob("*")):
            if file.is_file() and LANGUAGES.get(file.suffix) in languages:
                found.append((kind, file))
    return found


def judge_files(judge: Judge, package: Package, files: list[tuple[str, Path]], seconds: float) -> list[Verdict]:
    programs = [Program(file.read_text(errors="replace"), LANGUAGES[file.suffix]) for _, file in files]
    return judge.judge(programs, [package.problem(program.language, seconds) for program in programs])


def judge_package(judge: Judge, package: Package, languages: list[str]) -> Iterator[dict[str, Any]]:
    """Judge a package's submissions; yield one record each."""
    accepted = submissions(package, ("accepted",), languages)
    verdicts = judge_files(judge, package, accepted, GENEROUS_SECONDS)
    slowest = max((t.cpu_seconds for v in verdicts if v.is_accepted for t in v.tests), default=1.0)
    multiplier = (package.settings.get("limits") or {}).get("time_multiplier", DEFAULT_MULTIPLIER)
    seconds = float(max(1, math.ceil(multiplier * slowest)))
    refused = submissions(package, REFUSED, languages)
    verdicts += judge_files(judge, package, refused, min(seconds, 60.0))
    for (kind, file), verdict in zip(accepted + refused, verdicts, strict=True):
        agrees = verdict.is_accepted == (kind == "accepted") and verdict.outcome is not Outcome.SANDBOX_FAULT
        yield {
            "problem": package.name,
            "submission": file.name,
            "language": LANGUAGES[file.suffix],
            "kind": kind,
            "verdict": verdict.outcome.value,
            "agrees": agrees,
            "explanation": "" if agrees else explain(package, kind, verdict),
            "tests_passed": verdict.tests_passed,
            "tests_total": verdict.tests_total,
            "checker": read_checker(package).type,
            "time_limit_seconds": GENEROUS_SECONDS if kind == "accepted" else seconds,
            "detail": verdict.detail,
        }


def explain(package: Package, kind: str, verdict: Verdict) -> str:
    """Return why a known verdict is not to be had, where that can be told from the package."""
    if kind == "accepted" and verdict.outcome is Outcome.COMPILE_ERROR and "to 'print'" in verdict.detail:
        return "the submission is Python 2"
    if kind == "accepted" and package.settings.get("type") == "scoring" and verdict.tests_passed < verdict.tests_total:
        return "a scoring problem: its accepted submissions may solve some test groups only"
    if kind != "accepted" and verdict.is_accepted:
        return "passes every test that the capped archive has"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="judge every n-th problem only")
    parser.add_argument("--languages", nargs="+", choices=["python", "cpp"], default=["python", "cpp"])
    parser.add_argument("--workers", type=int)
    arguments = parser.parse_args()
    right: Counter[tuple[str, str]] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    skipped: Counter[str] = Counter()
    explained: Counter[str] = Counter()
    with Judge(workers=arguments.workers, stop="first_failure") as judge:
        for settings in sorted(arguments.folder.rglob("problem.yaml"))[:: arguments.every]:
            package = read_package(settings.parent)
            if package is None:
                skipped["interactive or without tests"] += 1
                continue
            try:
                records = list(judge_package(judge, package, arguments.languages))
            except ValueError as error:
                skipped[str(error)] += 1
                continue
            for record in records:
                key = (record["language"], record["kind"])
                seen[key] += 1
                right[key] += record["agrees"]
                if not record["agrees"]:
                    explained[record["explanation"] or "unexplained"] += 1
                    print(json.dumps(record), flush=True)
    for key in sorted(seen):
        print(json.dumps({"language": key[0], "kind": key[1], "agree": right[key], "of": seen[key]}))
    totals = {"agree": sum(right.values()), "of": sum(seen.values())}
    print(json.dumps({**totals, "disagreements": dict(explained), "problems_skipped": dict(skipped)}))


if __name__ == "__main__":
    main()
