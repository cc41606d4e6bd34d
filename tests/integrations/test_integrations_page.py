"""docs/integrations.md itself: each program's blocks are read from the page and run as they stand
there.

Only what a reader has to fill in is filled in (`FILLED`): a model, an address,
a data set that needs no network.
"""

import asyncio
import json
import re
import shlex
import signal
import socket
import subprocess
import textwrap
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.doc_pages import DOCS, Block, blocks_of, shell, type_in
from tests.eval.completions_server import in_the_form_asked, serve

PAGE = (DOCS / "integrations.md").read_text(encoding="utf-8")
SECTIONS = {
    part.partition("\n")[0]: blocks_of(part) for part in re.split(r"^## ", PAGE, flags=re.M)[1:]
}
ANSWER = "```python\nprint(sum(map(int, input().split())))\n```"
PROBLEM = {
    "id": "sum",
    "statement": "Print the sum of two integers.",
    "tests": [{"input": "1 2", "output": "3"}, {"input": "5 6", "output": "11"}],
    "reference": "print(sum(map(int, input().split())))",
}


def block(program: str, language: str, place: int = 0) -> Block:
    (section,) = [blocks for title, blocks in SECTIONS.items() if title.startswith(program)]
    chosen = []
    for one in section:
        if one.language == language:
            chosen.append(one)
    return chosen[place]


def needs(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not here; type: make test-integrations")


def command(text: str, name: str, filled: dict[str, str]) -> str:
    """Return the command of a block that begins with a name;
    what a reader fills in is filled in.
    """
    (line,) = [line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.startswith(name)]
    for placeholder, value in filled.items():
        assert placeholder in line, f"{placeholder} is no longer in: {line}"
        line = line.replace(placeholder, value)
    return line


@pytest.fixture
def model_url() -> Iterator[str]:
    """Where a model answers that knows one answer."""
    with serve(lambda asked, number: in_the_form_asked(asked, ANSWER)) as server:
        yield server.url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader would be: beside a file of problems, which is what the page calls it."""
    (tmp_path / "problems.jsonl").write_text(json.dumps(PROBLEM) + "\n")
    return tmp_path


@pytest.mark.slow
# Not by their own names, to which folders of tests answer; and before a model is made.
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_trl(folder: Path, tiny_checkpoint: Path) -> None:
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    row = {"prompt": PROBLEM["statement"], "tests": json.dumps(PROBLEM["tests"])}
    options: dict[str, Any] = {
        "max_steps": 1,
        "num_generations": 4,
        "per_device_train_batch_size": 4,
    }
    args = GRPOConfig(
        str(folder),
        **options,
        max_completion_length=8,
        bf16=False,
        use_cpu=True,
        report_to="none",
    )
    names: dict[str, Any] = {
        "GRPOTrainer": GRPOTrainer,
        "model": str(tiny_checkpoint),
        "args": args,
        "dataset": Dataset.from_list([row]),
    }
    exec(block("TRL", "python").text, names)
    names["trainer"].train()
    (logged,) = (entry for entry in names["trainer"].state.log_history if "reward" in entry)
    assert 0 <= logged["rewards/code_reward/mean"] <= 1
    assert logged["code/sandbox_fault_share"] == 0


def test_verl() -> None:
    """The keys of the command are composed into verl's own configuration,
    as its `hydra.main` does.
    """
    needs("transfer_queue")
    from hydra import compose, initialize_config_module

    line = command(block("verl", "console").text, "python -m verl.trainer.main_ppo", {"...": ""})
    with initialize_config_module(version_base=None, config_module="verl.trainer.config"):
        given = compose(
            "ppo_trainer", overrides=shlex.split(line)[3:]
        ).reward.custom_reward_function
    assert given.path == "pkg://microcoder.integrations.verl"
    assert given.reward_kwargs.workers == 2


def test_livecodebench() -> None:
    names: dict[str, Any] = {"code": "print(sum(map(int, input().split())))"}
    exec(block("LiveCodeBench", "python").text, names)
    assert names["codes"] == [True]


@pytest.mark.slow
def test_lm_eval(folder: Path, model_url: str) -> None:
    """Both blocks: the task of one's own, whose rows need no network,
    is what the command is asked for.
    """
    needs("lm_eval")
    task = block("lm-evaluation-harness", "yaml").text
    shown = type_in("python -m microcoder.integrations.lm_eval", folder).strip()
    (folder / "mine.yaml").write_text(task.replace("/that/folder", shown))
    filled = {
        "$(python -m microcoder.integrations.lm_eval)": str(folder),
        "microcoder_humaneval_plus": "mine",
        "model=MODEL,base_url=http://HOST/v1": f"model=m,base_url={model_url}",
    }
    line = command(block("lm-evaluation-harness", "console").text, "lm_eval", filled)
    assert re.search(
        r"\|pass_at_1 *\|. *\| *1",
        type_in(line, folder, {"OPENAI_API_KEY": "x", "HF_HUB_OFFLINE": "1"}),
    )


def test_inspect(folder: Path, model_url: str) -> None:
    needs("inspect_ai")
    line = command(block("Inspect", "console").text, "inspect eval", {})
    shown = type_in(
        f"{line} --display plain",
        folder,
        {"OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "x"},
    )
    assert re.search(r"mean +1\.0", shown), shown
    import inspect_ai
    from inspect_ai.solver import generate

    names: dict[str, Any] = {"rows": [PROBLEM], "Task": inspect_ai.Task, "generate": generate}
    exec(block("Inspect", "python").text.replace("Task(", "task = Task(", 1), names)
    assert [sample.id for sample in names["task"].dataset] == ["sum"]


def test_verifiers(folder: Path, model_url: str) -> None:
    needs("verifiers.v1") if find_spec("verifiers") else needs("verifiers")
    text = block("verifiers", "bash").text
    type_in(command(text, "vf-validate", {}) + " --no-rich -o validated", folder)
    (summary,) = folder.glob("validated/*/summary.json")
    assert json.loads(summary.read_text())["outcomes"]["valid"] == 1
    line = command(text, "vf-eval", {"MODEL": "m", "URL": model_url})
    type_in(f"{line} --no-rich -n 1 -r 1 -o evaluated", folder)
    (traces,) = folder.glob("evaluated/*/traces.jsonl")
    assert (
        json.loads(traces.read_text().splitlines()[0])["traces"][0]["rewards"]["accepted"]["score"]
        == 1.0
    )


def test_nemo_gym(folder: Path) -> None:
    """The files that the block writes; with NeMo-Gym, they are its server,
    and the page's options are the judge's.
    """
    type_in(block("NeMo-Gym", "bash").text, folder)
    app = folder / "resources_servers" / "microcoder" / "app.py"
    compile(app.read_text(), str(app), "exec")
    assert (app.parent / "requirements.txt").read_text().splitlines()[0] == "nemo-gym==0.4.0"
    assert (app.parent / "configs").is_dir()
    needs("nemo_gym")
    from omegaconf import OmegaConf

    from microcoder.integrations.nemo_gym import CodeServerConfig

    written = OmegaConf.to_container(OmegaConf.create(block("NeMo-Gym", "yaml").text))
    assert isinstance(written, dict)
    given = written["microcoder"]["resources_servers"]["microcoder"]
    assert (app.parent / given["entrypoint"]).exists()
    CodeServerConfig.model_validate({"name": "microcoder", "host": "127.0.0.1", "port": 1, **given})
    type_in("python -c 'import app'", app.parent)


def test_skyrl() -> None:
    needs("skyrl_gym")
    import skyrl_gym

    names: dict[str, Any] = {"row": PROBLEM, "skyrl_gym": skyrl_gym}
    *lines, last = block("SkyRL", "python").text.splitlines()
    exec("\n".join([*lines, f"step = {last}"]), names)
    assert names["step"]["reward"] == 1.0
    assert names["step"]["done"] is True


def test_openenv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs("openenv")
    text = block("OpenEnv", "bash").text
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    lines = [command(text, "export", {}), f"exec {command(text, 'uvicorn', {'8000': port})}"]
    with subprocess.Popen(["bash", "-c", "\n".join(lines)], cwd=folder, env=shell()) as server:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", int(port))).close()
                    break
                except ConnectionRefusedError:
                    assert server.poll() is None
                    time.sleep(0.1)
            body = textwrap.indent(block("OpenEnv", "python").text.replace("8000", port), "    ")
            names: dict[str, Any] = {}
            exec(f"async def ask():\n{body}", names)
            asyncio.run(names["ask"]())
        finally:
            server.send_signal(signal.SIGINT)
    assert "wrong_answer" in capsys.readouterr().out


def test_every_program_of_the_page_is_here() -> None:
    names = set()
    for title in SECTIONS:
        names.add(re.sub(r"\W+", "_", title.split(",")[0].split(" and ")[0].lower()))
    tested = set()
    for name in globals():
        if name.startswith("test_"):
            tested.add(name.removeprefix("test_"))
    known = {"lm_evaluation_harness": "lm_eval"}
    assert {known.get(name, name) for name in names} <= tested
