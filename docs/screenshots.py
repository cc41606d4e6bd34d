"""Take the README's pictures after `make demo`:
`python docs/screenshots.py runs/demo runs/demo-*` (needs Chromium).
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet
from PIL import Image

from microcoder.view import open_collection, write_bundle, write_report

ASSETS = Path(__file__).parent / "assets"
_CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--hide-scrollbars",
    "--virtual-time-budget=5000",
]
_SIZE = "--window-size=1100,900"


def main(run: Path, *against: Path) -> None:
    """Picture the report, and the viewer on a wrong answer of the last step that others of its
    group got right.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(open_collection([run]), Path(folder))
        last = max((run / "rollouts").glob("step_*.parquet"))
        rows = pyarrow.parquet.read_table(last).to_pylist()
        row = next(
            n
            for n, row in enumerate(rows)
            if row["verdict"] == "wrong_answer" and row["advantage"] < 0
        )
        address = f"view=rollouts&verdict=wrong_answer&at=train/{rows[row]['step']}/{row}"
        _picture(write_report(run, against=against).absolute().as_uri(), ASSETS / "report.png")
        _picture(f"{(Path(folder) / 'index.html').as_uri()}#{address}", ASSETS / "viewer.png")


def _picture(address: str, target: Path) -> None:
    subprocess.run(
        [*_CHROMIUM, _SIZE, f"--screenshot={target}", address],
        check=True,
        capture_output=True,
    )
    Image.open(target).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(
        target, optimize=True
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
