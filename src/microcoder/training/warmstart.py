"""A micro checkpoint: a tiny Qwen3 that has read mixed right, wrong and unfinished answers.

Reinforcement learning needs a model that is right sometimes. This one learns in about two CPU-minutes to answer the
problems of `microcoder.micro` about as well as its demonstrations do, and is saved as an ordinary Hugging Face
folder, so that nothing downstream knows it from a downloaded model.
"""

from __future__ import annotations

import hashlib
import math
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import tokenizers
import torch
import transformers
from torch.nn import functional
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

import microcoder.micro
from microcoder.files import write_json
from microcoder.machine import lock_file
from microcoder.micro import Demonstration, generate_chain_demonstrations, generate_demonstrations
from microcoder.micro.chains import ChainDemonstration
from microcoder.training.config import TrainConfig
from microcoder.training.model_config import MicroModel, WarmStartConfig
from microcoder.training.muon import Muon
from microcoder.training.observer import Observer
from microcoder.training.tokenizer import EOS, SEPARATOR, train_tokenizer
from microcoder.training.weights import model_source

_MARKER = "warmstart.json"
_TOKENIZER_DEMONSTRATIONS = 4000
_MAX_POSITIONS = 1024
_EMBEDDING_RATE = 0.4
"""Learning rate of embeddings and norms (AdamW) as a share of that of the matrices (Muon)."""

Progress = Callable[[int, int, float], None]
"""Called regularly with the steps done, the total and the loss."""


def find_model(config: TrainConfig, observer: Observer) -> str:
    """Return the folder or the hub name of the model that a recipe starts from; warm-start the micro model first.

    Raises:
        DataError: the folder holds no model.
    """
    model = config.model
    if not isinstance(model, MicroModel):
        return model_source(model.path)
    observer.phase("warm start")

    def tell(step: int, num_steps: int, loss: float) -> None:
        if step % max(1, num_steps // 6) == 0:
            observer.note(f"warm start of the micro model: step {step}/{num_steps}, loss {loss:.2f}")

    return str(build_micro_checkpoint(model.warm_start, cache=model.cache, on_progress=tell))


def build_micro_checkpoint(config: WarmStartConfig, *, cache: Path, on_progress: Progress | None = None) -> Path:
    """Return the folder of a micro checkpoint, training it unless `cache` holds it already.

    The folder's name is a digest of the config, the code of the micro world and the versions of the libraries. It
    appears whole, by a rename; a process that wants the same one meanwhile waits for it.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"micro-{checkpoint_digest(config)}"
    with (cache / f".{folder.name}.lock").open("w") as lock:
        lock_file(lock, waits=True)
        if (folder / _MARKER).exists():
            return folder
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=cache))
        try:
            _build(config, partial, on_progress)
            if folder.exists():
                shutil.rmtree(folder)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def checkpoint_digest(config: WarmStartConfig) -> str:
    """Return a digest of everything that determines the weights: equal digests on one machine mean equal
    checkpoints."""
    digest, here = hashlib.sha256(config.model_dump_json().encode()), Path(__file__)
    world = sorted(path for path in Path(microcoder.micro.__file__).parent.iterdir() if path.suffix in (".py", ".toml"))
    for source in (*world, here, here.with_name("tokenizer.py"), here.with_name("muon.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    for library in (torch, transformers, tokenizers):
        digest.update(library.__version__.encode())
    return digest.hexdigest()[:16]


def _build(config: WarmStartConfig, folder: Path, on_progress: Progress | None) -> None:
    lessons = _draw_lessons(config)
    texts = (
        text
        for demonstration in lessons[-1].demonstrations[:_TOKENIZER_DEMONSTRATIONS]
        for text in (demonstration.statement, demonstration.response)
    )
    tokenizer = train_tokenizer(texts, vocab_size=config.vocab_size, joins_signs=config.world == "chains")
    examples = [_encode(lesson.demonstrations, tokenizer, config.max_tokens) for lesson in lessons]
    batches = chain.from_iterable(
        islice(_batches(chosen, config), lesson.num_steps) for chosen, lesson in zip(examples, lessons, strict=True)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = _create_model(config, tokenizer)
        loss = _train(model, batches, config, on_progress)
    model.generation_config = GenerationConfig(
        do_sample=True, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_json(
        folder / _MARKER,
        {"config": config.model_dump(mode="json"), "num_parameters": model.num_parameters(), "final_loss": loss},
    )


@dataclass(frozen=True, slots=True)
class _Lesson:
    """Demonstrations for some steps."""

    demonstrations: Sequence[Demonstration | ChainDemonstration]
    num_steps: int


def _draw_lessons(config: WarmStartConfig) -> list[_Lesson]:
    """Return the stages of demonstrations; of chains first complete reasoning, then the mixture."""
    num, seed = config.num_demonstrations, config.seed
    if config.world == "operations":
        return [_Lesson(list(generate_demonstrations(num=num, seed=seed, noise=config.noise)), config.num_steps)]
    num_thorough = round(config.thorough_share * config.num_steps)
    return [
        _Lesson(
            list(generate_chain_demonstrations(num=num, seed=seed, shares=config.thinking, thorough=thorough)), steps
        )
        for thorough, steps in ((True, num_thorough), (False, config.num_steps - num_thorough))
    ]


def _create_model(config: WarmStartConfig, tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            num_key_value_heads=config.num_kv_heads,
            head_dim=config.hidden_size // config.num_heads,
            max_position_embeddings=_MAX_POSITIONS,
            tie_word_embeddings=True,
            attention_dropout=0.0,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    # Qwen3's own 0.02 is for wide models; at this width 1/sqrt(fan-in) learns several times faster.
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.05)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embed_tokens" not in name:
            scale = parameter.shape[1] ** -0.5
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                scale *= (2 * config.num_layers) ** -0.5
            torch.nn.init.normal_(parameter, std=scale)
    return model


@dataclass(frozen=True, slots=True)
class _Example:
    ids: list[int]
    prompt_length: int


def _encode(
    demonstrations: Sequence[Demonstration | ChainDemonstration], tokenizer: PreTrainedTokenizerFast, max_tokens: int
) -> list[_Example]:
    vocabulary = tokenizer.get_vocab()
    separator, end = vocabulary[SEPARATOR], vocabulary[EOS]
    prompts = tokenizer([item.statement for item in demonstrations])["input_ids"]
    responses = tokenizer([item.response for item in demonstrations])["input_ids"]
    return [
        _Example([*prompt, separator, *response, end][:max_tokens], len(prompt) + 1)
        for prompt, response in zip(prompts, responses, strict=True)
    ]


def _train(
    model: Qwen3ForCausalLM, batches: Iterable[list[_Example]], config: WarmStartConfig, on_progress: Progress | None
) -> float:
    """Cross entropy over statement and response; return the mean loss of the last steps."""
    is_matrix = {name: parameter.dim() == 2 and "embed" not in name for name, parameter in model.named_parameters()}
    muon = Muon(parameter for name, parameter in model.named_parameters() if is_matrix[name])
    adam = torch.optim.AdamW(
        (parameter for name, parameter in model.named_parameters() if not is_matrix[name]),
        betas=(0.9, 0.95),
        weight_decay=0.0,
        fused=True,
    )
    model.train()
    smoothed = 0.0
    for step, batch in zip(range(1, config.num_steps + 1), batches, strict=False):
        share = _schedule(step, config.num_steps)
        adam.param_groups[0]["lr"] = _EMBEDDING_RATE * config.learning_rate * share
        model.zero_grad(set_to_none=True)
        loss = _loss(model, batch, config.prompt_weight)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        muon.step(config.learning_rate * share)
        smoothed = loss.item() if step == 1 else 0.95 * smoothed + 0.05 * loss.item()
        if on_progress and (step % 20 == 0 or step == config.num_steps):
            on_progress(step, config.num_steps, smoothed)
    model.eval()
    return smoothed


def _batches(examples: Sequence[_Example], config: WarmStartConfig) -> Iterator[list[_Example]]:
    """Batches of about equal length, so that little is padding, in an order that mixes lengths again."""
    generator = random.Random(f"microcoder warm start {config.seed}")
    while True:
        order = list(range(len(examples)))
        generator.shuffle(order)
        window = config.batch_size * 16
        for start in range(0, len(order), window):
            chosen = sorted((examples[i] for i in order[start : start + window]), key=lambda item: len(item.ids))
            batches = [chosen[i : i + config.batch_size] for i in range(0, len(chosen), config.batch_size)]
            generator.shuffle(batches)
            yield from batches


def _schedule(step: int, num_steps: int) -> float:
    """Return the share of the peak learning rate at a step, from 1."""
    warm_up = max(1.0, 0.06 * num_steps)
    return min(1.0, step / warm_up) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - 1) / num_steps)))


def _loss(model: Qwen3ForCausalLM, batch: Sequence[_Example], prompt_weight: float) -> torch.Tensor:
    """Weighted cross entropy; logits are computed only where a token counts."""
    width = max(len(example.ids) for example in batch)
    ids_B_T = torch.zeros(len(batch), width, dtype=torch.long)
    weights_B_T = torch.zeros(len(batch), width)
    for row, example in enumerate(batch):
        ids_B_T[row, : len(example.ids)] = torch.tensor(example.ids)
        weights_B_T[row, 1 : example.prompt_length] = prompt_weight
        weights_B_T[row, example.prompt_length : len(example.ids)] = 1.0
    # Padding is on the right: a causal model never sees it, so no attention mask is needed.
    hidden = model.model(input_ids=ids_B_T[:, :-1], use_cache=False).last_hidden_state
    counted = weights_B_T[:, 1:] > 0
    losses = functional.cross_entropy(model.lm_head(hidden[counted]), ids_B_T[:, 1:][counted], reduction="none")
    weights = weights_B_T[:, 1:][counted]
    return (losses * weights).sum() / weights.sum()
