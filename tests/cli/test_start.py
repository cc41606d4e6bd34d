"""What a start of the command line imports, and what it says about its verbs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from microcoder.cli import CLOSED_PIPE, VERBS, build_app, main

NEVER = {
    "aiohttp",
    "asyncio",
    "datasets",
    "fastapi",
    "httpx",
    "huggingface_hub",
    "jinja2",
    "matplotlib",
    "multiprocessing",
    "numpy",
    "openai",
    "pandas",
    "pyarrow",
    "ray",
    "sklearn",
    "starlette",
    "torch",
    "transformers",
    "trl",
    "uvicorn",
    "verl",
    "yaml",
}
# What renders markup, for pages of help only.
MARKUP = {"markdown_it", "pygments"}


def modules_after(program: str, *arguments: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a program."""
    shown = f"try:\n    {program}\nfinally:\n    import sys; print('\\0', *sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", shown, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0
    assert result.stderr == ""
    return set(result.stdout.rpartition("\0")[2].split())


def modules_of_command(*arguments: str) -> set[str]:
    return modules_after(f"from microcoder.cli import main; main({list(arguments)!r})")


def test_the_package_imports_nothing_before_a_name_is_asked_for() -> None:
    modules = modules_after("import microcoder")
    ours = set()
    for name in modules:
        if name.startswith("microcoder"):
            ours.add(name)
    assert ours == {
        "microcoder",
        "microcoder.lazy",
    }
    assert "pydantic" not in modules
    assert "pydantic" in modules_after("from microcoder import Problem")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]], ids=" ".join)
def test_the_list_of_verbs_imports_no_verb(arguments: list[str]) -> None:
    modules = modules_of_command(*arguments)
    ours = set()
    for name in modules:
        if name.startswith("microcoder."):
            ours.add(name)
    assert ours == {
        "microcoder.cli",
        "microcoder.lazy",
        "microcoder.judge",
        "microcoder.judge.core",
        "microcoder.judge.core.errors",
    }
    assert not modules & (NEVER | MARKUP | {"pydantic"})


def test_help_of_a_verb_imports_no_other_verb() -> None:
    modules = modules_of_command("judge", "--help")
    ours = set()
    for name in modules:
        if name.startswith("microcoder.cli."):
            ours.add(name)
    assert ours == {
        "microcoder.cli.display",
        "microcoder.cli.judge",
        "microcoder.cli.judge_options",
    }
    assert not modules & NEVER


def test_judging_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    submissions = tmp_path / "submissions.jsonl"
    submissions.write_text(
        '{"id": "echo", "code": "print(input())", "tests": [{"input": "1", "output": "1"}]}\n'
    )
    modules = modules_after(
        "import contextlib, io\n"
        "    with contextlib.redirect_stdout(io.StringIO()), "
        "contextlib.redirect_stderr(io.StringIO()):\n"
        "        from microcoder.cli import main\n"
        f"        main(['judge', {str(submissions)!r}, '-o', {str(tmp_path / 'verdicts.jsonl')!r}])"
    )
    assert (tmp_path / "verdicts.jsonl").exists()
    assert not modules & (NEVER | MARKUP)


@pytest.mark.parametrize("verb", VERBS)
def test_the_line_in_the_list_is_the_verbs_own(verb: str) -> None:
    first_paragraph = build_app([verb])[verb].help.strip().split("\n\n")[0]
    assert " ".join(first_paragraph.split()) == VERBS[verb]


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]], ids=" ".join)
def test_help_ends_quietly_where_its_reader_has_gone(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "microcoder", *arguments]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert done.returncode == CLOSED_PIPE
    assert done.stderr == b""


MISTAKES = {
    "jugde x": (
        'Unknown command "jugde". Did you mean "judge"? Available commands: judge, init, train, '
    ),
    "data biuld": 'Did you mean "build"? Available commands: audit, build, ',
    "judge": "nothing to judge; type: microcoder judge FILE",
    "judge --worker 2": "Did you mean --workers? Type",
    "judge x.jsonl -o y.jsonl --workers": "parameter --workers requires an argument.",
    "judge none.jsonl -o out.jsonl": "none.jsonl does not exist",
    "serve --port x": 'Invalid value for --port: unable to convert "x" into int.',
    "init": "parameter --model requires an argument.",
    "report run extra": "Unused Tokens: ['extra']. Type `microcoder report --help`",
    "report run --pass-at 5": "--pass-at is for evaluations, and run is none",
    "report {folder}": (
        "manifest.json does not exist; pass a folder that `microcoder train` or `eval` wrote"
    ),
    f"view {'y' * 300}": "File name too long (yyy",
    "train": "no recipe; type: microcoder train -c RECIPE",
    "train recipe.toml": "no recipe; type: microcoder train -c recipe.toml",
    "train -c micr": "recipe micr does not exist; did you mean micro?",
    "train -c x.toml --dryrun": "unknown option --dryrun; did you mean --dry-run?",
    "train -c micro --algorithm.masking.roh 0.3": "did you mean algorithm.masking.rho",
    "train -c micro --num-steps": "--num-steps has no value",
    "train -c micro num_steps=3": "keys of the config are given as --dotted.key VALUE",
    "train -c micro --batch.ppo_mini_batch_size 48": "try 32",
    "train -c {file}": "model is missing; add [model]; problems is missing; add [problems]",
    "eval": "nothing to evaluate; type: microcoder eval -c CONFIG.toml",
    "eval --generation.model m": "benchmark",
    "eval --benchmark.path none.jsonl --generation.model m": "none.jsonl does not exist",
    "eval --benchmark.path x --generation.modle m": "did you mean generation.model?",
    "eval --benchmark.path x --generation.kind endpoint --generation.base_url x": "base_url",
    "audit-judge --judge nosuch": "unknown judge 'nosuch'; use one of microcoder, ",
    "audit-judge --judge subproces": "did you mean subprocess?",
    "audit-judge --judge lcb": (
        "lcb takes module:attribute or file.py:function; type --judge lcb=..."
    ),
    "audit-judge --judge no/such.py:rllm=x": "there is no no/such.py; give the path of a file",
    "audit-judge --judge function=mine.py": (
        "function takes module:attribute or file.py:function; type"
    ),
    "audit-judge --judge subprocess=here": "subprocess takes no path; type --judge subprocess",
    "audit-judge --most 0": 'Invalid value "0" for --most. Must be > 0.',
    "audit-judge --python /no/python": "does not exist; pass an interpreter",
    "audit-judge --out {file}": "empty.toml); make it writable or choose another place",
    "view": "no run is named, and runs holds none; type: microcoder view",
    "view nowhere": "nowhere is not a run",
    "view run --problems nofile": "--problems nofile does not exist; check the path",
    "study": "name one study, or pass --all",
    "study 001 --jobs -2": 'Invalid value "-2" for --jobs. Must be > 0.',
    "train -c micro --dry-run --gpu-memory-gib -4": (
        'Invalid value "-4.0" for --gpu-memory-gib. Must be > 0.'
    ),
}
"""Of every verb: what is typed, and what stands in the line that comes of it."""


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_with_what_to_type(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"file": tmp_path / "empty.toml", "folder": tmp_path / "folder"}
    places["file"].touch()
    places["folder"].mkdir()
    with pytest.raises(SystemExit) as stop:
        main(command.format(**places).split())
    said = capsys.readouterr()
    assert stop.value.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert MISTAKES[command] in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.toml", "folder"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    type_it = [sys.executable, "-m", "microcoder", "--install-completion"]
    subprocess.run(type_it, env=home, check=True, capture_output=True)
    (script,) = [path for path in tmp_path.rglob("microcoder") if path.is_file()]
    asked = (
        f"source {script}\n"
        "COMP_WORDS=(microcoder au); COMP_CWORD=1; _microcoder microcoder au microcoder\n"
        'echo "${COMPREPLY[@]}"\n'
        "COMP_WORDS=(microcoder judge --ov); COMP_CWORD=2; _microcoder microcoder --ov judge\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["audit-judge", "--overwrite"]
