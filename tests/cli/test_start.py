"""What a start of the command line imports, and what it says about its verbs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from microcoder.cli import VERBS, build_app, main

NEVER = {
    "aiohttp", "asyncio", "datasets", "fastapi", "httpx", "huggingface_hub", "jinja2", "matplotlib",
    "multiprocessing", "numpy", "openai", "pandas", "pyarrow", "ray", "sklearn", "starlette", "torch", "transformers",
    "trl", "uvicorn", "verl", "yaml",
}  # fmt: skip
# What renders markup and bars: for pages of help and terminals only.
MARKUP = {"markdown_it", "pygments"}
BARS = {"rich.progress", "rich.console"}


def modules_after(program: str, *arguments: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a program."""
    shown = f"try:\n    {program}\nfinally:\n    import sys; print('\\0', *sys.modules)"
    result = subprocess.run([sys.executable, "-c", shown, *arguments], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    return set(result.stdout.rpartition("\0")[2].split())


def modules_of_command(*arguments: str) -> set[str]:
    return modules_after(f"from microcoder.cli import main; main({list(arguments)!r})")


def test_the_package_imports_nothing_before_a_name_is_asked_for() -> None:
    modules = modules_after("import microcoder")
    assert {name for name in modules if name.startswith("microcoder")} == {"microcoder", "microcoder.facade"}
    assert "pydantic" not in modules
    assert "pydantic" in modules_after("from microcoder import Problem")


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import microcoder

    with pytest.raises(AttributeError, match="no attribute 'Problems'"):
        microcoder.Problems  # noqa: B018  # pyrefly: ignore
    assert set(microcoder.__all__) <= set(dir(microcoder))


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]], ids=" ".join)
def test_the_list_of_verbs_imports_no_verb(arguments: list[str]) -> None:
    modules = modules_of_command(*arguments)
    assert {name for name in modules if name.startswith("microcoder.")} == {
        "microcoder.cli",
        "microcoder.facade",
        "microcoder.judge",
        "microcoder.judge.core",
        "microcoder.judge.core.errors",
    }
    assert not modules & (NEVER | MARKUP | {"pydantic"})


def test_help_of_a_verb_imports_no_other_verb() -> None:
    modules = modules_of_command("judge", "--help")
    assert {name for name in modules if name.startswith("microcoder.cli.")} == {
        "microcoder.cli.display",
        "microcoder.cli.judge",
        "microcoder.cli.judge_options",
        "microcoder.cli.options",
    }
    assert not modules & NEVER


def test_judging_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    submissions = tmp_path / "submissions.jsonl"
    submissions.write_text('{"id": "echo", "code": "print(input())", "tests": [{"input": "1", "output": "1"}]}\n')
    modules = modules_after(
        "import contextlib, io\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        "        from microcoder.cli import main\n"
        f"        main(['judge', {str(submissions)!r}, '-o', {str(tmp_path / 'verdicts.jsonl')!r}])"
    )
    assert (tmp_path / "verdicts.jsonl").exists()
    assert not modules & (NEVER | MARKUP | BARS)


@pytest.mark.parametrize("verb", VERBS)
def test_the_line_in_the_list_is_the_verbs_own(verb: str) -> None:
    own = build_app([verb])[verb].help
    assert own.strip().splitlines()[0] == VERBS[verb][1]


def test_an_unknown_command_names_all_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["jugde", "x"])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert f"unknown command 'jugde'; did you mean judge? use one of {', '.join(VERBS)}. " in message
    with pytest.raises(SystemExit):
        main(["data", "biuld"])
    assert "did you mean build? use one of audit, build, " in capsys.readouterr().err


def test_a_suggestion_ends_in_one_mark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["judge", "--worker", "2"])
    assert "Did you mean --workers? Type" in capsys.readouterr().err


def test_the_default_folder_of_a_run_can_be_read_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "--help"])
    assert "names: runs/micro-dapo for" in " ".join(capsys.readouterr().out.split())


def test_a_shell_can_complete_every_verb(tmp_path: Path) -> None:
    script = tmp_path / "microcoder.bash"
    # It adds a line to the start-up file of the shell.
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "microcoder", "--install-completion", "--shell", "bash", "--output", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert result.returncode == 0, result.stderr
    written = script.read_text()
    assert all(verb in written for verb in VERBS)
    assert "--overwrite" in written


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("train --help-all", ("--algorithm.masking.rho = ", "[rollout]")),
        ("eval --help-all", ("--generation.model", "[benchmark]")),
        ("eval", ("--generation.model", "[benchmark]")),
        ("data build", ("--filter.", "[verify]")),
    ],
)
def test_help_lists_the_keys_by_table(command: str, keys: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    main([*command.split(), "--help"])
    text = capsys.readouterr().out
    assert all(key in text for key in keys)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("judge", "nothing to judge; type: microcoder judge SUBMISSIONS.jsonl -o VERDICTS.jsonl"),
        ("judge x.jsonl -o y.jsonl --workers", "--workers needs a value."),
        ("serve --port x", "--port x: must be a whole number."),
        ("report run extra", "unexpected argument 'extra'. Type `microcoder report --help`"),
        ("train recipe.toml", "no recipe; type: microcoder train -c recipe.toml"),
        ("train -c x.toml --dryrun", "unknown option --dryrun; did you mean --dry-run?"),
        ("eval", "nothing to evaluate; type: microcoder eval -c CONFIG.toml"),
        ("report run --pass-at 5", "--pass-at is for evaluations, and run is none"),
        ("audit-judge --judge nosuch", "unknown judge 'nosuch'; use one of microcoder, "),
        ("audit-judge --out {file}", "cannot be written (File exists); choose another folder"),
        ("train -c {folder}", "is a folder; pass -c PATH to a TOML file"),
        ("train -c {file}", "model is missing; add [model]; problems is missing; add [problems]"),
        ("view run --problems nofile", "--problems nofile does not exist; check the path"),
        ("study --all --report --against {folder}", "pass a folder that `microcoder study --all --report` wrote"),
    ],
)
def test_a_mistake_is_one_line_with_what_to_type(
    command: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, folder = tmp_path / "empty.toml", tmp_path / "folder"
    empty.touch()
    folder.mkdir()
    with pytest.raises(SystemExit) as stop:
        main(command.format(file=empty, folder=folder).split())
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
