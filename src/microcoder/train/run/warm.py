"""Warm start of the micro model: a tiny Qwen3, trained from scratch.

It learns from mixed right, wrong and unfinished answers.

Reinforcement learning needs a model that is right sometimes. This one learns in about two
CPU-minutes to answer the problems of `microcoder.data.micro` about as well as its demonstrations
do. It is saved as an ordinary Hugging Face folder, to be used like a downloaded model.

Its tokenizer is byte-level BPE whose tokens may span most of a code line. Long tokens keep
responses short, and on a CPU a response costs by the token. Digits are tokens of their own (or with
a sign before them), so that a constant can be copied; newlines too, so that lines do not merge.

Muon trains the matrices: momentum whose singular values are all set to about one. After 200 steps
of a warm start the loss was 0.71 with it and 0.94 with AdamW only (one run each). torch.optim.Muon
computes in bfloat16 and one matrix at a time; on a CPU without bfloat16 units a step took over
three times as long.
"""

import hashlib
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import tokenizers
import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

import microcoder.data.micro
from microcoder.data.micro import ChainDemonstration, generate_chain_demonstrations
from microcoder.judge.core.files import new_folder, write_json
from microcoder.judge.core.machine import lock_file
from microcoder.judge.core.syntax import dump_meaning
from microcoder.train.recipe.recipe import (
    MICRO_HEADS,
    MICRO_INTERMEDIATE_SIZE,
    MicroModel,
    TrainConfig,
    WarmStartConfig,
)
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.weights import model_source

PAD = "<|pad|>"
EOS = "<|eos|>"
SEPARATOR = "<|sep|>"
"""Token between the statement and the response."""
_PIECES = r"[+*-]\d|\d|\n|(?:[^\n\d+*-]|[+*-](?!\d))+"
"""Pieces of text that are tokenized apart.

A sign and its digit, such as `*7`, a step of a chain, are one piece.
"""
_MAX_TOKEN_LENGTH = 36
"""Most characters of a token: most of a code line."""

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<|sep|>{{ message['content'] }}<|eos|>"
    "{% else %}{{ message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|sep|>{% endif %}"
)
"""Chat template of the micro model: the statement, a separator, the response, an end."""


def train_tokenizer(texts: Iterable[str], *, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a tokenizer of at most `vocab_size` tokens; the same texts give the same tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, EOS, SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=_MAX_TOKEN_LENGTH,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        additional_special_tokens=[SEPARATOR],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Muon's own: a Newton-Schulz step that raises small singular values fast."""
_ITERATIONS = 5
_MOMENTUM = 0.95


class Muon:
    """Optimizer of matrices by orthogonalised Nesterov momentum.

    Vectors and embeddings need another optimizer.
    """

    def __init__(self, matrices: Iterable[torch.nn.Parameter]) -> None:
        by_shape: dict[torch.Size, list[torch.nn.Parameter]] = {}
        for matrix in matrices:
            # Matrices of one shape are orthogonalised together, which is faster.
            by_shape.setdefault(matrix.shape, []).append(matrix)
        self._groups = list(by_shape.values())
        self._buffers = [torch.zeros(len(group), *group[0].shape) for group in self._groups]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Update every matrix by its gradient.

        A step is about as long as AdamW's at the same rate.
        """
        for group, buffer in zip(self._groups, self._buffers, strict=True):
            gradients = torch.stack([matrix.grad for matrix in group if matrix.grad is not None])
            buffer.lerp_(gradients, 1 - _MOMENTUM)
            # Nesterov's look ahead: between the gradient and the momentum.
            ahead = gradients.lerp(buffer, _MOMENTUM)
            updates = orthogonalise(ahead)
            longer_side = max(group[0].shape)
            length = learning_rate * 0.2 * longer_side**0.5
            for matrix, update in zip(group, updates, strict=True):
                matrix.sub_(update, alpha=length)


def orthogonalise(matrices: torch.Tensor) -> torch.Tensor:
    """Return a stack of matrices with singular values near one, by Newton-Schulz iterations."""
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    result = matrices.mT if is_tall else matrices
    result = result / (result.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        gram = result @ result.mT
        result = a * result + (b * gram + c * gram @ gram) @ result
    return result.mT if is_tall else result


MICRO_CACHE = Path(".cache/microcoder")
"""Folder of built checkpoints, in the working folder like the runs."""
_MARKER = "warmstart.json"
_LEARNING_RATE = 1e-2
"""Peak learning rate of Muon; linear warm-up over 6 % of the steps, then cosine to 5 %."""
_MAX_TOKENS = 192
"""Length at which statement and response together are truncated.

Only rambling answers are longer.
"""
_TOKENIZER_DEMONSTRATIONS = 4000
"""Demonstrations that the tokenizer is trained on."""
_MAX_POSITIONS = 1024
THOROUGH_SHARE = 0.7
"""Share of the steps that train on demonstrations that think to the end; the mixture follows."""
_EMBEDDING_RATE = 0.4
"""Learning rate of embeddings and norms (AdamW) as a share of that of the matrices (Muon)."""


def find_model(config: TrainConfig, observer: Observer) -> str:
    """Return the folder or the Hub's name of the model that a recipe starts from.

    The micro model is built first if it is not cached.
    """
    model = config.model
    if not isinstance(model, MicroModel):
        return model_source(model.path, note=observer.note)
    observer.phase("warm start")
    return str(build_micro_checkpoint(model.warm_start, observer, cache=MICRO_CACHE))


def build_micro_checkpoint(config: WarmStartConfig, observer: Observer, *, cache: Path) -> Path:
    """Return the folder of a micro checkpoint, training it unless `cache` holds it already.

    The folder's name is a digest of the config, the code of the micro world and the versions of the
    libraries. It is renamed into place when it is complete; other processes that need it wait.
    """
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"micro-{checkpoint_digest(config)}"
    with (cache / f".{folder.name}.lock").open("w") as lock:
        # Another process may be building the same one.
        lock_file(lock, waits=True)
        if not (folder / _MARKER).exists():
            with new_folder(folder) as partial:
                _build(config, observer, partial)
    return folder


def checkpoint_digest(config: WarmStartConfig) -> str:
    """Return a digest of all that determines the weights.

    On one machine, equal digests mean equal checkpoints.
    """
    digest = hashlib.sha256(config.model_dump_json().encode())
    world = sorted(Path(microcoder.data.micro.__file__).parent.glob("*.py"))
    # By their meaning: comments and layout change no weight.
    for source in (*world, Path(__file__)):
        digest.update(f"{source.name}\0{dump_meaning(source)}".encode())
    for library in (torch, transformers, tokenizers):
        digest.update(library.__version__.encode())
    return digest.hexdigest()[:16]


def _build(config: WarmStartConfig, observer: Observer, folder: Path) -> None:
    """Train a micro checkpoint and write it to a folder."""
    draw = partial(
        generate_chain_demonstrations,
        num=config.num_demonstrations,
        seed=config.seed,
        shares=config.thinking,
    )
    complete = list(draw(thorough=True))
    mixture = list(draw(thorough=False))
    texts: list[str] = []
    for demonstration in mixture[:_TOKENIZER_DEMONSTRATIONS]:
        texts += [demonstration.statement, demonstration.response]
    tokenizer = train_tokenizer(texts, vocab_size=config.vocab_size)
    # First complete reasoning, then the mixture.
    num_complete = round(THOROUGH_SHARE * config.num_steps)
    batches = chain(
        islice(_batches(_encode(complete, tokenizer), config), num_complete),
        islice(_batches(_encode(mixture, tokenizer), config), config.num_steps - num_complete),
    )
    # Building it must not change what the run draws.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = _create_model(config, tokenizer)
        _train(model, batches, config, observer)
    model.generation_config = GenerationConfig(
        do_sample=True, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_json(folder / _MARKER, config.model_dump(mode="json"))


def _create_model(config: WarmStartConfig, tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return an untrained model, its weights drawn."""
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            intermediate_size=MICRO_INTERMEDIATE_SIZE,
            num_hidden_layers=config.num_layers,
            num_attention_heads=MICRO_HEADS,
            num_key_value_heads=MICRO_HEADS,
            head_dim=config.hidden_size // MICRO_HEADS,
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
            # 1/sqrt(fan-in).
            scale = parameter.shape[1] ** -0.5
            # They add to the residual stream, twice in each layer.
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                scale *= (2 * config.num_layers) ** -0.5
            torch.nn.init.normal_(parameter, std=scale)
    return model


@dataclass(frozen=True, slots=True)
class _Example:
    """A demonstration in tokens."""

    ids: list[int]
    prompt_length: int
    """Tokens before the response, the separator included."""


def _encode(
    demonstrations: Sequence[ChainDemonstration], tokenizer: PreTrainedTokenizerFast
) -> list[_Example]:
    """Return demonstrations in tokens, truncated to the length that is trained on."""
    vocabulary = tokenizer.get_vocab()
    separator = vocabulary[SEPARATOR]
    end = vocabulary[EOS]
    prompts = tokenizer([item.statement for item in demonstrations])["input_ids"]
    responses = tokenizer([item.response for item in demonstrations])["input_ids"]
    return [
        _Example([*prompt, separator, *response, end][:_MAX_TOKENS], len(prompt) + 1)
        for prompt, response in zip(prompts, responses, strict=True)
    ]


def _train(
    model: Qwen3ForCausalLM,
    batches: Iterable[list[_Example]],
    config: WarmStartConfig,
    observer: Observer,
) -> None:
    """Train by cross entropy over responses; report the smoothed loss to the observer six times."""
    matrices = []
    others = []
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embed" not in name:
            matrices.append(parameter)
        else:
            others.append(parameter)
    muon = Muon(matrices)
    adam = torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    model.train()
    smoothed = 0.0
    for step, batch in zip(range(1, config.num_steps + 1), batches, strict=False):
        share = _schedule(step, config.num_steps)
        adam.param_groups[0]["lr"] = _EMBEDDING_RATE * _LEARNING_RATE * share
        model.zero_grad(set_to_none=True)
        loss = _loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        muon.step(_LEARNING_RATE * share)
        if step == 1:
            smoothed = loss.item()
        else:
            smoothed = 0.95 * smoothed + 0.05 * loss.item()
        if step % max(1, config.num_steps // 6) == 0:
            observer.note(
                f"warm start of the micro model: step {step}/{config.num_steps}, loss "
                f"{smoothed:.2f}"
            )
    model.eval()


def _batches(examples: Sequence[_Example], config: WarmStartConfig) -> Iterator[list[_Example]]:
    """Yield batches of examples, in mixed order.

    The examples of a batch have similar lengths, so that there is little padding.
    """
    generator = random.Random(f"microcoder warm start {config.seed}")
    while True:
        order = list(range(len(examples)))
        generator.shuffle(order)
        # Sorted within a window only: sorted as a whole, an epoch would go from short to long.
        window = config.batch_size * 16
        for start in range(0, len(order), window):
            chosen = [examples[index] for index in order[start : start + window]]
            chosen.sort(key=lambda example: len(example.ids))
            batches = []
            for first in range(0, len(chosen), config.batch_size):
                batches.append(chosen[first : first + config.batch_size])
            generator.shuffle(batches)
            yield from batches


def _schedule(step: int, num_steps: int) -> float:
    """Return the share of the peak learning rate in a step: linear warm-up, then cosine."""
    warm_up = max(1.0, 0.06 * num_steps)
    cosine = math.cos(math.pi * (step - 1) / num_steps)
    return min(1.0, step / warm_up) * (0.05 + 0.95 * 0.5 * (1 + cosine))


def _loss(model: Qwen3ForCausalLM, batch: Sequence[_Example]) -> torch.Tensor:
    """Return the mean cross entropy of a batch over its responses' tokens."""
    # The digits of a statement are drawn: there is nothing to learn in them, so that they have no
    # logits.
    width = max(len(example.ids) for example in batch)
    ids_B_T = torch.zeros(len(batch), width, dtype=torch.long)
    counts_B_T = torch.zeros(len(batch), width, dtype=torch.bool)
    for row, example in enumerate(batch):
        ids_B_T[row, : len(example.ids)] = torch.tensor(example.ids)
        counts_B_T[row, example.prompt_length : len(example.ids)] = True
    # Padding is on the right: a causal model never sees it, so no attention mask is needed.
    inputs = ids_B_T[:, :-1]
    hidden = model.model(input_ids=inputs, use_cache=False).last_hidden_state
    # Each position predicts the token behind it.
    is_counted = counts_B_T[:, 1:]
    targets = ids_B_T[:, 1:][is_counted]
    logits = model.lm_head(hidden[is_counted])
    losses = functional.cross_entropy(logits, targets, reduction="none")
    return losses.sum() / is_counted.sum()
