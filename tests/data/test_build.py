"""A build through the command line: rows accounted for, nothing done twice,
killed and taken up again, on Ray.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
import pytest

from microcoder.cli import main
from microcoder.data import Candidate, Rejection, read_problems, rowfiles
from microcoder.data.corpus.build import plan_build, run_build
from microcoder.data.corpus.inputs import (
    open_settings,
    read_benchmark_problems,
    unpack_sources,
)
from microcoder.data.corpus.settings import ArrangeSettings, BuildConfig, SourceSettings
from microcoder.data.corpus.steps import collect_step
from microcoder.data.corpus.work import Resources, open_process
from microcoder.data.formats.candidates import REASONS
from microcoder.data.formats.row import REASONS as row_reasons
from microcoder.data.formats.rows import FORMATS
from microcoder.data.rowfiles import unpack
from microcoder.data.sources import collect_source
from microcoder.judge import JudgeOptions
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import hold_lock

PLACES = "abcdefgh"
RECIPES = Path(__file__).parents[2] / "recipes" / "data"


def statement(number: int) -> str:
    """Texts that have little in common, so that no two are duplicates of each other."""
    generator = random.Random(number)
    pieces = []
    for _ in range(40):
        pieces.append(
            "".join(generator.choices("bdfgklmnprstvz", k=1) + generator.choices("aeiou", k=1)) * 2
            + generator.choice(PLACES)
        )
    words = " ".join(pieces)
    return (
        f"In the valley of {words} there are two numbers on one line. Print their sum plus "
        f"{number}.\n"
        "\n"
        "Input\n\n"
        f"Two integers a and b (1 <= a, b <= {1000 + number}).\n\n"
        "Output\n\n"
        "One integer.\n"
    )


def row(number: int, *, added: int | None = None, text: str | None = None) -> dict[str, object]:
    pairs = [(a, b) for a, b in ((1, 2), (3, 40), (500, 7), (9, 9))]
    right = number if added is None else added
    solutions = []
    for said in (
        "a, b = map(int, input().split())\nprint(a + b",
        "print(sum(map(int, input().split()))",
    ):
        solutions.append(f"{said} + {right})\n")
    return {
        "problem_id": number,
        "question": text or statement(number),
        "solutions": json.dumps(solutions if added is None else solutions[:1]),
        "input_output": json.dumps(
            {
                "inputs": [f"{a} {b}\n" for a, b in pairs],
                "outputs": [f"{a + b + number}\n" for a, b in pairs],
            }
        ),
        "difficulty": "interview",
        "url": f"https://example.org/{number}",
        "starter_code": "",
    }


def shown_row(number: int) -> dict[str, object]:
    """A problem whose statement shows all its tests,
    of a layout that further inputs are not made of.
    """
    pairs = [(3, 4), (50, 60)]
    tests = {
        "inputs": [f"{a}\n\n{b}\n" for a, b in pairs],
        "outputs": [f"{a + b + number}\n" for a, b in pairs],
    }
    examples = []
    for place, (given, output) in enumerate(zip(tests["inputs"], tests["outputs"], strict=True), 1):
        examples.append(
            f"\nExample {place}\n\nInput:\n\n```\n{given}```\n\nOutput:\n\n```\n{output}```\n"
        )
    shown = "".join(examples)
    code = f"import sys\nprint(sum(map(int, sys.stdin.read().split())) + {number})\n"
    return {
        **row(number, text=statement(number) + shown),
        "solutions": json.dumps([code]),
        "input_output": json.dumps(tests),
    }


def write_rows(path: Path, rows: list[dict[str, object] | str]) -> None:
    path.write_text(
        "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows)
    )


def write_recipe(tmp_path: Path, num_good: int = 12) -> Path:
    """Some good problems; a broken line, a copy, a wrong reference, Swedish, a benchmark's,
    one that shows all.
    """
    swedish = 2 * (
        "Skriv ett program som läser två heltal från en rad och skriver ut deras summa och "
        "lägger till tre. "
    )
    write_rows(
        tmp_path / "raw.jsonl",
        [
            *(row(number) for number in range(num_good)),
            '{"problem_id": 12, "question": ',
            {**row(3), "problem_id": 13, "url": "https://example.org/13"},
            row(14, added=99),
            row(15, text=swedish),
            {**row(16), "url": "https://example.org/16"},
            shown_row(17),
        ],
    )
    write_rows(tmp_path / "benchmark.jsonl", [row(16)])
    path = tmp_path / "build.toml"
    path.write_text(
        f"""
name = "small"
output = "{tmp_path / "corpus"}"
rows_per_shard = 4
workers = 1
[[sources]]
path = "{tmp_path / "raw.jsonl"}"
format = "apps"
[[benchmarks]]
path = "{tmp_path / "benchmark.jsonl"}"
format = "apps"
name = "bench"
[generate]
keep_unchecked = true
"""
    )
    return path


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe of which nothing was done."""
    return write_recipe(tmp_path, 4)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A recipe that was built without interruption, and what the command said."""
    path = write_recipe(tmp_path_factory.mktemp("built"), 4)
    return path, build(path)


def run(*arguments: str | Path, expect: int = 0) -> tuple[str, str]:
    """Run a command in this process; return what it wrote to stdout and to stderr."""
    code: object = 0
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as error:
        try:
            main(["data", *map(str, arguments)])
        except SystemExit as ended:
            code = ended.code
    assert code == expect, error.getvalue()
    return out.getvalue(), error.getvalue()


def build(recipe: Path, *more: str) -> dict[str, Any]:
    return json.loads(run("build", "-c", recipe, "--json", *more)[0])


def contents(folder: Path) -> dict[str, bytes]:
    """Everything that is released, but the record of where it came from."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".work" not in path.relative_to(folder).parts:
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


@pytest.mark.slow
def test_a_build_accounts_for_every_row_and_does_nothing_twice(
    built: tuple[Path, dict[str, Any]],
) -> None:
    recipe, said = built
    corpus = recipe.parent / "corpus"
    steps = {step["step"]: (step["in"], step["kept"], step["rejected"]) for step in said["steps"]}
    assert steps == {
        "collect": (10, 9, 1),
        "process": (9, 8, 1),
        "filter": (8, 7, 1),
        "boilerplate": (7, 7, 0),
        "deduplicate": (7, 6, 1),
        "compare": (6, 6, 0),
        "generate": (6, 6, 0),
        "verify": (6, 4, 2),
    }
    reasons = {}
    for step in said["steps"]:
        for reason, num in step["reasons"].items():
            reasons[reason] = num
    assert reasons == dict.fromkeys(
        (
            "not_json",
            "not_english",
            "contaminated",
            "duplicate_of",
            "reference_fails",
            "all_tests_shown",
        ),
        1,
    )
    problems = read_problems(corpus)
    assert len(problems) == 4
    for problem in problems:
        assert problem.reference
    table = pq.read_table(corpus / "problems-00000.parquet").to_pylist()
    for line in table:
        assert line["num_hidden_tests"] >= 10
        assert line["num_generated_tests"] == line["num_tests"] - 4
    kinds = set()
    for line in table:
        for origin in json.loads(line["origins"]):
            kinds.add(origin["kind"].partition("/")[0])
    assert kinds == {"given", "mutated"}
    for line in table:
        assert line["num_unchecked_tests"] == line["num_generated_tests"]
    tests = json.loads((corpus / "funnel.json").read_text())["figures"]["tests"]
    num_made = sum(line["num_generated_tests"] for line in table)
    assert tests == {"made_by_certificate": {"unchecked": num_made}, "guessable": []}
    card = (corpus / "README.md").read_text()
    assert "| verify | 6 | 4 | 2 |" in card
    assert "true_positive" in card
    before = contents(corpus)
    again = build(recipe)
    assert again["was_finished"]
    assert contents(corpus) == before

    missing = json.loads(
        run("build", "-c", recipe, "--json", "--dry-run", "--licence.allowed", "MIT")[0]
    )
    assert missing["missing"]["process"] == 0
    assert missing["missing"]["filter"] == missing["missing"]["verify"] == 10


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [2, pytest.param(8, marks=pytest.mark.long)])
def test_a_build_that_was_killed_ends_with_the_same_bytes(
    built: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    num_kills: int,
) -> None:
    """With two workers; the other build had one."""
    recipe = built[0]
    other = tmp_path / "other"
    generator = random.Random(1)

    def count_parts() -> int:
        return len(list(other.rglob("*.parquet")))

    for _ in range(num_kills):
        told = ["data", "build", "-c", recipe, "--output", other, "--workers", "2"]
        process = subprocess.Popen(
            [sys.executable, "-m", "microcoder", *told], start_new_session=True
        )
        goal = count_parts() + generator.randrange(1, 5)
        while count_parts() < goal and process.poll() is None:
            time.sleep(0.005)
        with suppress(ProcessLookupError):  # It may have ended before its last part.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (other / ".work" / "parts" / "collect" / ".one.partial").touch()
    (other / ".work" / "unpacked" / ".set.partial" / "deep").mkdir(parents=True)
    build(recipe, "--output", str(other))
    assert not list(other.rglob("*.partial"))
    assert contents(other) == contents(recipe.parent / "corpus")


@pytest.mark.slow
def test_three_builds_on_a_busy_machine_give_the_same_bytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reference takes about as long as the boundary between two limits, beside other work."""
    monkeypatch.setenv("MICROCODER_DECISIONS", str(tmp_path / "decisions"))
    near = "a, b = map(int, input().split())\nfor i in range(9_000_000): pass\nprint(a + b + 5)\n"
    write_rows(tmp_path / "raw.jsonl", [{**row(5), "solutions": json.dumps([near])}, row(6)])
    recipe = tmp_path / "build.toml"
    recipe.write_text(
        'name = "near"\nworkers = 1\n[generate]\nmode = "off"\n'
        "[verify]\nmin_hidden_tests = 1\n"
        f'[[sources]]\npath = "{tmp_path / "raw.jsonl"}"\nformat = "apps"\n'
    )
    outputs = []
    for number in range(3):
        output = tmp_path / str(number)
        hogs = []
        for _ in range(number):
            hogs.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        try:
            build(recipe, "--output", str(output))
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        outputs.append(contents(output))
    assert outputs[0] == outputs[1]
    assert outputs[0] == outputs[2]


@pytest.mark.slow
def test_a_source_that_is_taken_away_redoes_nothing_of_the_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decisions = tmp_path / "decisions"
    monkeypatch.setenv("MICROCODER_DECISIONS", str(decisions))
    sources = []
    for name, number in (("one", 1), ("two", 2), ("bench", 3)):
        path = tmp_path / f"{name}.jsonl"
        write_rows(path, [row(number)])
        sources.append({"path": str(path), "format": "apps", "name": name})
    fields: dict[str, Any] = {
        "name": "x",
        "output": tmp_path / "corpus",
        "benchmarks": sources[2:],
        "workers": 1,
        "generate": {"mode": "off"},
        "verify": {"min_hidden_tests": 1},
    }
    made = []
    for chosen in (sources[:2], sources[:1]):
        config = BuildConfig.model_validate({**fields, "sources": chosen})
        run_build(config, plan_build(config))
        made.append({path.name for path in decisions.rglob("*.json")})
    # One of the comparison, one of the verification, for each row.
    assert len(made[0]) == 4
    assert made[1] == made[0]


def test_an_archive_built_into_two_outputs_gives_the_same_bytes(tmp_path: Path) -> None:
    lines = [json.dumps(row(number)).encode() for number in (1, 2)]
    path = pack(
        tmp_path / "set.tar",
        {"set/raw.jsonl": b"\n".join(lines), "set/bench.jsonl": lines[1]},
        {},
    )
    source = {"path": str(path), "format": "apps", "inside": "set/raw.jsonl"}
    for output in ("one", "two"):
        benchmark = {**source, "inside": "set/bench.jsonl", "name": "bench"}
        given = {
            "output": tmp_path / output,
            "sources": [source],
            "benchmarks": [benchmark],
            "workers": 1,
        }
        config = BuildConfig.model_validate({"name": "x", **given})
        run_build(config, plan_build(config, last="generate"))
    one = contents(tmp_path / "one" / ".work" / "parts")
    two = contents(tmp_path / "two" / ".work" / "parts")
    assert one == two
    assert {name.partition("/")[0] for name in one} == {
        "collect",
        "process",
        "filter",
        "boilerplate",
        "deduplicate",
        "compare",
        "generate",
    }


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_a_build_on_ray_gives_the_same_rows(
    built: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not a cluster that another test has here, and ends.
    monkeypatch.setenv("RAY_ADDRESS", "local")
    build(built[0], "--output", str(tmp_path / "ray"), "--runner", "ray", "--workers", "2")
    __import__("ray").shutdown()
    assert contents(tmp_path / "ray") == contents(built[0].parent / "corpus")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no config; type"),
        (("-c", "nowhere.toml"), "does not exist"),
        (
            ("-c", "RECIPE", "--sources", '[{path = "gone.jsonl", format = "apps"}]'),
            "gone.jsonl does not exist",
        ),
        (
            ("-c", "RECIPE", "--sources", '[{path = "build.toml", format = "aps"}]'),
            "'aps'; did you mean apps?",
        ),
        (("-c", "RECIPE", "--output", "RECIPE"), "is a file; name a folder"),
        (
            ("-c", "RECIPE", "--output", "OTHER"),
            "README.md that is of no build and would be overwritten",
        ),
        (
            ("-c", "RECIPE", "--output", "EVALUATION"),
            "manifest.json that is of no build and would be overwritten",
        ),
        (
            ("-c", "RECIPE", "--sources", '[{path = "a", format = "apps", colums = {}}]'),
            "unknown key sources.colums",
        ),
        (
            (
                "-c",
                "RECIPE",
                "--sources",
                '[{path = "a", format = "apps"}, {path = "b", format = "apps"}]',
            ),
            "give each a `name`",
        ),
        (
            ("-c", "RECIPE", "--difficulty.pass-rates-of", "m", "--difficulty.responses", "x"),
            "x cannot be read (No such",
        ),
        *(
            (
                ("-c", "RECIPE", "--sources", f'[{{path = "a", format = "{name}"}}]'),
                "put it under [[benchmarks]]",
            )
            for name, found in FORMATS.items()
            if found.is_benchmark
        ),
    ],
)
def test_a_wrong_build_is_one_line(recipe: Path, arguments: tuple[str, ...], said: str) -> None:
    other = recipe.parent / "other"
    other.mkdir()
    (other / "README.md").write_text("of another project")
    evaluation = recipe.parent / "evaluation"
    evaluation.mkdir()
    (evaluation / "manifest.json").write_text("{}")
    given = []
    for one in arguments:
        given.append(
            str({"RECIPE": recipe, "OTHER": other, "EVALUATION": evaluation}.get(one, one))
        )
    _, error = run("build", *given, expect=2)
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_a_stage_of_its_own_ends_there_and_no_other_build_is_at_work(recipe: Path) -> None:
    folder = recipe.parent / "corpus" / ".work"
    folder.mkdir(parents=True)
    with hold_lock(folder / "lock", DataError("held")):
        assert (
            "another build is at work"
            in run("build", "--until", "collect", "-c", recipe, expect=2)[1]
        )
    done = json.loads(run("build", "--until", "process", "-c", recipe, "--json")[0])
    assert [step["step"] for step in done["steps"]] == ["collect", "process"]
    assert done["corpus"] is None
    assert not (recipe.parent / "corpus" / "manifest.json").exists()


_IMPORTING = """
import sys
from importlib import import_module
from pkgutil import iter_modules
for name in sys.argv[1:]:
    inner = iter_modules(getattr(import_module(name), "__path__", ()), f"{name}.")
    # What is a program of its own is imported by nothing.
    names = [one.name for one in inner if "data" in name]
    names = [path for path in names if not path.endswith("behaviour.sandboxed")]
    list(map(import_module, names))
print(*sys.modules)
"""


def test_a_steps_key_holds_the_code_that_decides_it(recipe: Path) -> None:
    offered = {"microcoder", "microcoder.lazy", "microcoder.data", "microcoder.judge"}
    known: set[str] = set()
    for step in (collect_step(), *plan_build(load_config(BuildConfig, [recipe])).steps):
        # Its input's key holds that of the steps before it.
        known |= {*step.code}
        done = subprocess.run(
            [sys.executable, "-c", _IMPORTING, *step.code],
            capture_output=True,
            text=True,
            check=True,
        )
        imported = set()
        for name in done.stdout.split():
            if name.partition(".")[0] == "microcoder":
                imported.add(name)
        ours = imported - offered
        for name in ours:
            assert any(f"{name}.".startswith(f"{one}.") for one in known), step.name


def test_until_filter_runs_no_program(recipe: Path) -> None:
    config = load_config(BuildConfig, [recipe])
    names = [step.name for step in plan_build(config, last="filter").steps]
    assert names == ["process", "filter", "boilerplate", "deduplicate"]
    whole = [step.name for step in plan_build(config).steps]
    assert whole == [*names, "compare", "generate", "verify"]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_recipes_are_valid(path: Path) -> None:
    config = load_config(BuildConfig, [path])
    assert {source.format for source in (*config.sources, *config.benchmarks)} <= FORMATS.keys()


def pack(path: Path, files: dict[str, bytes], links: dict[str, str]) -> Path:
    """Write an archive of some files and symbolic links, in the form that its name says."""
    path.parent.mkdir(exist_ok=True)
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files.items():
                packed.writestr(name.replace("/", "\\", 1), content)
            for name, target in links.items():
                link = zipfile.ZipInfo(name)
                link.external_attr = 0o120777 << 16
                packed.writestr(link, target)
        return path
    plain = path.with_suffix("") if path.suffix == ".zst" else path
    with tarfile.open(plain, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, content in (files | dict.fromkeys(links, b"")).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if name in links:
                member.type, member.linkname = tarfile.SYMTYPE, links[name]
            archive.addfile(member, BytesIO(content))
    if path.suffix == ".zst":
        with pyarrow.output_stream(str(path), compression="zstd") as stream:
            stream.write(plain.read_bytes())
    return path


FORMS = ("tar", "tar.gz", "tar.zst", "zip")
PACKAGE = {
    "problem.yaml": b"name: x",
    "problem_statement/problem.md": b"Add.",
    "data/1.in": b"1\n",
    "data/1.ans": b"1\n",
}


def test_packages_have_the_names_of_their_archives(tmp_path: Path) -> None:
    # One at the root of an archive, one in a folder whose name is in Latin-1.
    pack(tmp_path / "all" / "first.ZIP", PACKAGE, {})
    pack(
        tmp_path / "all" / "set.tar",
        {f"p\udce5/{name}": content for name, content in PACKAGE.items()},
        {},
    )
    for path, names in (
        ("all", ["first", "set/på"]),
        ("all/first.ZIP", ["first"]),
        ("all/set.tar", ["på"]),
    ):
        given = SourceSettings(path=str(tmp_path / path), format="kattis")
        (source,) = unpack_sources([given], into=tmp_path / "unpacked")
        rows = list(collect_source(open_settings(source)))
        expected = [(f"kattis/{name}", Candidate) for name in names]
        assert [(row.id, type(row)) for row in rows] == expected


@pytest.mark.parametrize("form", FORMS)
def test_an_archive_is_a_source_and_its_links_are_left_out(
    tmp_path: Path,
    form: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = (json.dumps(row(1)) + "\n").encode()
    links = {"set/README": "raw.jsonl", "set/out": "/etc", "set/deep": "../.."}
    path = pack(tmp_path / f"set.{form}", {"set/raw.jsonl": rows}, links)
    source = {"path": str(path), "format": "apps", "inside": "set/raw.jsonl"}
    config = BuildConfig.model_validate(
        {"name": "x", "output": tmp_path / "corpus", "sources": [source]}
    )
    assert plan_build(config, last="collect").num_rows == 1
    assert [path.name for path in (tmp_path / "corpus").rglob("set/set/*")] == ["raw.jsonl"]
    assert "3 links were left out" in caplog.text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"../outside.jsonl": b"{}"}, "is not a plain file or folder inside the archive"),
        ({"set/../../outside.jsonl": b"{}"}, "is not a plain file or folder inside the archive"),
        ({"/outside.jsonl": b"{}"}, "is not a plain file or folder inside the archive"),
        (
            {"bomb.jsonl": bytes(3 << 20)},
            "unpack to more than 1,048,576; if that is right, unpack it by hand",
        ),
        ({f"{number}.jsonl": b"" for number in range(9)}, "more than 8 members"),
        ({"n" * (2 << 20): b""}, "bytes of a member before its content"),
    ],
    ids=["above", "inside", "absolute", "bomb", "members", "name"],
)
def test_a_hostile_archive_is_refused_and_leaves_nothing(
    tmp_path: Path,
    form: str,
    files: dict[str, bytes],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rowfiles, "MOST_MEMBERS", 8)
    monkeypatch.setattr(rowfiles, "_ALWAYS_ALLOWED_BYTES", 1 << 20)
    if (form == "tar" and "bomb.jsonl" in files) or (
        form == "zip" and max(map(len, files)) > 1 << 16
    ):
        pytest.skip("what is not packed is no bomb, and no name in a zip is so long")
    path = pack(tmp_path / f"set.{form}", files, {})
    with pytest.raises(DataError, match=said):
        unpack(path, tmp_path / "unpacked" / "set", aside=tmp_path / "unpacked")
    assert list((tmp_path / "unpacked").iterdir()) == []
    assert not list(tmp_path.rglob("outside.jsonl"))
    # One that is damaged.
    path = pack(tmp_path / f"set.{form}", {"a.jsonl": random.Random(1).randbytes(1 << 16)}, {})
    path.write_bytes(path.read_bytes()[: 1 << 15])
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(path, tmp_path / "unpacked" / "set", aside=tmp_path / "unpacked")


_ON_BAD_DISKS = """
import sys
from pathlib import Path
from microcoder.cli import main
from microcoder.judge.sandbox.kernel import CLONE_NEWNS, mount, unshare
unshare(CLONE_NEWNS)
mount("none", "/", None, 16384 | 1 << 18)
for flags, options in ((1, "size=1m"), (0, "size=100k")):
    mount("tmpfs", sys.argv[2], "tmpfs", flags, options)
    try: main(["data", "build", "-c", sys.argv[1], "--output", sys.argv[2] + "/out"])
    except SystemExit as ended: print(ended.code)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a disk")
def test_a_disk_that_takes_nothing_is_one_line(recipe: Path, tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    command = [sys.executable, "-c", _ON_BAD_DISKS, str(recipe), str(place)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout == "2\n2\n", result.stderr
    assert "Traceback" not in result.stderr
    # Where it was written last is another place at times: a part, or a store of SQLite.
    read_only, full = (
        line for line in result.stderr.splitlines() if line.startswith("microcoder: error: ")
    )
    assert f"Read-only file system ({place}/" in read_only
    assert "; make it writable or choose" in read_only
    assert "No space left on device" in full
    assert "; free some space and type the same command again to resume" in full


FINE = "Given two numbers, print the sum of both of them on one line."


def test_a_row_that_our_code_fails_on_is_rejected_and_the_others_go_on(tmp_path: Path) -> None:
    rows = [Candidate(id=f"a/{n}", dataset="a", statement_found=FINE) for n in range(3)]
    fields: dict[str, Any] = {**dict(rows[1]), "statement_found": 7}  # no format may hand this on
    rows[1] = Candidate.model_construct(**fields)
    resources = Resources(
        work=tmp_path,
        decisions=(),
        benchmarks=(),
        compared="",
        responses=None,
        attempts=None,
        judge=JudgeOptions(),
    )
    first, second, third = open_process(ArrangeSettings(), ExitStack(), resources)(rows)
    assert isinstance(first, Candidate)
    assert isinstance(third, Candidate)
    assert isinstance(second, Rejection)
    assert second.stage == "process"
    assert second.reason == "row_fault"
    assert re.match(r"\w+Error: .*int", second.detail)
    assert second.candidate == rows[1]


def test_a_benchmark_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bench.jsonl").write_text('{"text": "Print 1."}\n{"text": "Print 2."}\n')
    source = SourceSettings(path=str(tmp_path / "bench.jsonl"), format="mbpp", name="bench")
    with pytest.raises(
        DataError,
        match=r"benchmark 'bench' .*: none of 2 rows is of the format 'mbpp'; the first: ",
    ):
        read_benchmark_problems([source])


def test_the_table_of_reasons_is_up_to_date() -> None:
    reasons = (
        (RECIPES.parents[1] / "docs" / "dataset-audit.md")
        .read_text(encoding="utf-8")
        .partition("\n## Why a row was turned away\n")[2]
    )
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", reasons.partition("\n## ")[0], re.MULTILINE)
    assert rows == [*row_reasons.items(), *REASONS.items()]
