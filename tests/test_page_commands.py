"""The commands of the hand-written pages, typed in the order of the pages where a reader would be.

Tutorials, docs/judging.md, docs/integrations.md and docs/replay.md have tests of their own. A line
of a page is typed as it stands, but for what `FILLED` puts in the place of something large;
`ELSEWHERE` says where others are run, or why they are not.
"""

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.data.published import make_row, write_rows
from tests.doc_pages import DOCS, ROOT, blocks_of, shell, type_in
from tests.eval.completions_server import completion, serve

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

PAIRS = [(1, 2), (7, 7), (30, 4), (0, 9), (100, 51), (12, 96)]
# Rules in Python and their stories, far enough from each other for a corpus to keep all.
STORIES = {
    "a + b": (
        "A ferry has a cars on its upper deck and b on the lower one. Print how many cars it "
        "carries."
    ),
    "max(a, b)": (
        "Two masons stack their blocks, a and b of them. Print the height of the taller stack."
    ),
    "a * b": (
        "The park's new rectangular bed is a steps long and b wide, a tulip on each step. "
        "Count the tulips."
    ),
    "abs(a - b)": (
        "The conductor counts a passengers who get on and b who get off. Print by how much "
        "they differ."
    ),
}
SMALL = (
    " --num_steps 1 --cpu_threads 1 --batch.train_batch_size 2 --batch.ppo_mini_batch_size "
    "1 --rollout.num_samples 2"
    " --batch.micro_batch_rollouts 2 --rollout.max_response_tokens 16 "
    "--evaluation.max_response_tokens 16"
)
# Written on the page -> typed.
FILLED = {
    "Qwen/Qwen3-1.7B": "tiny",
    "--gpu h100": "--gpu cpu",  # tests/cli/test_init.py writes and plans the recipe for a GPU
    "train -c recipe.toml\n": f"train -c recipe.toml {SMALL} --run-dir runs/one\n",
    ".kind diversity\n": f".kind diversity {SMALL} --run-dir runs/two\n",
    "--problems.train CORPUS\n": f"--problems.train CORPUS {SMALL} --run-dir runs/three\n",
    "CORPUS": "corpora/mine",
    "SOURCE --format FORMAT": "train.jsonl --format microcoder",
    "http://localhost:8000/v1": "$MODEL_URL",
    "--against runs/qwen3-4b": "--against runs/one",
    "runs/trained": "runs/two",
    "runs/demo runs/other": "runs/one runs/two --port 0",
    "runs/demo": "runs/one",
    "--host 0.0.0.0": "--port 0",
    (
        "judge --judge examples/judges/peers.py:livecodebench=../LiveCodeBench --judge"
    ): "judge --judge",
    "less": "head",
    "microcoder audit-judge": "microcoder audit-judge --most 1",
}
# What a line holds -> why it is not typed here.
ELSEWHERE = {
    "pip install": "every gate installs",
    "git clone": "every gate's checkout is one",
    "python3 -m venv": "every gate makes one",
    "docker ": (
        "needs a daemon; tests/test_installation.py builds a wheel of what the Containerfile copies"
    ),
    "-c RECIPE ": "tests/train/verl",
    "main_ppo": "tests/train/verl",
    "backend vllm": "tests/train/vllm_backend",
    "vllm serve": "tests/train/vllm_backend",
    "accelerate launch": "tests/train/test_session.py starts two on CPUs; FSDP wants GPUs",
    "data push": "uploads; tests/data pushes to a stand-in of the Hub",
    "study --all --quick\n": "hours",
    "study --all --report": "hours",
    "study 005_context\n": "half an hour",
    "data audit mine": "the same verb as the line before it",
    "--judge reward=": "tests/lab/yardstick/test_rewards.py asks rewards and commands",
    "command=node": "the same",
    "tinker_cookbook": "tests/integrations has the package; it trains with an account",
}
CORPUS = """
name = "mine"
output = "corpora/mine"
[[sources]]
name = "mine"
path = "problems.jsonl"
format = "microcoder"
licence = "MIT"
"""
PAGES = (
    *(
        "install",
        "training",
        "resources",
        "costs",
        "algorithms",
        "cluster",
        "dataset",
        "dataset-audit",
        "evaluation",
        "viewer",
    ),
    *("insights", "judges", "serving", "verl"),
)


def lines_of(page: str) -> list[str]:
    """Return the command lines of a page, without prompts, remarks and what they print."""
    lines = []
    for block in blocks_of((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        if block.language == "console":
            text = re.sub(r"\\\n\s*", " ", block.text).splitlines()
            typed = [line.removeprefix("$ ") for line in text if line.startswith("$ ")] or text
            lines += [re.sub(r"\s+#.*", "", line) for line in typed]
    return lines


def test_every_page_with_commands_is_run_by_some_test() -> None:
    with_commands = set()
    for path in DOCS.glob("*.md"):
        if lines_of(path.stem):
            with_commands.add(path.stem)
    # Those of docs/rows.md name options alone; the cookbook types them with files. Those of
    # docs/trainers.md have a test of their own, and docs/public-rewards.md asks for packages.
    elsewhere = {"judging", "integrations", "replay", "commands", "rows"}
    assert with_commands == {*PAGES, *elsewhere, "trainers", "public-rewards"}


def fill(line: str) -> str:
    line += "\n"
    for written, typed in FILLED.items():
        line = line.replace(written, typed)
    return line.strip()


@pytest.fixture
def here(tmp_path: Path, shared_cache: Path, tiny_checkpoint: Path) -> Iterator[dict[str, str]]:
    """What a reader's shell has besides, beside the files that the pages name."""
    rows: list[dict[str, Any]] = []
    for number, (rule, story) in enumerate(STORIES.items()):
        examples = []
        for a, b in PAIRS:
            examples.append({"input": f"{a} {b}\n", "output": f"{eval(rule, {'a': a, 'b': b})}\n"})
        rows.append(
            {
                "id": f"p{number}",
                "statement": (
                    f"{story} The first line of the input holds two integers, a and b (0 <= a, b "
                    "<= 100)."
                ),
                "tests": examples,
                "reference": f"a, b = map(int, input().split())\nprint({rule})",
            }
        )
    (tmp_path / "data").mkdir()  # where the recipes look
    # As many as a step of the largest recipe asks for.
    many = [{**rows[number % 3], "id": f"m{number}"} for number in range(64)]
    write_rows(tmp_path / "data" / "train.jsonl", many)
    write_rows(tmp_path / "train.jsonl", rows[:3])
    for folder in (tmp_path, tmp_path / "data"):
        write_rows(folder / "heldout.jsonl", rows[3:])
    # Without the held-out one, since a corpus is made of them and trained on.
    write_rows(tmp_path / "problems.jsonl", rows[:3])
    question = {
        "task_id": "HumanEval/0",
        "prompt": 'def f(n: int) -> int:\n    """Return n."""\n',
        "entry_point": "f",
    }
    check = "def check(candidate):\n    assert candidate(1) == 1\n"
    write_rows(
        tmp_path / "HumanEval.jsonl",
        [{**question, "canonical_solution": "    return n\n", "test": check}],
    )
    subprocess.run(["gzip", "HumanEval.jsonl"], cwd=tmp_path, check=True)
    (tmp_path / "code_generation_lite").mkdir()
    for number in ("", 2, 3, 4, 5, 6):
        write_rows(
            tmp_path / "code_generation_lite" / f"test{number}.jsonl", [make_row(f"q{number}")]
        )
    (tmp_path / "corpus.toml").write_text(CORPUS)
    (tmp_path / "my_judge.py").write_text("def judge(task):\n    return False\n")
    for name, target in (("examples", ROOT / "examples"), ("tiny", tiny_checkpoint)):
        (tmp_path / name).symlink_to(target)
    pair = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=judge -keyout privkey.pem "
        "-out fullchain.pem"
    )
    subprocess.run(pair.split(), cwd=tmp_path, capture_output=True, check=True)
    with serve(lambda asked, number: completion("```python\nprint(3)\n```")) as model:
        yield {"MODEL_URL": model.url}


def test_the_commands_of_the_pages_run(here: dict[str, str], tmp_path: Path) -> None:
    for page in PAGES:
        for line in lines_of(page):
            if not any(word in f"{line}\n" for word in ELSEWHERE):
                is_server = (
                    line.startswith(("microcoder serve", "microcoder view"))
                    and "--bundle" not in line
                )
                (serve_a_while if is_server else type_in)(fill(line), tmp_path, here)


def serve_a_while(line: str, folder: Path, variables: dict[str, str]) -> None:
    """Start a server, wait until it says where it listens, and end it as Ctrl-C does."""
    out = folder / "server.log"
    with out.open("w") as log:
        command = ["bash", "-c", f"exec {line}"]
        server = subprocess.Popen(command, cwd=folder, env=shell(variables), stdout=log, stderr=log)
        while server.poll() is None and not re.search(
            r"https?://127\.0\.0\.1:\d+", out.read_text()
        ):
            time.sleep(0.1)
        server.send_signal(signal.SIGINT)
        assert server.wait() in (0, 130), f"{line}\n{out.read_text()[-3000:]}"
    assert "http" in out.read_text(), f"{line}\n{out.read_text()[-3000:]}"
