"""The rules of the house that a machine can check."""

import ast
import graphlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import microcoder
from microcoder.cli import VERBS
from microcoder.judge.core.machine import how_to_install

SOURCE = Path(microcoder.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# Rooms, each of which imports those above it only.
ROOMS = (
    "judge/core",
    "judge/sandbox",
    "judge/compare",
    "judge/languages",
    "judge/run",
    "judge/fleet",
    "judge/serve",
    "judge",
    "data/formats",
    "data",
    "data/micro",
    "data/clean",
    "data/verify",
    "data/inputs",
    "data/filter",
    "data/testgen",
    "data/behaviour",
    "data/pipeline",
    "data/release",
    "data/benchmarks",
    "data/corpus",
    "train",
    "train/algorithm",
    "train/recipe",
    "train/run",
    "train/trl",
    "train/verl",
    "lab",
    "lab/studies",
    "lab/yardstick",
    "replay",
    "eval",
    "view",
    "integrations",
    "integrations/lm_eval_tasks",
    "cli",
    "",
)
HEIGHT_OF = {room: height for height, room in enumerate(ROOMS)}
# They offer names of the rooms below them, and import one when it is first used (`lazy`).
FACADES = {
    "__init__.py",
    *(
        f"{name}/__init__.py"
        for name in ("judge", "data", "data/release", "train", "eval", "view", "lab", "replay")
    ),
}
HEAVY = {"torch", "transformers", "trl", "datasets", "accelerate", "peft", "verl"}
PROCESSES = {"subprocess", "multiprocessing", "pty"}
FORKS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"}
MAY_START_PROCESSES = {
    "data/clean/tex.py": "reads TeX by pandoc",
    "data/pipeline/runner.py": "takes shards through the steps of a build, a process a core",
    "lab/studies/workers.py": "starts the training processes of a study",
    "lab/yardstick/lanes.py": "starts the throw-away process of a judge under test",
    "lab/yardstick/contained/worker.py": "is that process, which closes itself off",
    "lab/yardstick/contained/judges.py": "runs in that process, and is what judges are made of",
    "train/verl/engine.py": "starts verl's command line",
    "train/run/manifest.py": "asks git for the commit that a run records",
}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room_of(path: Path) -> str:
    """Return a module's room: at most two folders deep."""
    return "/".join(path.relative_to(SOURCE).parts[:-1][:2])


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_modules(path: Path) -> list[str]:
    """Return what a module imports, also inside functions and by a string that is a
    module's name.
    """
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: write imports in full"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module"
        ):
            words = []
            for word in node.args:
                if isinstance(word, ast.Constant):
                    words.append(str(word.value))
            found += [word for word in words if word.startswith("microcoder.")]
        elif isinstance(node, ast.Constant) and re.fullmatch(
            r"microcoder(\.\w+)+:\w+", str(node.value)
        ):
            found.append(str(node.value).partition(":")[0])
    return found


@cache
def imported_files(path: Path) -> frozenset[Path]:
    """Return the modules of ours that a module imports."""
    found = set()
    for name in imported_modules(path):
        parts = name.split(".")
        if parts[0] == "microcoder":
            stems = [SOURCE.joinpath(*parts[1:depth]) for depth in range(len(parts), 0, -1)]
            files = (
                file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")
            )
            found.add(next(file for file in files if file.is_file()))
    return frozenset(found - {path})


def test_every_module_is_in_a_known_room() -> None:
    unknown = set()
    for path in MODULES:
        if room_of(path) not in ROOMS:
            unknown.add(name_of(path))
    assert unknown == set()


def test_imports_point_one_way() -> None:
    wrong = []
    for path in MODULES:
        if name_of(path) not in FACADES:
            for file in imported_files(path):
                if (
                    name_of(file) not in FACADES
                    and room_of(file) != room_of(path)
                    and HEIGHT_OF[room_of(file)] >= HEIGHT_OF[room_of(path)]
                ):
                    wrong.append(f"{name_of(path)} imports {name_of(file)}")
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {}
    for path in MODULES:
        if name_of(path) not in FACADES:
            graph[name_of(path)] = {
                name_of(file) for file in imported_files(path) if name_of(file) not in FACADES
            }
    graphlib.TopologicalSorter(graph).prepare()  # names the circle


def test_torch_lives_in_train_and_processes_in_the_judge() -> None:
    for path in MODULES:
        name = name_of(path)
        part = room_of(path).split("/")[0]
        roots = {module.split(".")[0] for module in imported_modules(path)}
        assert part == "train" or not roots & HEAVY, name
        if part != "judge" and name not in MAY_START_PROCESSES:
            assert not roots & PROCESSES, name
            calls = set()
            for node in ast.walk(tree_of(path)):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "os"
                ):
                    calls.add(node.attr)
            assert not calls & FORKS, name


def test_no_module_is_longer_than_600_lines() -> None:
    lengths = {}
    for path in MODULES:
        lengths[name_of(path)] = len(path.read_text(encoding="utf-8").splitlines())
    too_long = set()
    for name, length in lengths.items():
        if length > 600:
            too_long.add(name)
    assert too_long == set()


def test_the_public_names_are_these() -> None:
    assert microcoder.__all__ == [
        "Checker",
        "ConfigError",
        "DataError",
        "EvaluatorFault",
        "Judge",
        "MicroCoderError",
        "Outcome",
        "Problem",
        "Program",
        "Prompt",
        "Rollout",
        "TestCase",
        "TestResult",
        "TrainingError",
        "Verdict",
        "__version__",
        "extract_program",
        "read_problem",
        "score_verdict",
        "score_verdicts",
    ]
    for name in microcoder.__all__:
        assert hasattr(microcoder, name)


WITHOUT_EXTRAS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
SERVICE = {"fastapi", "starlette", "uvicorn", "httpx", "prometheus_client", "ray"}
CORE_ONLY = (
    HEAVY | SERVICE | {"numpy", "pyarrow", "matplotlib", "jinja2", "markupsafe", "yaml", "pandas"}
)


def run_without_extras(program: str) -> subprocess.CompletedProcess[str]:
    blocker = WITHOUT_EXTRAS.format(blocked=sorted(CORE_ONLY))
    return subprocess.run(
        [sys.executable, "-c", blocker + program],
        capture_output=True,
        text=True,
        timeout=60,
    )


ROWS = """
import json
import microcoder.lab.studies, microcoder.train.runs, microcoder.eval
from microcoder import Problem, Program, read_problem
from microcoder.judge import judge
import microcoder.data.formats.rows

row = {"question": "Sum?", "input_output": json.dumps({"inputs": ["1 2"], "outputs": ["3"]})}
program = Program("print(sum(map(int, input().split())))")
(verdict,) = judge([program], [read_problem(row)], workers=1)
print(verdict.outcome)
import torch
"""


def test_the_core_judges_a_row_of_a_data_set() -> None:
    result = run_without_extras(ROWS)
    assert result.stdout == "accepted\n", result.stderr
    assert result.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'torch'", (
        "the blocker blocks"
    )


NEEDED_EXTRAS = (
    ("serve --port 0", "serve"),
    ("report {run}", "insights"),
    ("study 001 --dry-run", "insights"),
    ("study --report 001", "insights"),
)
TRY_EACH = """
from microcoder.cli import main
for words in {!r}:
    try: main(words.split())
    except SystemExit as ended: print("ended", ended.code)
"""


def test_help_works_without_any_extra_and_a_verb_without_its_own_says_what_to_install(
    tmp_path: Path,
) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    verbs = ("", *VERBS, "data build")
    tried = [f"{verb} --help".strip() for verb in verbs] + [
        words.format(run=tmp_path) for words, _ in NEEDED_EXTRAS
    ]
    result = run_without_extras(TRY_EACH.format(tried))
    assert result.stdout.count("Usage: microcoder") == len(verbs), result.stderr
    assert re.findall("^ended (.*)$", result.stdout, re.M) == ["2"] * len(NEEDED_EXTRAS)
    lines = result.stderr.splitlines()
    for line, (_, extra) in zip(lines, NEEDED_EXTRAS, strict=True):
        assert line.endswith(f"type: {how_to_install(extra)}")


def test_one_function_parses_source() -> None:
    """CPython 3.11 parses wrongly in several threads at once,
    see `microcoder.judge.core.syntax`.
    """
    parsers = set()
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "parse"
                and isinstance(node.value, ast.Name)
            ) and node.value.id == "ast":
                parsers.add(name_of(path))
    assert parsers == {"judge/core/syntax.py"}
