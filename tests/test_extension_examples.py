"""The extensions of the examples: each is short, comes in by the one door,
and does what its page says.
"""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from microcoder import read_problem
from microcoder.data.benchmarks import AnyBenchmark
from microcoder.data.corpus.settings import BuildConfig
from microcoder.data.filter.contamination import build_index, find_hits
from microcoder.data.formats.rows import load_format
from microcoder.data.sources import list_shards, open_source, read_shard
from microcoder.eval.config import EvalConfig
from microcoder.eval.generation import load_questions
from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extract import load_extractor
from microcoder.judge.core.types import (
    Checker,
    Outcome,
    Problem,
    Program,
    Rollout,
    TestCase,
    Verdict,
)
from microcoder.judge.languages import LANGUAGES_VARIABLE
from microcoder.train.algorithm.advantages import build_advantage
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.manifest import find_extensions

EXAMPLES = Path(__file__).parents[1] / "examples/extensions"
CUP = {
    "name": "sum",
    "task": "Print the sum of two whole numbers given on one line.",
    "cases": [["1 2", "3"]],
}
PACKAGES = ("cms.py", "dmoj.py", "dodona.py", "doocs.py")
READ_CUP = f"{EXAMPLES}/benchmark.py:read_cup"


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_an_example_takes_few_lines(path: Path) -> None:
    """At most 40, but for whole packages of other systems, which are more than one table."""
    assert path.suffix in (".py", ".toml") or path.name == "__pycache__"
    if path.is_file():
        assert len(path.read_text().splitlines()) <= (140 if path.name in PACKAGES else 40)


def test_an_extractor() -> None:
    extract = load_extractor(f"{EXAMPLES}/extractor.py:tagged", {"tag": "code"})
    found = extract("<code>1</code> no, <code>print(2)</code>", language="cpp")
    assert found.code == "print(2)"
    assert found.language == "cpp"
    assert found.reason == "tagged"
    missing = extract("<code>print(2)", is_truncated=True)
    assert missing.code is None
    assert missing.is_incomplete
    assert missing.reason == "nothing_by_tagged"


def test_an_advantage(tmp_path: Path) -> None:
    own = f"{EXAMPLES}/advantage.py:clipped"
    advantage = build_advantage(own, {"most": 0.5})
    assert advantage([1.0, 0.0, None, 0.5]) == [0.5, -0.5, 0.0, 0.0]
    (tmp_path / "bad.py").write_text(
        "def short(r):\n    return [0]\n\n\ndef knows(r):\n    return [1.0] * len(r)\n\n\n"
        "def falls(r):\n    return r / 2\n"
    )
    for name, message in (
        ("short", r"bad.py line 1\) returned \[0\] for 2 rewards"),
        ("knows", r"bad.py line 5\) returned 1 where the reward is None"),
        ("falls", r"bad.py line 10\) raised TypeError"),
    ):
        with pytest.raises(ConfigError, match=message):
            build_advantage(f"{tmp_path}/bad.py:{name}", {})([1.0, None])


def test_a_mask() -> None:
    own = {"kind": "own", "name": f"{EXAMPLES}/mask.py:mask_short", "options": {"tokens": 3}}
    mask = AlgorithmConfig.model_validate({"masking": own}).masking.why_masked
    program = Program("x")
    verdict = Verdict(Outcome.ACCEPTED, (), 0)
    reasons = []
    for n in (2, 3):
        reasons.append(
            mask(Rollout("p", "s", "", tuple(range(n)), False), program, verdict, draw=0.5)
        )
    assert reasons == ["too_short", None]


def test_a_recipe_records_the_source_of_all_it_brings_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(LANGUAGES_VARIABLE, "")
    config = load_config(
        TrainConfig,
        overrides={
            "model.kind": "hugging_face",
            "model.path": "x",
            "problems.kind": "micro",
            "problems.num_train": "128",
            "evaluator.languages": f'["{EXAMPLES}/rust.toml"]',
            "extractor": f"{EXAMPLES}/extractor.py:tagged",
            "algorithm.advantage": f"{EXAMPLES}/advantage.py:clipped",
            "algorithm.masking": f'{{kind = "own", name = "{EXAMPLES}/mask.py:mask_short"}}',
            "prompt.style": f"{EXAMPLES}/prompt.py:ask",
            "rewards": f"{EXAMPLES}/reward.py:brevity",
        },
    )
    found = {(source["noun"], Path(source["file"]).name) for source in find_extensions(config)}
    nouns = ("reward", "prompt", "extractor", "advantage", "mask")
    assert found == {*((noun, f"{noun}.py") for noun in nouns), ("language", "rust.toml")}


def test_a_benchmark_is_one_file_for_evaluation_and_for_decontamination(tmp_path: Path) -> None:
    problem = read_problem(CUP, format=READ_CUP)
    assert problem.statement == CUP["task"]
    assert problem.tests == (TestCase(input="1 2", output="3"),)
    with pytest.raises(DataError, match="cases is no list of pairs"):
        read_problem({**CUP, "cases": 3}, format=READ_CUP)
    rows = tmp_path / "cup.jsonl"
    rows.write_text(json.dumps(CUP) + "\n")
    asked = {"kind": "problems", "format": READ_CUP, "path": str(rows)}
    config = EvalConfig.model_validate(
        {"benchmark": asked, "generation": {"kind": "transformers", "model": "m"}}
    )
    (question,) = load_questions(config)
    assert question.load() == problem
    source = open_source(rows, READ_CUP)
    ((row,),) = [list(read_shard(source, shard)) for shard in list_shards(source, 8)]
    candidate = source.format.read_row(row.values or {}, row.place)
    assert find_hits(candidate, build_index([candidate]))
    with pytest.raises(ValueError, match="a benchmark that is never trained on"):
        BuildConfig.model_validate(
            {"name": "c", "output": "o", "sources": [{"path": "p", "format": READ_CUP}]}
        )


def test_what_the_examples_tell_to_write_in_a_config_is_read_by_it() -> None:
    told = {}
    for path in sorted(Path(EXAMPLES).glob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for line in re.findall(r"(?m)\b(benchmark = \{.*\})", said):
            table = tomllib.loads(line)["benchmark"]
            told[path.name] = TypeAdapter(AnyBenchmark).validate_python(table).kind
    assert told == {"benchmark.py": "problems"}


def test_a_set_of_ones_own_is_a_table_of_its_columns(tmp_path: Path) -> None:
    own = f"{EXAMPLES}/format.py:lessons"
    row = {
        "name": "sum",
        "task": {"text": "Add two numbers.", "cases": [{"input": "1 2", "output": "3"}]},
        "level": 2,
        "limits": '{"cpu": "500 ms"}',
    }
    problem = read_problem(row, format=own)
    assert problem.tests == (TestCase(input="1 2", output="3"),)
    assert problem.time_limit_seconds == 0.5
    (tmp_path / "lessons.jsonl").write_text(json.dumps({**row, "answers": ["print(3)"]}) + "\n")
    source = open_source(tmp_path / "lessons.jsonl", own)
    (shard,) = list_shards(source, 10)
    (read,) = read_shard(source, shard)
    assert read.values is not None
    candidate = source.format.read_row(read.values, "1")
    assert candidate.statement == "Add two numbers."
    assert candidate.platform_difficulty == "2"
    assert [one.code for one in candidate.solutions] == ["print(3)"]
    with pytest.raises(DataError, match=r"task\.text is int, not text"):
        read_problem({**row, "task": {"text": 7, "cases": []}}, format=own)


def test_a_reader_of_folders_says_what_a_folder_of_its_own_is(tmp_path: Path) -> None:
    (tmp_path / "sum").mkdir()
    (tmp_path / "sum/task.yaml").write_text("title: Sum\ntime_limit: 2\n")
    source = open_source(tmp_path, f"{EXAMPLES}/cms.py:cms")
    num_rows = []
    for shard in list_shards(source, 8):
        for part in shard:
            num_rows.append(part.num_rows)
    assert num_rows == [1]
    with pytest.raises(DataError, match=r"holds nothing of format .*; it needs config\.json"):
        open_source(tmp_path, f"{EXAMPLES}/dodona.py:dodona")
    with pytest.raises(DataError, match="is a folder of files, not a row"):
        read_problem({"name": "sum", "files": {}}, format=f"{EXAMPLES}/cms.py:cms")
    (tmp_path / "mine.py").write_text(
        "def read(row):\n    return None\n\n\nread.folders = 'task.yaml'\n"
    )
    with pytest.raises(ConfigError, match="write Folders"):
        load_format(f"{tmp_path}/mine.py:read")


def test_a_checker() -> None:
    checker = Checker(type="program", code=(EXAMPLES / "checker.py").read_text(), arguments=("2",))
    problem = Problem(id="p", tests=(TestCase(input="", output="10"),), checker=checker)
    with Judge(workers=1) as judge:
        verdicts = judge.judge(
            [Program(f"print({text})") for text in ("12", "13", "'x'")], [problem] * 3
        )
    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.ACCEPTED,
        Outcome.WRONG_ANSWER,
        Outcome.WRONG_ANSWER,
    ]
    assert "13 is too far off" in verdicts[1].detail
