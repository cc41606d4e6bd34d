"""What to type for a missing extra, however this package was installed."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from microcoder.judge.core.machine import describe_requirement, how_to_install

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ({"url": "file:///home/me/micro%20coder", "dir_info": {}}, ["/home/me/micro coder[train]"]),
        ({"url": "file:///src/microcoder", "dir_info": {"editable": True}}, ["--editable", "/src/microcoder[train]"]),
        (
            {"url": "https://git.example/m.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}},
            ["microcoder[train] @ git+https://git.example/m.git@ab12"],
        ),
        (
            {"url": "https://example.org/microcoder-1-py3-none-any.whl", "archive_info": {}},
            ["microcoder[train] @ https://example.org/microcoder-1-py3-none-any.whl"],
        ),
    ],
)
def test_the_command_names_where_the_package_came_from(origin: dict[str, Any], wanted: list[str]) -> None:
    assert shlex.split(describe_requirement(origin, "train")) == wanted


def test_no_message_names_an_index() -> None:
    sources = [path for path in (ROOT / "src").rglob("*.py") if "pip install 'microcoder" in path.read_text("utf-8")]
    assert not sources


def test_the_command_of_these_tests_names_this_checkout() -> None:
    assert shlex.split(how_to_install("data,train"))[-1] == f"{ROOT}[data,train]"
