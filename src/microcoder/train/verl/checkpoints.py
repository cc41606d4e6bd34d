"""verl's checkpoints as ours: a Hugging Face folder, with verl's own in `verl/` beside the weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from microcoder.train.run.checkpoints import STAGING, publish_checkpoint
from microcoder.train.runs import RunDirectory


def staging_folder(run: RunDirectory) -> Path:
    """Return where verl writes checkpoints: trainer.default_local_dir."""
    return (run.checkpoints / STAGING).absolute()


def state_folder(run: RunDirectory, step: int) -> Path:
    """Return verl's own part of a published checkpoint: trainer.resume_from_path."""
    return (run.checkpoint(step) / "verl" / f"global_step_{step}").absolute()


def publish(
    run: RunDirectory,
    *,
    step: int,
    clock: Mapping[str, float],
    keep: int,
    best: int | None,
    lora_scale: float | None = None,
) -> None:
    """Turn what verl has written into the step's checkpoint, whole or not at all.

    Every machine with training processes must see the run directory under the same path. A low-rank adapter, which
    counts `lora_scale`, is added to the weights.
    """
    written = staging_folder(run) / f"global_step_{step}"
    staged = staging_folder(run) / f"step_{step}"
    shutil.rmtree(staged, ignore_errors=True)
    (staged / "verl").mkdir(parents=True)
    written.replace(staged / "verl" / written.name)
    weights = staged / "verl" / written.name / "actor" / "huggingface"
    for file in weights.iterdir():
        file.replace(staged / file.name)
    weights.rmdir()
    if lora_scale is not None:
        merge_adapter(staged, scale=lora_scale)
    _say_stored_type(staged)
    publish_checkpoint(staged, run, step=step, clock=clock, keep=keep, best=best)


def merge_adapter(folder: Path, *, scale: float) -> None:
    """Turn the weights of an adapted model, as verl saves them, into those of the model that they make."""
    from safetensors.torch import load_file, save_file

    files = sorted(folder.glob("*.safetensors"))
    found = {name: tensor for file in files for name, tensor in load_file(str(file)).items()}
    merged = {}
    for name, tensor in found.items():
        if ".lora_" in name:
            continue
        down, up = (found.get(name.replace(".base_layer.", f".lora_{side}.default.")) for side in "AB")
        if ".base_layer." in name and down is not None and up is not None:
            tensor = (tensor.float() + scale * (up.float() @ down.float())).to(tensor.dtype)
        merged[name.removeprefix("base_model.model.").replace(".base_layer.", ".")] = tensor.contiguous()
    for file in (*files, folder / "model.safetensors.index.json"):
        file.unlink(missing_ok=True)
    save_file(merged, str(folder / "model.safetensors"), metadata={"format": "pt"})


def _say_stored_type(folder: Path) -> None:
    # verl builds the model it saves with in bfloat16 and says so in the config, whatever type the weights have.
    from safetensors import safe_open

    file = next(iter(sorted(folder.glob("*.safetensors"))), None)
    if file is None:
        return
    with safe_open(str(file), framework="pt") as tensors:
        stored = str(tensors.get_tensor(next(iter(tensors.keys()))).dtype).removeprefix("torch.")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["dtype"] = stored
    config.pop("torch_dtype", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
