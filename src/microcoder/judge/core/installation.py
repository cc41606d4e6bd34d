"""How this package was installed, and so what installs another of its extras."""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@cache
def how_to_install(extras: str) -> str:
    """Return the command that adds extras, such as `train,verl`, from where this package came: no index has it."""
    try:
        record = metadata.distribution("microcoder").read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # imported from a folder that was never installed
        record = None
    return f"pip install {describe_requirement(json.loads(record) if record else None, extras)}"


def describe_requirement(origin: dict[str, Any] | None, extras: str) -> str:
    """Return what pip is to install, quoted for a shell.

    Args:
        origin: PEP 610's record of a direct URL; without one the folder that this is imported from is taken.
        extras: names with commas between them.
    """
    if origin is None:
        return shlex.quote(f"{Path(__file__).parents[4]}[{extras}]")
    url = origin["url"]
    if "dir_info" in origin:
        option = "--editable " if origin["dir_info"].get("editable") else ""
        return option + shlex.quote(f"{unquote(urlsplit(url).path)}[{extras}]")
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return shlex.quote(f"microcoder[{extras}] @ {url}")
