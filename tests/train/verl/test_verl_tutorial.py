"""The tutorial of the judge in stock verl, as it is written: its last command on a CPU,
without vLLM.
"""

import os
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.doc_pages import DOCS, do_tutorial, stand_in
from tests.train.verl.verl_runs import ON_CPU, needs_verl

# What a run of engine verl without GPUs is told, and what its recipe decides;
# verl_runs has verl's processes learn it.
STOCK = """ actor_rollout_ref.rollout.name=transformers \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.fsdp_config.strategy=fsdp2 \
    actor_rollout_ref.actor.fsdp_config.dtype=float32 trainer.save_freq=-1 trainer.test_freq=-1 \
    trainer.val_before_train=False hydra.run.dir=logs hydra.output_subdir=null \
    +ray_kwargs.ray_init.include_dashboard=False """


@needs_verl
@pytest.mark.long
def test_the_judge_as_a_reward_in_verl(tmp_path: Path, tiny_checkpoint: Path) -> None:
    from microcoder.train.verl.translate import as_words

    folder = tmp_path / "folder"
    folder.mkdir()
    environment = stand_in("Qwen/Qwen3-0.6B", tiny_checkpoint, tmp_path)
    # What verl asks of a Qwen3 by its name: a chat template, and the token that ends a turn.
    (snapshot,) = (tmp_path / "hub").glob("*/snapshots/*")
    tokenizer: Any = AutoTokenizer.from_pretrained(snapshot)
    tokenizer.add_tokens("<|im_end|>", special_tokens=True)
    tokenizer.chat_template = "{% for turn in messages %}{{ turn.content }}\n{% endfor %}"
    tokenizer.save_pretrained(snapshot)
    options = tomllib.loads(ON_CPU.read_text())["verl"]
    of_verl = {}
    for name, value in options.items():
        if "microcoder" not in name:
            of_verl[name] = value
    on_cpu = as_words(of_verl)
    output = do_tutorial(
        DOCS / "tutorials" / "reward-verl.md",
        folder,
        environment={
            **environment,
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        },
        more={"main_ppo": STOCK + shlex.join(on_cpu)},
    )
    assert "critic/score/mean" in output
    assert "is_accepted" in output or "step:2" in output
