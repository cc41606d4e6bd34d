"""What the golden pack keeps, part by part: each runs real code and gives values by name."""

import io
import json
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet

from microcoder import Checker, extract_program, read_problem
from microcoder.cli import main
from microcoder.data.formats.candidates import Rejection
from microcoder.data.formats.rows import FORMATS
from microcoder.judge import compare_output
from microcoder.judge.core.config import load_config
from microcoder.lab.studies.design import find_studies
from microcoder.lab.studies.work import plan_work
from microcoder.lab.yardstick.cases import STORED, load_suite
from microcoder.train.runs import RunDirectory, read_rollouts
from microcoder.view import open_collection
from tests.golden_values import (
    ROOT,
    Skipped,
    Values,
    digest,
    flatten,
    shorten,
    steady,
    without_measures,
)


def compare_pairs(_: Path) -> Values:
    """Every pair of an output and what was expected."""

    from tests.judge.output_pairs import PAIRS, read_decisions, unescape

    table = [
        (Checker(), unescape(output), unescape(expected))
        for output, expected, *_ in read_decisions("Outputs")
    ]
    found = {}
    for checker, output, expected in (*((c, o, e) for c, _, o, e in PAIRS), *table):
        comparison = compare_output(output, expected, checker)
        options = checker.model_dump_json(exclude_defaults=True)
        name = (
            f"{shorten(repr(output))} for {shorten(repr(expected))} "
            f"{options if options != '{}' else ''}"
        ).strip()
        verdict = "right" if comparison.accepted else "wrong"
        found[name] = shorten(f"{verdict} {comparison.method} {comparison.detail}")
    return found


def list_yardstick(_: Path) -> Values:
    """The cases of `microcoder audit-judge`; what those of fidelity do is a part of its own."""
    cases = []
    for suite in STORED:
        if suite != "fidelity":
            cases.extend(load_suite(suite))
    return {f"{case.suite} {case.title}": digest(repr(case)) for case in cases}


def extract_layouts(_: Path) -> Values:
    """The program of each layout of a response, whole and truncated."""
    from tests.response_layouts import LAYOUTS

    found = {}
    for name, (response, _code) in LAYOUTS.items():
        for kind, is_truncated in (("", False), (", truncated", True)):
            program = extract_program(response, is_truncated=is_truncated)
            state = "incomplete" if program.is_incomplete else "whole"
            found[name + kind] = f"{program.reason} {state} {digest(program.code)}"
    return found


def read_formats(_: Path) -> Values:
    """Rows of every public format, and what is wrong with damaged ones."""
    from tests.data.collect.test_collect_malformed_rows import (
        BAD_PAYLOADS,
        MUST_HAVE,
        put,
        read_one,
    )
    from tests.data.formats.published_rows import ROWS
    from tests.data.golden_rows import rows_of

    found = {}
    for name in FORMATS:
        for number, values in enumerate(rows_of(name), 1):
            row = FORMATS[name].read_row(values, f"{name}.jsonl:{number}")
            for field, value in row.model_dump(mode="json", exclude_defaults=True).items():
                found[f"{name} row {number} {field}"] = digest(value)
    for name, published in ROWS.items():
        found[f"published {name}"] = digest(read_problem(published.row).model_dump(mode="json"))

    def say(row: Any) -> str:
        if isinstance(row, Rejection):
            return f"{row.reason}: {shorten(row.detail)}"
        return digest(row.model_dump_json())

    for name, places in MUST_HAVE.items():
        for wrong in (None, 7, [7], "half \ud800"):
            row = rows_of(name)[0]
            put(row, places[0], wrong)
            found[f"{name} with a question {wrong!r}"] = say(read_one(name, row))
    for name, payload in BAD_PAYLOADS.items():
        row = rows_of("livecodebench")[0] | {"private_test_cases": payload}
        found[f"hidden tests: {name}"] = say(read_one("livecodebench", row))
    return found


def build_corpus(folder: Path) -> Values:
    """A corpus of eighteen rows through every step: each file, each row of it,
    each field of a row.
    """
    from tests.data.test_build import build, write_recipe

    recipe = write_recipe(folder)
    recipe.write_text(recipe.read_text().replace(f"{folder}/", ""))
    with chdir(folder):
        said = build(Path(recipe.name))
    found = {}
    for step in said["steps"]:
        found[f"step {step['step']}"] = json.dumps(without_measures(step), sort_keys=True)
    for path in sorted((folder / "corpus").rglob("*")):
        name = path.relative_to(folder / "corpus").as_posix()
        if not path.is_file() or name.startswith(".work"):
            continue
        # The manifest has digests of the modules that decided.
        if name != "manifest.json":
            found[f"{name} bytes"] = digest(path.read_bytes())
        if name.startswith("lineage"):
            found |= {
                f"{name} row {n}": digest(row)
                for n, row in enumerate(pyarrow.parquet.read_table(path).to_pylist())
            }
        elif path.suffix == ".parquet":
            for place, row in enumerate(pyarrow.parquet.read_table(path).to_pylist()):
                found |= {
                    f"{name} row {place} {field}": digest(value) for field, value in row.items()
                }
        elif path.suffix == ".md":
            found |= {
                f"{name} line {n}": digest(line)
                for n, line in enumerate(path.read_text().splitlines(), 1)
            }
    return found


SMALL = {
    "num_steps": "4",
    "model.warm_start.num_steps": "150",
    "model.warm_start.batch_size": "32",
    "problems.num_train": "64",
    "problems.num_heldout": "12",
    "batch.train_batch_size": "8",
    "batch.ppo_mini_batch_size": "4",
    "batch.micro_batch_rollouts": "32",
    "evaluation.every_steps": "4",
    "evaluator.workers": "1",
}
"""What makes the recipe of the demo a matter of a minute."""


def say_run(run: RunDirectory) -> Values:
    """Return metrics, evaluations, rollouts and weights of a trained run."""
    from safetensors.torch import load_file

    found = {}
    for kind, rows in (("metrics", run.read_metrics()), ("evaluation", run.read_evaluations())):
        for row in rows:
            found |= flatten(without_measures(row), f"{kind} of step {row['step']}")
    for path in (
        *sorted(run.rollouts.glob("*.parquet")),
        *sorted(run.evaluation_samples.glob("*.parquet")),
    ):
        for place, row in enumerate(read_rollouts(path)):
            found[f"{path.parent.name}/{path.stem} row {place}"] = digest(without_measures(row))
    for name, tensor in load_file(run.model / "model.safetensors").items():
        found[f"weights {name}"] = digest(tensor.contiguous().numpy().tobytes())
    return found


MODELS = tempfile.TemporaryDirectory(prefix="golden-model-")


@cache
def warm_model() -> Path:
    """Return the folder of the demo's model, warm-started for a few steps in a temporary folder."""
    from microcoder.train.recipe.recipe import TrainConfig
    from microcoder.train.run.checkpoints import Observer
    from microcoder.train.run.warm import MICRO_CACHE, build_micro_checkpoint

    config = load_config(TrainConfig, [Path("micro")], SMALL)
    start = config.model.warm_start  # pyrefly: ignore[missing-attribute]
    return build_micro_checkpoint(start, Observer(), cache=Path(MODELS.name) / MICRO_CACHE)


def train_trl(folder: Path) -> Values:
    """The recipe of the demo at four steps on TRL."""
    import torch

    torch.set_num_threads(1)
    words = []
    for key, value in SMALL.items():
        words.extend((f"--{key}", value))
    warm_model()
    with chdir(MODELS.name), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        main(
            [
                "train",
                "-c",
                str(ROOT / "recipes/micro/config.toml"),
                "--run-dir",
                str(folder / "run"),
                *words,
            ]
        )
    return say_run(RunDirectory(folder / "run"))


def train_verl(folder: Path) -> Values:
    """A tiny recipe at two steps on verl."""
    if find_spec("transfer_queue") is None:
        raise Skipped("verl is not installed; type: make test-verl")
    from tests.train.verl.verl_runs import train

    changes = {"num_steps": "2", "evaluation.every_steps": "2"}
    return say_run(train(warm_model(), RunDirectory(folder / "run"), **changes))


def evaluate(folder: Path) -> Values:
    """An evaluation of saved answers: its results, its files."""
    from tests.data.published import make_call_row, make_row, write_rows
    from tests.eval.test_evaluation_session import DOUBLE, RIGHT, WRONG, file_config, run

    rows = [make_row("a"), make_row("b", difficulty="hard"), make_call_row("c")]
    answers = {"a": [RIGHT, WRONG], "b": [WRONG, "1 / 0"], "c": [DOUBLE, "```python\n" + DOUBLE]}
    with chdir(folder):
        # A digest of the configuration, with its paths, is among the results.
        config = file_config(Path(), write_rows(Path("t.jsonl"), rows), answers)
        results = run(config, Path("run"))
    kept = {}
    for k, v in results.items():
        if k != "cells":
            kept[k] = v
    found = flatten(without_measures(kept), "results")
    for cell in results["cells"]:
        found[f"cell {cell['platform']} {cell['difficulty']} {cell['k']}"] = digest(
            without_measures(cell)
        )
    for path in sorted((folder / "run").glob("*")):
        if path.suffix == ".jsonl":
            rows = [without_measures(json.loads(line)) for line in path.read_text().splitlines()]
            rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
            found |= {f"{path.name} row {place}": digest(row) for place, row in enumerate(rows)}
    return found


QUESTIONS = (
    *("/", "/main.js", "/page.css", "/api/runs", "/api/nothing", "/../pyproject.toml"),
    *(f"/api/index?run={run}" for run in ("one", "two", "eval", "judged", "nobody")),
    *("/api/search?run=one&text=both%3E%20numbers", "/api/search?run=one&text=n%5Bmu%5D&regex=yes"),
    *("/api/search?run=one&text=(&regex=yes", "/api/search?run=one&text=x&field=nothing"),
    *(
        "/api/rollout?run=one&id=train/1/0",
        "/api/rollout?run=one&id=train/8/3",
        "/api/rollout?run=one&id=heldout/4/2",
    ),
    *(
        "/api/rollout?run=two&id=train/1/0",
        "/api/rollout?run=eval&id=../../x",
        "/api/rollout?run=one&id=train/1/999",
    ),
    *("/api/test?run=one&problem=train/001&test=0", "/api/test?run=one&problem=train/001&test=-1"),
)


def view(folder: Path) -> Values:
    """The viewer over a training, an unfinished one, an evaluation and verdicts: its index,
    its answers.
    """
    from tests.view.parts.viewer_runs import (
        serving,
        write_evaluation,
        write_problems,
        write_training,
        write_verdicts,
    )

    write_training(folder / "one", manifest={"name": "one"})
    write_training(folder / "two", manifest={"name": "two"}, seed=1, num_steps=4, is_finished=False)
    write_evaluation(folder / "eval")
    write_verdicts(folder / "judged.jsonl")
    write_problems(folder / "problems.jsonl")
    collection = open_collection([folder / name for name in ("one", "two", "eval", "judged.jsonl")])
    found = {}
    for name, source in collection.items():
        index = source.index()
        found |= {f"index {name} row {n}": digest(index.record(n)) for n in range(len(index))}
    with serving(collection) as server:
        for question in QUESTIONS:
            answer = httpx.get(f"http://127.0.0.1:{server.server_address[1]}{question}", timeout=60)
            kind = answer.headers["Content-Type"].partition(";")[0]
            if kind == "application/octet-stream":
                text = answer.content
            else:
                text = steady(answer.text, folder)
            found[f"GET {question}"] = f"{answer.status_code} {kind} {digest(text)}"
    return found


def report(folder: Path) -> Values:
    """The page of a recorded run, and the pages of a study of recorded runs."""
    from tests.lab.synthetic_run import Recipe, write_run

    with chdir(ROOT), redirect_stdout(io.StringIO()) as out:
        write_run(folder / "run", Recipe(num_steps=8, evaluate_every=4, num_heldout=12))
        main(["report", str(folder / "run")])
        study = find_studies("kl_and_clip")[0]
        for run in plan_work(study, scale="quick", root=folder / "runs"):
            if run.seed < 3 and (run.name, run.seed) != ("KL", 2):
                write_run(
                    run.folder, Recipe(num_steps=8, evaluate_every=2, num_heldout=12, seed=run.seed)
                )
        words = ["--all", "--quick", "--runs", str(folder / "runs"), "-o", str(folder / "study")]
        main(["study", "--report", *words])
    # The folder of a study's runs has a digest of the code that decides their results.
    places = [folder, *(path.name for path in (folder / "runs").iterdir())]
    found = {"said": digest(steady(out.getvalue(), *places))}
    for top in ("run/report/data", "study"):
        for path in sorted((folder / top).rglob("*")):
            # Records hold the runs' code digest; a test makes the pages from them again.
            if path.is_file() and path.suffix != ".xz":
                lines = steady(path.read_text(), *places)
                found[path.relative_to(folder).as_posix()] = digest(lines)
    results = json.loads((folder / "study" / "results.json").read_text())
    for claim in results["claims"]:
        found[f"claim {claim['id']}"] = f"{claim['verdict']} {digest(claim)}"
    return found
