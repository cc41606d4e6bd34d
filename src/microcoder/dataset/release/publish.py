"""A finished corpus on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

from microcoder.dataset.release.tables import MARKER
from microcoder.errors import DataError

_PUBLISHED = ("README.md", MARKER, "funnel.json", "*.parquet", "plots/*.svg", "browse/**")


def push(corpus: Path, *, repo: str, is_private: bool) -> str:
    """Upload a corpus as it is; return its address.

    Raises:
        DataError: it is not finished, the library is missing, or the Hub refuses.
    """
    if not (corpus / MARKER).exists():
        raise DataError(f"{corpus} holds no finished corpus (no {MARKER}); type `microcoder data build` first")
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise DataError("push needs huggingface_hub; type: pip install 'microcoder[data]'") from None
    hub = HfApi()
    try:
        address = hub.create_repo(repo, repo_type="dataset", private=is_private, exist_ok=True)
        hub.upload_folder(folder_path=corpus, repo_id=repo, repo_type="dataset", allow_patterns=list(_PUBLISHED))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        said = str(error).strip().split("\n")[0]
        raise DataError(f"{repo} cannot be pushed ({said}); type `hf auth login`, or check the name") from None
    return str(address)
