"""The rules of the house that a machine can check."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import microcoder
from microcoder.installation import how_to_install

SOURCE = Path(microcoder.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# A part imports parts of lower layers only.
LAYERS = (
    ("errors", "faults", "pieces"),
    ("syntax", "installation"),
    ("docstrings",),
    ("machine", "types"),
    ("files",),
    ("records", "signatures", "extensions"),
    ("blocks", "config", "keys", "metrics", "runs", "formats"),
    ("completions", "extract", "evaluator", "micro"),
    ("prompts", "rewards", "flawed"),
    ("serving",),
    ("dataset",),
    ("training",),
    ("insights",),
    ("viewer",),
    ("evaluation",),
    ("integrations", "yardstick"),
    ("cli",),
)
LAYER_OF = {part: height for height, parts in enumerate(LAYERS) for part in parts}

HEAVY = {"torch", "transformers", "trl", "datasets", "accelerate", "peft", "verl"}
PROCESSES = {"subprocess", "multiprocessing", "pty"}
FORKS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"}
MAY_START_PROCESSES = {
    "dataset/process/tex.py": "calls pandoc, in its sandbox and under a limit, to read statements in TeX",
    "dataset/pipeline/workers.py": "takes shards through the steps of a build, a process a core",
    "insights/workers.py": "starts the training processes of a study",
    "yardstick/lane.py": "starts the throw-away process of a judge under test",
    "yardstick/inside/containment.py": "runs in that process, and closes it off",
    "yardstick/inside/judges.py": "runs in that process, and is what judges are made of",
    "training/engines/verl/launch.py": "starts verl's command line",
    "training/manifest.py": "asks git for the commit that a run records",
}
MAY_EXCEED_500_LINES: dict[str, str] = {}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_modules(path: Path) -> list[str]:
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: write imports in full"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def test_every_part_has_a_layer() -> None:
    assert {part_of(path) for path in MODULES} - {"__init__", "__main__"} <= LAYER_OF.keys()


def test_imports_point_one_way() -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for module in imported_modules(path)
        if (part := part_of(path)) in LAYER_OF
        and module.startswith("microcoder.")
        and (target := module.split(".")[1]) in LAYER_OF
        and target != part
        and LAYER_OF[target] >= LAYER_OF[part]
    ]
    assert wrong == []


def test_torch_lives_in_training_and_processes_in_the_evaluator() -> None:
    for path in MODULES:
        name, part = name_of(path), part_of(path)
        roots = {module.split(".")[0] for module in imported_modules(path)}
        assert part == "training" or not roots & HEAVY, name
        if part != "evaluator" and name not in MAY_START_PROCESSES:
            assert not roots & PROCESSES, name
            calls = {
                node.attr
                for node in ast.walk(tree_of(path))
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
            }
            assert not calls & FORKS, name


def test_no_module_is_longer_than_500_lines() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name for name, length in lengths.items() if length > 500} <= MAY_EXCEED_500_LINES.keys()


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
        "score_verdict",
        "score_verdicts",
    ]
    assert all(hasattr(microcoder, name) for name in microcoder.__all__)


WITHOUT_EXTRAS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
SERVICE = {"fastapi", "starlette", "uvicorn", "httpx", "prometheus_client", "ray"}
CORE_ONLY = HEAVY | SERVICE | {"numpy", "pyarrow", "matplotlib", "jinja2", "markupsafe", "yaml", "pandas"}


def run_without_extras(program: str) -> subprocess.CompletedProcess[str]:
    blocker = WITHOUT_EXTRAS.format(blocked=sorted(CORE_ONLY))
    return subprocess.run([sys.executable, "-c", blocker + program], capture_output=True, text=True, timeout=60)


def test_the_blocker_blocks() -> None:
    assert "No module named 'torch'" in run_without_extras("import torch").stderr


def test_the_core_imports_without_torch_or_any_other_extra() -> None:
    result = run_without_extras(
        "import microcoder, microcoder.evaluator, microcoder.insights, microcoder.runs, microcoder.evaluation"
    )
    assert (result.returncode, result.stderr) == (0, "")


ROWS = """
import json
from microcoder import Problem, Program
from microcoder.evaluator import judge
import microcoder.formats.rows

row = {"question": "Sum?", "input_output": json.dumps({"inputs": ["1 2"], "outputs": ["3"]})}
(verdict,) = judge([Program("print(sum(map(int, input().split())))")], [Problem.from_row(row)], workers=1)
print(verdict.outcome)
"""


def test_the_core_judges_a_row_of_a_data_set() -> None:
    result = run_without_extras(ROWS)
    assert (result.returncode, result.stdout, result.stderr) == (0, "accepted\n", "")


VERBS = (
    "",
    "judge", "serve", "doctor", "init", "probe", "train", "report", "view",
    "audit-judge", "study", "study run", "study report", "eval", "eval show", "data", "data build",
)  # fmt: skip


def test_help_works_without_torch_or_any_other_extra() -> None:
    helps = "".join(f"print({verb!r}, flush=True); main({[*verb.split(), '--help']!r})\n" for verb in VERBS)
    result = run_without_extras(f"from microcoder.cli import main\n{helps}")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage: microcoder") == len(VERBS)


def test_a_service_without_its_extra_says_what_to_install() -> None:
    result = run_without_extras("from microcoder.cli import main; main(['serve', '--port', '0'])")
    assert result.returncode == 2
    assert f"type: {how_to_install('serve')}\n" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_report_without_its_extra_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    result = run_without_extras(f"from microcoder.cli import main; main(['report', {str(tmp_path)!r}])")
    assert result.returncode == 2
    assert f"type: {how_to_install('insights')}\n" in result.stderr
    assert "Traceback" not in result.stderr


def test_statistics_of_studies_without_their_extra_say_what_to_install() -> None:
    for verb in ("plan", "report"):
        result = run_without_extras(f"from microcoder.cli import main; main(['study', {verb!r}, '001'])")
        assert result.returncode == 2
        assert f"type: {how_to_install('insights')}\n" in result.stderr
        assert "Traceback" not in result.stderr


def test_one_function_parses_source() -> None:
    """CPython 3.11 parses wrongly in several threads at once, see `microcoder.syntax`."""
    parsers = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr == "parse" and isinstance(node.value, ast.Name)
        if node.value.id == "ast"
    }
    # The other one runs alone, in the process of a judge under test.
    assert parsers == {"syntax.py", "yardstick/inside/judges.py"}
