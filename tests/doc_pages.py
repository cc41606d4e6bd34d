"""Pages of Markdown taken apart: fenced blocks, links, headings;
and a tutorial's blocks done as a reader would.
"""

import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from microcoder.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for name in ("docs", "recipes", "studies", "examples")
            for page in (ROOT / name).rglob("*.md")
        ),
    ]
)
_FENCE = re.compile(
    r"^```(\w*)(?: title=\"([^\"]+)\")?[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(?<!!)\[[^]\n]*(?:\n[^]\n]*)?\]\(([^)\s]+)\)|!\[[^]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    title: str
    text: str


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [Block(*found.groups()) for found in _FENCE.finditer(text)]


def without_code(text: str) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("\n\n", text)


def links_of(text: str) -> Iterator[str]:
    """Yield what the page links to and shows, code left out."""
    plain = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))
    for found in _LINK.finditer(plain):
        yield found[1] or found[2]


def anchors_of(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*?)(?: \{#([\w-]+)\})?$", _FENCE.sub("", text), re.MULTILINE)
    anchors = set()
    for words, name in headings:
        anchors.add(name or re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", words.lower()).strip()))
    return anchors


def stand_in(name: str, checkpoint: Path, hub: Path) -> dict[str, str]:
    """Put a checkpoint into a cache of the Hugging Face Hub under a model's name;
    return what makes it be found.
    """
    repo = hub / "hub" / f"models--{name.replace('/', '--')}"
    shutil.copytree(checkpoint, repo / "snapshots" / "0")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("0")
    return {"HF_HOME": str(hub), "HF_HUB_OFFLINE": "1"}


Variables = Mapping[str, str]


def shell(variables: Variables | None = None) -> dict[str, str]:
    """Return the variables of a reader's shell, which finds the commands of this environment."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **(variables or {})}


def type_in(
    text: str,
    folder: Path,
    variables: Variables | None = None,
    *,
    errors: int = subprocess.PIPE,
) -> str:
    """Type a command as a reader does, see that it succeeds, and return what it prints."""
    command = ["bash", "-e", "-o", "pipefail", "-c", text]
    here = shell(variables)
    pipe = subprocess.PIPE
    done = subprocess.run(
        command,
        cwd=folder,
        env=here,
        text=True,
        stdout=pipe,
        stderr=errors,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout[-4000:]}{(done.stderr or '')[-3000:]}"
    return done.stdout


def run_here(text: str, folder: Path) -> str:
    """Run `python FILE`, `microcoder ...` and `cat FILE` in this process;
    return what they print.
    """
    with chdir(folder), redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
        for command, *words in map(shlex.split, text.strip().splitlines()):
            if command == "python":
                runpy.run_path(words[0], run_name="__main__")
            elif command == "cat":
                print(Path(words[0]).read_text(encoding="utf-8"))
            else:
                assert command == "microcoder", text
                main(words)
    return printed.getvalue()


def do_tutorial(
    page: Path,
    folder: Path,
    *,
    environment: Variables | None = None,
    more: Variables | None = None,
    filled: Variables | None = None,
    is_here: bool = False,
) -> str:
    """Write a tutorial's files and type its commands in a folder;
    hold what they print to what the page shows.

    A block with a title is a file, a block `console` is typed, a block `text` after it is what
    comes: a line of it is found in the output in order, with … for anything. `more` adds options to
    a command that names a word; `filled` puts something of the test into files and commands, in
    place of what is written; `is_here` runs them in this process, which has imported what is large.
    """
    output = everything = ""
    written = page.read_text(encoding="utf-8")
    for word, value in (filled or {}).items():
        written = written.replace(word, value)
    for block in blocks_of(written):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            endings = []
            for word, end in (more or {}).items():
                if word in block.text:
                    endings.append(end)
            options = "".join(endings)
            text = block.text.rstrip() + options
            if is_here:
                output = run_here(text, folder)
            else:
                output = type_in(text, folder, environment, errors=subprocess.STDOUT)
            everything += output
        elif block.language == "text":
            lines = iter(output.splitlines())
            told = f"what came:\n{output}"
            for shown in block.text.splitlines():
                pattern = ".*".join(re.escape(part.strip()) for part in shown.split("…"))
                assert any(re.search(pattern, line) for line in lines), (
                    f"{page.name} shows {shown!r}; {told}"
                )
    return everything
