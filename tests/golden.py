"""What the project does, as short values by name: `make golden` says which part of what moved,
UPDATE=1 writes anew.

For changes that should change nothing: each part runs real code, from comparisons to a trained run,
and gives a value a name; what programs come to is for the suites of tests/judge. The values of the
last agreed state are in `golden.json`. They depend on no time, memory, place, address or name of a
module. Those of trained weights depend on versions and processor: such parts name what they depend
on, and are left out, aloud, where it is another or is not installed.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests import golden_parts as parts
from tests.golden_values import Skipped, Values, compare_packs

PACK = Path(__file__).with_name("golden.json")
CPUINFO = Path("/proc/cpuinfo")

PARTS: dict[str, tuple[Callable[[Path], Values], tuple[str, ...]]] = {
    "pairs": (parts.compare_pairs, ()),
    "extraction": (parts.extract_layouts, ()),
    "rows": (parts.read_formats, ()),
    "yardstick": (parts.list_yardstick, ()),
    "corpus": (parts.build_corpus, ("python", "pyarrow")),
    "evaluation": (parts.evaluate, ()),
    "viewer": (parts.view, ()),
    "report": (parts.report, ()),
    "trl": (parts.train_trl, ("python", "torch", "transformers", "trl", "processor")),
    "verl": (parts.train_verl, ("python", "torch", "transformers", "verl", "processor")),
}
"""What makes the values of a part, and on what else they depend."""


def find_versions() -> dict[str, str]:
    """Return what values of some parts depend on besides the code."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("pyarrow", "torch", "transformers", "trl", "verl"):
        # Not by `find_spec`: folders of the tests have the names of packages.
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    if found["torch"] != "absent":
        import torch

        # Of the same capability, processors of two makers add in another order.
        maker = re.search(r"^vendor_id\s*:\s*(\S+)", CPUINFO.read_text(), re.MULTILINE)
        capability = torch.backends.cpu.get_cpu_capability()
        found["processor"] = f"{capability}, {maker[1]}" if maker else capability
    return found


def run_parts(
    names: Sequence[str], made_with: Mapping[str, Mapping[str, str]]
) -> dict[str, Values]:
    """Run parts and say what each cost; leave out, aloud, what this machine cannot compare."""
    versions = find_versions()
    found = {}
    for name in names:
        make, _ = PARTS[name]
        made = made_with.get(name, {})
        others = []
        for key in made:
            if made[key] != versions[key]:
                others.append(f"{key} {made[key]}, here {versions[key]}")
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="golden-") as folder:
            try:
                if others:
                    raise Skipped(f"its values were made with {', '.join(others)}")
                found[name] = make(Path(folder))
                print(
                    f"{name}: {len(found[name])} values, {time.monotonic() - start:.0f} s",
                    flush=True,
                )
            except Skipped as why:
                print(f"skipped: {name}: {why}", flush=True)
    return found


def main_golden() -> int:
    """Compare, or write, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the pack anew; a part that is skipped stays",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        metavar="PART",
        help=", ".join(PARTS),
    )
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    pack = json.loads(PACK.read_text()) if PACK.exists() else {"made_with": {}, "parts": {}}
    found = run_parts(options.only, {} if options.write else pack["made_with"])
    moved = compare_packs(pack["parts"], found)
    print("".join(f"{line}\n" for line in moved), end="")
    if options.write:
        versions = find_versions()
        for name, values in found.items():
            pack["parts"][name] = values
            pack["made_with"][name] = {key: versions[key] for key in PARTS[name][1]}
        PACK.write_text(json.dumps(pack, indent=0, sort_keys=True) + "\n")
        print(f"{len(moved)} values written to {PACK.name}")
        return 0
    if len(found) == len(options.only):
        same = "every value is as it was"
    else:
        same = "every value that was compared is as it was"
    print(f"{len(moved)} values moved" if moved else same)
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main_golden())
