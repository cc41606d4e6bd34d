"""The tiny model as vLLM can run it; each file of this folder is a session of its own."""

import pytest


@pytest.fixture(scope="session")
def tiny_hidden_size() -> int:
    """Four heads of 32: on a CPU vLLM has no attention for heads of 16."""
    return 128
