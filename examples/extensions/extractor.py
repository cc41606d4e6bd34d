"""An extractor of your own: `extractor = "extractor.py:tagged"` in a recipe or an evaluation."""


def tagged(response: str, is_truncated: bool, *, tag: str = "answer") -> str | None:
    """Return what stands between the last <answer> and </answer>."""
    before, closed, _ = response.rpartition(f"</{tag}>")
    _, opened, program = before.rpartition(f"<{tag}>")
    if opened and closed:
        return program.strip()
    return None
