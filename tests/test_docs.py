"""Pages are what the code says now: generated ones, links, command lines, keys of TOML blocks."""

import json
import re
import runpy
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError, MissingArgumentError
from figures import FIGURES, FIRST_PAGE
from pydantic import BaseModel

from microcoder import Problem
from microcoder.cli import build_app
from microcoder.data.corpus.settings import BuildConfig
from microcoder.eval import EvalConfig
from microcoder.eval.config import DistillConfig
from microcoder.judge.core.config import dotted_keys
from microcoder.judge.languages.definition import Language
from microcoder.lab.studies.design import Study
from microcoder.replay.settings import ReplayConfig
from microcoder.train.recipe.recipe import TrainConfig
from tests.doc_pages import (
    DOCS,
    PAGES,
    ROOT,
    anchors_of,
    blocks_of,
    links_of,
    run_here,
    type_in,
)

SCHEMAS: dict[str, type[BaseModel]] = {
    "train": TrainConfig,
    "eval": EvalConfig,
    "distill": DistillConfig,
    "data": BuildConfig,
    "replay": ReplayConfig,
    "study": Study,
    "language": Language,
}
KEYS = {name: set(dotted_keys(schema)) for name, schema in SCHEMAS.items()}
# What came out of earlier versions stands as it came; the generated page has placeholders.
CURRENT = [page for page in PAGES if page.name not in ("CHANGELOG.md", "commands.md")]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    ["docs/reference.md", "docs/commands.md", "docs/costs.md", "docs/results.md", "README.md"],
)
def test_generated_pages_are_up_to_date(name: str) -> None:
    generated = runpy.run_path(str(DOCS / "generate.py"))["PAGES"][name]()
    assert (ROOT / name).read_text(encoding="utf-8") == generated, "run: make docs"


def test_a_number_that_counts_what_the_code_holds_is_read_from_it() -> None:
    generated = runpy.run_path(str(DOCS / "generate.py"))
    marked = []
    for page in PAGES:
        if "<!-- count: " in text_of(page):
            marked.append(page)
    assert len(marked) >= 3
    stale = []
    for page in marked:
        if generated["fill_counts"](text_of(page)) != text_of(page):
            stale.append(name_of(page))
    assert stale == [], "run: make docs"
    assert generated["fill_counts"]("7<!-- count: formats --> formats").partition("<")[0] != "7"
    with pytest.raises(KeyError):
        generated["fill_counts"]("7<!-- count: nothing known -->")


def test_the_first_pages_program_prints_what_the_page_shows(tmp_path: Path) -> None:
    program, printed = blocks_of(text_of(ROOT / "README.md"))
    (tmp_path / "first.py").write_text(program.text, encoding="utf-8")
    assert type_in("python first.py", tmp_path) == printed.text


def test_effects_in_prose_are_read_from_the_pages_of_their_studies() -> None:
    """An interval that is typed by hand stays when its study is judged anew."""
    interval = re.compile(r"\[[+-]?[\d.]+, [+-]?[\d.]+\]")
    for page in (ROOT / "README.md", DOCS / "insights" / "what-we-learnt.md"):
        by_hand = re.sub(r"(?s)<!-- effect: \w+ -->.*?<!-- end -->", "", text_of(page))
        assert interval.findall(by_hand) == [], page.name
    generated = runpy.run_path(str(DOCS / "generate.py"))
    told = generated["fill_counts"](
        "<!-- effect: X11 -->old<!-- end -->, <!-- verdict: X11 --><!-- end -->"
    )
    page = text_of(DOCS / "insights" / "kl_and_clip.md")
    (row,) = re.findall(r"(?m)^- \*\*X11\*\* (.*)$", page)
    effect, verdict = re.findall(r": X11 -->(.*?)<!-- end", told)
    assert effect in row
    assert verdict.partition(":")[0] == row.partition(",")[0]


FORMAT_COUNT = re.compile(
    r"(?i)\b(\d\d)\b(?!<!--) (?:\w+ )?formats\b|read_problem`? knows (\d+)\b(?!<!--)"
)
"""A count of formats without a mark behind it, which nothing would keep true."""


def test_formats_are_counted_nowhere_without_a_mark() -> None:
    found = {name_of(page): FORMAT_COUNT.findall(text_of(page)) for page in CURRENT}
    hits_of = {}
    for name, hits in found.items():
        if hits:
            hits_of[name] = hits
    assert hits_of == {}


def test_links_lead_somewhere_and_no_page_holds_the_marks_of_a_merge() -> None:
    wrong = []
    for page in PAGES:
        for link in links_of(text_of(page)):
            if is_dead(link, page):
                wrong.append(f"{name_of(page)}: {link}")
    assert not wrong
    for page in PAGES:
        assert not re.search(r"^(<{7}|>{7}) |^={7}$", text_of(page), re.MULTILINE)


def test_little_is_to_be_read_before_a_change() -> None:
    rows = []
    for line in text_of(DOCS / "changing.md").splitlines():
        if "../src/" in line:
            rows.append(line.split("|")[2])
    lines = {}
    for row in rows:
        lines[row] = sum(len(text_of(DOCS / link).splitlines()) for link in links_of(row))
    assert len(rows) >= 10
    too_long = {}
    for row, count in lines.items():
        if count > 600:
            too_long[row] = count
    assert not too_long


def test_files_of_the_repository_that_are_named_exist() -> None:
    named = re.compile(r"(?<![\w/])(?:benchmarks|recipes|examples|studies|containers)/[\w./-]*\w")
    wrong = []
    for page in CURRENT:
        for name in named.findall(text_of(page)):
            if not any((base / name).exists() for base in (ROOT, page.parent)):
                wrong.append(f"{name_of(page)}: {name}")
    assert not wrong


def test_command_lines_parse() -> None:
    wrong = []
    for page in CURRENT:
        for words, whole in commands_of(text_of(page)):
            if fault := fault_of(words, whole):
                wrong.append(f"{name_of(page)}: {' '.join(words)}: {fault}")
    assert not wrong


def test_make_has_the_targets_that_pages_name() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.M))
    named = re.compile(r"(?:^ {4}|`|\$ |^)make (?:\w+=\S* )*([a-z-]+)(?=\s+#|[ `\n]|$)", re.M)
    wrong = []
    for page in CURRENT:
        for name in named.findall(text_of(page)):
            if name not in targets:
                wrong.append(f"{name_of(page)}: {name}")
    assert not wrong


def test_what_pages_of_other_programs_install_is_what_their_tests_install() -> None:
    """By name and extras; ours comes from a checkout, since no index has it."""
    tested = "".join(text_of(path) for path in ROOT.glob("tests/integrations/requirements-*.txt"))
    pinned = {re.split("[=<>]", line)[0] for line in tested.splitlines()}
    lines = re.findall(r"^pip install ([^#\n]+)", text_of(DOCS / "integrations.md"), re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        ours, *others = shlex.split(line)
        assert ours == ".", f"pip install {line}"
        missing = {re.split("[=<>]", other)[0] for other in others} - pinned
        assert not missing, f"the page installs {missing}, and no test does"


def test_the_demo_trains_and_compares_three_masks() -> None:
    """README and the recipe's page say so; a merge once left one."""
    made = subprocess.run(
        ["make", "-n", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = []
    for line in made.splitlines():
        if "/microcoder " in line:
            lines.append(shlex.split(line.partition(" >")[0]))
    commands = []
    for words in lines:
        if words[0].endswith("/microcoder"):
            commands.append(words[1:])
    assert [fault_of(words, True) for words in commands] == [""] * 4
    *arms, report = commands
    same = ["train", "-c", "recipes/micro/masks.toml", "--algorithm.masking.kind"]
    runs = {"all": "runs/demo", "none": "runs/demo-none", "conditional": "runs/demo-conditional"}
    assert arms == [[*same, kind, "--run-dir", run] for kind, run in runs.items()]
    assert report == [
        "report",
        "runs/demo",
        "--against",
        "runs/demo-conditional",
        "--against",
        "runs/demo-none",
    ]


def test_every_benchmark_has_a_figure_and_every_command_can_be_typed() -> None:
    """Benchmarks know the flags; a module that says how it is typed is a benchmark."""
    assert len(FIRST_PAGE) == 10
    told = []
    for row in (*FIGURES.values(), *FIRST_PAGE):
        told.extend(re.findall(r"`([^`]+)`", row.command))
    runs = []
    for row in FIGURES.values():
        for part in row.run.split("; "):
            if part.startswith("python benchmarks/"):
                runs.append(part)
    for command in (*told, *runs):
        assert is_benchmark_or_verb(command)
    scripts = {}
    for path in (ROOT / "benchmarks").glob("*.py"):
        scripts[f"benchmarks/{path.name}"] = text_of(path)
    # One writes the page, one moves weights, one waits for a GPU, one for a model, one for a run.
    without_figure = {"figures.py", "pieces.py", "gpu_real.py", "cpu_step.py", "replay.py"}
    typed = set()
    for name, text in scripts.items():
        if f"python {name}" in text and name.removeprefix("benchmarks/") not in without_figure:
            typed.add(name)
    assert len(typed) >= 12
    assert not typed - {command.partition(" ")[0] for command in told}


def is_benchmark_or_verb(command: str) -> bool:
    """Whether a command is a benchmark with flags that it has, tests that exist,
    a target or a verb.
    """
    words = command.removeprefix("python ").split()
    flags = set()
    for word in words:
        if word.startswith("--"):
            flags.add(word.partition("=")[0])
    if words[0] in ("make", "microcoder"):
        return True  # the tests of targets and of command lines say more
    path = ROOT / words[1 if words[0] == "pytest" else 0]
    if words[0] == "pytest" or path.is_dir() or not path.exists():
        return path.exists()
    return all(f'"{flag}"' in path.read_text(encoding="utf-8") for flag in flags)


# Tutorials and docs/integrations.md have tests of their own, which run each of their blocks.
GIVEN: dict[str, dict[str, Any]] = {
    "judging.md": {},
    "rows.md": {
        "code": "print(3)",
        "row": {"input_output": '{"inputs": ["1 2"], "outputs": ["3"]}'},
    },
    "prompts-rewards.md": {},
    "interactive.md": {},
}
NOT_RUN = {
    "trainers.md": "run by tests/test_trainers_page.py, as each trainer calls them",
    "serving.md": "asks another machine's service, and a Ray cluster; tests/judge has both",
    "dataset.md": "downloads from the Hub, and is a file of its own",
    "replay.md": "replays runs that a reader has; tests/replay has some",
}


def test_python_blocks_run() -> None:
    found = {}
    for page in DOCS.glob("*.md"):
        if page.name != "integrations.md":
            found[page] = [
                block.text for block in blocks_of(text_of(page)) if block.language == "python"
            ]
    with_blocks = set()
    for page, blocks in found.items():
        if blocks:
            with_blocks.add(page.name)
    assert with_blocks == GIVEN.keys() | NOT_RUN.keys()
    names: dict[str, dict[str, Any]] = {name: dict(given) for name, given in GIVEN.items()}
    for page, blocks in found.items():
        for text in blocks if page.name in GIVEN else ():
            exec(text, names[page.name])
    assert [verdict.outcome for verdict in names["judging.md"]["verdicts"]] == [
        "accepted",
        "wrong_answer",
    ]
    assert names["rows.md"]["verdict"].outcome == "accepted"
    assert names["interactive.md"]["verdict"].outcome == "accepted"


def test_commands_that_judge_files_run(tmp_path: Path) -> None:
    """Those of docs/judging.md, typed as they stand beside files of the names that they have."""
    blocks = blocks_of(text_of(DOCS / "judging.md"))
    row = json.loads(next(block.text for block in blocks if block.language == "json"))
    answer = {"problem_id": "a", "response": f"Here it is:\n```python\n{row['code']}\n```\n"}
    problem = {"id": "a", "tests": row["tests"]}
    said = {"model_output": answer["response"], "reward": 1.0}
    rollout = {"uid": "a", "cases": row["tests"], **said}
    for name, line in (
        ("programs", row),
        ("problems", problem),
        ("answers", answer),
        ("rollouts", rollout),
    ):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    for name in ("time_limit_seconds", "memory_limit_mib"):
        assert f"`{name}` ({Problem.model_fields[name].default:g})" in text_of(DOCS / "judging.md")
    commands = []
    for block in blocks:
        if block.language == "console":
            commands.append(block.text)
    assert len(commands) == 4
    for command in commands:
        assert "accepted" in run_here(command, tmp_path)
    assert (
        json.loads((tmp_path / "verdicts.jsonl").read_text().splitlines()[-1])["verdict"]
        == "accepted"
    )


def test_keys_of_toml_blocks_exist() -> None:
    wrong = []
    for page in CURRENT:
        for block in blocks_of(text_of(page)):
            if block.language == "toml":
                table = tomllib.loads(block.text)
                # Levels, scales and measurements of a study are named by whoever writes it.
                free = []
                for name in ("levels", "scales", "measurements"):
                    if name in table:
                        free.append(name)
                given = set(keys_of(table | {name: list(table[name].values()) for name in free}))
                unknown = {}
                for name in KEYS:
                    unknown_keys = []
                    for key in given:
                        if not is_known(key, KEYS[name]):
                            unknown_keys.append(key)
                    unknown[name] = sorted(unknown_keys)
                if all(unknown.values()):
                    wrong.append(f"{name_of(page)}: {block.text}\n{unknown}")
    assert not wrong


def is_dead(link: str, page: Path) -> bool:
    """Whether a link of a page leads to no file, or to no heading of it."""
    target, _, anchor = link.partition("#")
    if "://" in link or link.startswith("mailto:"):
        return False
    path = page.parent / target if target else page
    is_page = path.suffix == ".md" and path.is_file()
    return not path.exists() or bool(anchor and is_page and anchor not in anchors_of(text_of(path)))


def commands_of(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words of each command line, and whether it is one to be typed as it stands."""
    texts = []
    for block in blocks_of(text):
        if block.language in ("", "console", "bash"):
            texts.append(block.text)
    code = "\n".join(texts)
    indented = "\n".join(
        re.findall(r"^    (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    )
    for line in re.sub(r"\\\n\s*", " ", f"{code}\n{indented}").splitlines():
        if found := re.match(r"(?:\$ )?(?:\w+=\S+ )*microcoder (.*)", line):
            yield words_of(found[1]), True
    for found in re.findall(r"`microcoder ([^`]+)`", text):
        yield words_of(" ".join(found.split())), False


def words_of(line: str) -> list[str]:
    words = shlex.split(re.split(r" [|>&;] | && ", line)[0], comments=True)
    # What may be left out stands in brackets.
    literal_words = []
    for word in words:
        if not (word in ("...", "…") or word.startswith("[") or word.endswith("]")):
            literal_words.append(word)
    return literal_words


def fault_of(words: list[str], whole: bool) -> str:
    """Return what is wrong with a command line, as the command line would say; or nothing."""
    app = build_app(words)
    if not app.parse_commands(words)[0]:
        return "no such command"
    try:
        _, bound, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
    except MissingArgumentError as error:
        if whole and "-c" not in words:
            return str(error)
        return ""
    except CycloptsError as error:
        return str(error)
    flags = []
    for word in bound.args:
        if str(word).startswith("--"):
            flags.append(word[2:].partition("=")[0].replace("-", "_"))
    unknown = []
    for flag in flags:
        if not is_known(flag, KEYS[words[0]]):
            unknown.append(flag)
    return ", ".join(unknown)


def keys_of(table: Any, prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        inner = value if isinstance(value, list) else [value]
        if any(isinstance(one, dict) for one in inner):
            for one in inner:
                yield from keys_of(one, f"{prefix}{name}.")
        else:
            yield prefix + name


def is_known(key: str, known: set[str]) -> bool:
    """Whether a key is one, or inside one that holds anything,
    or a table that may be named alone.
    """
    words = key.split(".")
    return (
        any(".".join(words[:end]) in known for end in range(1, len(words) + 1))
        or f"{key}.kind" in known
    )
