"""A checkpoint's generation config, when vLLM samples: it says what ends a response,
and nothing else.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.train.published_sampling import SETTINGS, publish
from tests.train.vllm_backend.vllm_runs import ON_CPU, needs_vllm

pytestmark = [needs_vllm, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
# Kinds of decoding that transformers refuses beside sampling, when it reads the file.
REFUSED_TOGETHER = {
    "num_beams",
    "num_beam_groups",
    "penalty_alpha",
    "dola_layers",
    "diversity_penalty",
}


def sample_apart(model: Path, folder: Path) -> Any:
    command = [sys.executable, "-m", "tests.train.vllm_backend.vllm_tokens", model, folder]
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **ON_CPU},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_no_setting_of_a_generation_config_changes_what_vllm_samples(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    settings = {}
    for name, value in SETTINGS.items():
        if name not in REFUSED_TOGETHER:
            settings[name] = value
    model = publish(tiny_checkpoint, tmp_path / "model", **settings)
    plain = sample_apart(tiny_checkpoint, tmp_path / "plain")
    cool, warm = plain
    assert cool != warm
    assert sample_apart(model, tmp_path / "published") == plain
