"""The private names of TRL and transformers that engine trl rests on: what a release changes fails here first."""

from __future__ import annotations

import inspect
from pathlib import Path

import trl.trainer.utils
from trl import GRPOTrainer
from upstream import parameters, private_names

import microcoder.train.trl

FOLDER = Path(str(microcoder.train.trl.__file__)).parent
METHODS = {
    "_compute_loss": "model, inputs",
    "_generate": "prompts",
    "_generate_and_score_completions": "inputs",
    "_generate_single_turn": "prompt_ids, images, multimodal_fields, num_generations, has_tool_images",
    "_get_per_token_logps_and_entropies": "model, input_ids, attention_mask, logits_to_keep, batch_size, "
    "compute_entropy, "
    "compute_aux_loss, pixel_values, image_grid_thw, num_images, pixel_attention_mask, spatial_shapes, num_tiles, "
    "image_sizes, token_type_ids, mm_token_type_ids, image_position_ids",
    "_save_checkpoint": "model, trial",
    "_tokenize_prompts": "prompts",
}
"""Of `GRPOTrainer`, which ours extend or call: name and parameters."""
ATTRIBUTES = {"_entropy_bonus_enabled"}
"""Of a `GRPOTrainer`: what frugal.py asks before it leaves out a row."""


def test_the_list_is_whole() -> None:
    assert private_names(FOLDER) == METHODS.keys() | ATTRIBUTES


def test_methods_that_ours_extend_take_what_they_took() -> None:
    assert {name: parameters(getattr(GRPOTrainer, name)) for name in METHODS} == METHODS


def test_attributes_and_the_cell_of_the_temperature_are_there() -> None:
    source = inspect.getsource(GRPOTrainer)
    assert all(f"self.{name}" in source for name in ATTRIBUTES)
    # `sampling.py` finds the temperature of the fused LM head as a free variable of this function.
    code = inspect.getsource(trl.trainer.utils)
    assert "def _fused_forward(" in code
    assert "temperature" in code[code.index("def _fused_forward(") :]
