"""Where a corpus comes from, as Croissant metadata (https://docs.mlcommons.org/croissant); what of it is published."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.hub import MARKER
from microcoder.data.release.tables import CARD, find_licence
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json, write_text
from microcoder.judge.core.installation import how_to_install

CROISSANT = "croissant.json"
_REJECTED_COLUMNS = ["id", "dataset", "source_row", "stage", "reason"]
"""Of what was refused neither its content nor words of it are passed on."""
_COPIED = ("funnel.json", "plots/*.svg")


def write_croissant(folder: Path, *, name: str, licence: str, sources: Sequence[Mapping[str, str]]) -> None:
    """Write `croissant.json`: the corpus's tables with their digests, and what it was built from.

    Args:
        folder: of the corpus; its tables are there.
        name: of the corpus.
        licence: of all of it, as the card has it.
        sources: `name`, `url`, `version` (commit), `sha256` and `license` of each, where they are known.
    """
    files = [
        {
            "@type": "cr:FileObject",
            "@id": path.name,
            "name": path.name,
            "contentUrl": path.name,
            "encodingFormat": "application/vnd.apache.parquet",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.glob("*.parquet"))
    ]
    record = {
        "@context": {"@vocab": "https://schema.org/", "sc": "https://schema.org/", "dct": "http://purl.org/dc/terms/",
                     "cr": "http://mlcommons.org/croissant/", "conformsTo": "dct:conformsTo", "sha256": "cr:sha256"},
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "license": licence,
        "isBasedOn": [{"@type": "sc:Dataset", **source} for source in sources],
        "distribution": files,
    }  # fmt: skip
    write_json(folder / CROISSANT, record)


def copy_published(corpus: Path, target: Path) -> tuple[int, int]:
    """Copy what of a finished corpus may be passed on: problems with a licence, and why the others were refused.

    Returns:
        How many problems were copied, and how many were left out since nothing states their licence.

    Raises:
        DataError: no problem has a licence.
    """
    licences: set[str] = set()
    num_copied = num_left_out = 0
    for path in sorted(corpus.glob("problems-*.parquet")):
        number = path.stem.partition("-")[2]
        table = pq.read_table(path)
        kept = table.filter(pa.array([bool(one.strip()) for one in table["licence"].to_pylist()], pa.bool_()))
        licences |= set(kept["licence"].to_pylist())
        num_copied, num_left_out = num_copied + len(kept), num_left_out + len(table) - len(kept)
        pq.write_table(kept, target / path.name)
        lineage = pq.read_table(corpus / f"lineage-{number}.parquet")
        ids = set(kept["id"].to_pylist())
        lineage = lineage.filter(pa.array([name in ids for name in lineage["id"].to_pylist()], pa.bool_()))
        pq.write_table(lineage, target / f"lineage-{number}.parquet")
    if not num_copied:
        raise DataError(
            f"{corpus}: no problem has a licence, so none may be passed on; write `licence` under [[sources]] of its "
            "config, as the source states it, and build again"
        )
    for path in sorted(corpus.glob("rejected-*.parquet")):
        pq.write_table(pq.read_table(path, columns=_REJECTED_COLUMNS), target / path.name)
    for path in (path for pattern in _COPIED for path in corpus.glob(pattern)):
        copied = target / path.relative_to(corpus)
        copied.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copied)
    licence = find_licence(licences)
    text = (corpus / CARD).read_text(encoding="utf-8")
    text = re.sub(r"^license: .*$", f"license: {licence}", text, count=1, flags=re.MULTILINE)
    said = f"Not published: {num_left_out} problems of which no licence is stated, and the contents of rejected rows."
    write_text(target / CARD, f"{text.rstrip()}\n\n{said}\n")
    record = _read(corpus / CROISSANT)
    sources = [{key: text for key, text in one.items() if key != "@type"} for one in record["isBasedOn"]]
    write_croissant(target, name=record["name"], licence=licence, sources=sources)
    write_json(target / MARKER, {**_read(corpus / MARKER), "num_problems": num_copied})
    return num_copied, num_left_out


@dataclass(frozen=True, slots=True)
class Pushed:
    """A corpus on the Hub."""

    address: str
    num_problems: int
    num_left_out: int
    """Problems without a licence, which are not passed on."""


def push(corpus: Path, *, repo: str, is_private: bool) -> Pushed:
    """Upload what of a corpus may be passed on: nothing that was refused, and no problem without a licence.

    Raises:
        DataError: it is not finished, no problem has a licence, the library is missing, or the Hub refuses.
    """
    if not (corpus / MARKER).exists():
        raise DataError(f"{corpus} holds no finished corpus (no {MARKER}); type `microcoder data build` first")
    try:
        import httpx
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise DataError(f"push needs huggingface_hub; type: {how_to_install('data')}") from None
    hub = HfApi()
    try:
        with TemporaryDirectory() as folder:
            num_problems, num_left_out = copy_published(corpus, Path(folder))
            address = hub.create_repo(repo, repo_type="dataset", private=is_private, exist_ok=True)
            hub.upload_folder(folder_path=folder, repo_id=repo, repo_type="dataset", delete_patterns=["*.parquet"])
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        said = str(error).strip().split("\n")[0]
        raise DataError(
            f"{repo} cannot be pushed ({said}); type `hf auth login`, or check the name and the network"
        ) from None
    return Pushed(str(address), num_problems, num_left_out)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(f"{path} is missing or damaged; type the same `microcoder data build` again") from None
