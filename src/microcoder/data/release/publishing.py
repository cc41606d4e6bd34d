"""Passes a corpus on: its Croissant metadata, and the upload to the Hugging Face Hub.

https://docs.mlcommons.org/croissant describes the metadata. Only problems with a licence are
published. Rejected rows are listed without their contents.
"""

import hashlib
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.release.card import CARD, find_licence
from microcoder.data.sources import MARKER
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json, write_json, write_text
from microcoder.judge.core.machine import how_to_install

CROISSANT = "croissant.json"
"""File of the metadata."""
_CONTEXT = {
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "cr": "http://mlcommons.org/croissant/",
    "conformsTo": "dct:conformsTo",
    "sha256": "cr:sha256",
}
"""Vocabularies of the metadata, by prefix."""
_REJECTED_COLUMNS = ["id", "dataset", "source_row", "stage", "reason"]
"""Columns of rejected rows that are published: neither their content nor quotes of it."""


def write_croissant(
    folder: Path,
    *,
    name: str,
    licence: str,
    sources: Sequence[Mapping[str, str]],
) -> None:
    """Write `croissant.json`: the corpus's tables with digests, and what it was built from.

    Args:
        sources: `name`, `url`, `version` (commit), `sha256` and `license` of each, where they are
            known.
    """
    record = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "license": licence,
        "isBasedOn": [{"@type": "sc:Dataset", **source} for source in sources],
        "distribution": [_describe_file(path) for path in sorted(folder.glob("*.parquet"))],
    }
    write_json(folder / CROISSANT, record)


def _describe_file(path: Path) -> dict[str, str]:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "encodingFormat": "application/vnd.apache.parquet",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def copy_published(corpus: Path, target: Path) -> tuple[int, int]:
    """Copy the parts of a finished corpus that may be published.

    Problems without a licence are left out, and so are the contents of rejected rows.

    Returns:
        How many problems were copied, and how many were left out since they have no licence.
    """
    licences: set[str] = set()
    num_copied = 0
    num_left_out = 0
    for path in sorted(corpus.glob("problems-*.parquet")):
        table = pq.read_table(path)
        has_licence = [bool(licence.strip()) for licence in table["licence"].to_pylist()]
        kept = _filter(table, has_licence)
        pq.write_table(kept, target / path.name)
        # The lineage of a file of problems is in a file of the same number.
        number = path.stem.partition("-")[2]
        lineage_name = f"lineage-{number}.parquet"
        kept_ids = set(kept["id"].to_pylist())
        _copy_lineage(corpus / lineage_name, target / lineage_name, kept_ids)
        licences.update(kept["licence"].to_pylist())
        num_copied += len(kept)
        num_left_out += len(table) - len(kept)
    if not num_copied:
        raise DataError(
            f"{corpus}: no problem has a licence, so none may be passed on; "
            "write `licence` under [[sources]] of its config, as the source states it, "
            "and build again"
        )
    for path in sorted(corpus.glob("rejected-*.parquet")):
        rejected = pq.read_table(path, columns=_REJECTED_COLUMNS)
        pq.write_table(rejected, target / path.name)
    shutil.copyfile(corpus / "funnel.json", target / "funnel.json")
    # Of what is published alone, since problems without a licence are left out.
    licence = find_licence(licences)
    _copy_card(corpus, target, licence=licence, num_left_out=num_left_out)
    record = read_json(corpus / CROISSANT, what="metadata")
    # `write_croissant` adds the type again.
    sources = [_without_type(source) for source in record["isBasedOn"]]
    write_croissant(target, name=record["name"], licence=licence, sources=sources)
    manifest = {**read_json(corpus / MARKER, what="manifest"), "num_problems": num_copied}
    write_json(target / MARKER, manifest)
    return num_copied, num_left_out


def _copy_lineage(source: Path, target: Path, kept_ids: Collection[str]) -> None:
    """Copy the lines of lineage that belong to these problems."""
    lineage = pq.read_table(source)
    is_kept = [problem_id in kept_ids for problem_id in lineage["id"].to_pylist()]
    pq.write_table(_filter(lineage, is_kept), target)


def _filter(table: pa.Table, is_kept: Sequence[bool]) -> pa.Table:
    return table.filter(pa.array(is_kept, pa.bool_()))


def _without_type(source: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in source.items() if key != "@type"}


def _copy_card(
    corpus: Path,
    target: Path,
    *,
    licence: str,
    num_left_out: int,
) -> None:
    """Copy a corpus's card, with the licence of the published part and a line on what is left
    out."""
    text = (corpus / CARD).read_text(encoding="utf-8")
    text = re.sub(r"^license: .*$", f"license: {licence}", text, count=1, flags=re.MULTILINE)
    line = (
        f"Not published: {num_left_out} problems of which no licence is stated, "
        "and the contents of rejected rows."
    )
    write_text(target / CARD, f"{text.rstrip()}\n\n{line}\n")


@dataclass(frozen=True, slots=True)
class PushResult:
    """Address of a corpus that was uploaded to the Hub, and how many problems it has."""

    address: str
    num_problems: int
    num_left_out: int
    """Problems without a licence, which are not uploaded."""


def push(corpus: Path, *, repo: str, is_private: bool) -> PushResult:
    """Upload a corpus as it may be published (see `copy_published`).

    Raises:
        DataError: it is not finished, no problem has a licence, or the upload fails.
    """
    if not (corpus / MARKER).exists():
        raise DataError(
            f"{corpus} holds no finished corpus (no {MARKER}); type `microcoder data build` first"
        )
    try:
        import httpx
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise DataError(f"push needs huggingface_hub; type: {how_to_install('data')}") from None
    hub = HfApi()
    try:
        # A copy: nothing is uploaded that may not be published.
        with TemporaryDirectory() as folder:
            num_problems, num_left_out = copy_published(corpus, Path(folder))
            address = hub.create_repo(
                repo,
                repo_type="dataset",
                private=is_private,
                exist_ok=True,
            )
            # An earlier upload may have had files that this corpus lacks.
            hub.upload_folder(
                folder_path=folder,
                repo_id=repo,
                repo_type="dataset",
                delete_patterns=["*.parquet"],
            )
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"{repo} cannot be pushed ({reason}); "
            "type `hf auth login`, or check the name and the network"
        ) from None
    return PushResult(str(address), num_problems, num_left_out)
