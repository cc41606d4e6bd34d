"""`microcoder view`: curves and rollouts of runs in a browser."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from microcoder.errors import ConfigError

DEFAULT_PORT = 8642


def view(
    *runs: Path,
    problems: Annotated[tuple[Path, ...], Parameter(name=["--problems"], negative="")] = (),
    bundle: Path | None = None,
    port: int = DEFAULT_PORT,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Show runs in a browser: their curves over each other, and every rollout with its tests; search, compare, follow.

    An open page shows what runs that are still going add to their folders. Without --bundle it serves the page on this
    machine until Ctrl-C, and only to this machine; from elsewhere, type `ssh -L 8642:127.0.0.1:8642 HOST`.

    Parameters
    ----------
    runs
        Folders that `microcoder train`, `microcoder eval` or `microcoder data build` wrote, or files of verdicts of
        `microcoder judge`.
    problems
        Problems, submissions or rows of a benchmark, with tests' inputs and expected outputs, for runs that do not say
        where theirs are. Give it again for another.
    bundle
        Write a folder that shows the same without a server, from disk or any web host, and stop.
    port
        Port of the loopback; 0 takes any that is free.
    json
        Print one JSON object in place of a line of text.
    """
    if not runs:
        raise ConfigError("no run is named; type: microcoder view RUN [RUN...]")
    try:
        from microcoder.viewer import ViewerServer, open_collection, write_bundle
    except ImportError as error:
        raise ConfigError(f"the viewer needs {error.name}; type: pip install 'microcoder[insights]'") from None

    collection = open_collection(runs, problem_files=problems)
    if bundle is not None:
        written = write_bundle(collection, bundle)
        told = {"page": str(written.page), "num_rollouts": written.num_rollouts, "num_bytes": written.num_bytes}
        text = f"{written.page}: {written.num_rollouts:,} rollouts, {written.num_bytes / 1e6:,.1f} MB"
        print(json_module.dumps(told) if json else text)
        return
    with ViewerServer(collection, port=port) as server:
        print(json_module.dumps({"url": server.url}) if json else f"{server.url}  (Ctrl-C ends)", flush=True)
        server.warm()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("microcoder: the viewer has ended", file=sys.stderr)
