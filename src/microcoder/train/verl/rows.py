"""verl's rows <-> our groups.

The judged responses of a step are read, and rewards and advantages are written back.

verl keeps a step's rows in its TransferQueue under keys `{prompt}_{session}_{output}`. A session's
last output is the response that is judged; its reward and advantage hold for all outputs of the
session.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import transfer_queue as tq
from pydantic import TypeAdapter
from tensordict import TensorDict
from verl.utils.config import omega_conf_to_dataclass

from microcoder.judge.core.extract import Extractor
from microcoder.judge.core.rewards import Reward
from microcoder.judge.core.types import Verdict
from microcoder.train.algorithm.masking import draw_uniform
from microcoder.train.algorithm.scoring import JudgedRollout, Rules, decide_group, score_apart
from microcoder.train.rollouts import RolloutReader, ScoredRollout, opens_thinking
from microcoder.train.run.weights import end_token_ids
from microcoder.train.verl.names import COLUMN, problem_name

if TYPE_CHECKING:
    from omegaconf import DictConfig
    from transformers import PreTrainedTokenizerBase

FIELD = "microcoder"
"""Key in a response's `reward_extra_info` that holds its `ResponseJudgement` as JSON."""


@dataclass(frozen=True, slots=True)
class ResponseJudgement:
    """Verdict, reward and problem tier of one response."""

    verdict: Verdict
    reward: Reward
    tier: str | None

    def as_json(self) -> str:
        """Return this as JSON text, for verl's batches."""
        return json.dumps(_JUDGED.dump_python(self, mode="json"))

    @classmethod
    def read(cls, extra: Mapping[str, Any]) -> ResponseJudgement:
        """Return the value that our reward manager stored in a response's `reward_extra_info`."""
        return _JUDGED.validate_python(json.loads(extra[FIELD]))


_JUDGED = TypeAdapter(ResponseJudgement)


def build_reader(config: DictConfig, tokenizer: PreTrainedTokenizerBase) -> RolloutReader:
    """Return the reader of responses under verl's configuration."""
    model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
    options = dict(config.data.get("apply_chat_template_kwargs") or {})
    ends = end_token_ids(tokenizer, model.generation_config)
    return RolloutReader(tokenizer, tuple(ends), opens_thinking(tokenizer, options), options)


_FIELDS = ["responses", "extra_fields", "extra_info", "data_source", "raw_prompt", COLUMN]
"""Columns of verl's rows that are read for each response."""


@dataclass(frozen=True, slots=True)
class SampledResponse:
    """One judged response of a batch, still without its group's advantage."""

    name: str
    """`{prompt}_{session}`, the first two parts of verl's keys."""
    judged: JudgedRollout
    index: int
    """Index among the samples of its problem, from 0."""
    row: int
    """Row of its problem in the data."""
    max_response_tokens: int
    """The length limit that the response was sampled under."""
    weights_step: int | None
    """Number of steps that the oldest weights that sampled it had been trained.

    None if the agent loop reports none.
    """


def session_of(key: str) -> str:
    """Return `{prompt}_{session}` of a row's key, `{prompt}_{session}_{output}`."""
    return key.rsplit("_", 1)[0]


def read_sessions(
    batch: Any,
    *,
    reader: RolloutReader,
    extract: Extractor,
    max_response_tokens: int,
    seed: int,
    step: int,
) -> list[list[SampledResponse]]:
    """Return the sessions of a batch, a list per prompt in the order of its samples.

    Padding rows are left out.

    Args:
        batch: verl's.
        reader: reads responses, see `build_reader`.
        extract: finds the program in a response.
        max_response_tokens: for rows without a limit of their own.
        seed: of the mask's draws.
        step: of the mask's draws.
    """
    tags = dict(zip(batch.keys, batch.tags, strict=True))
    keys = _find_last_outputs(tags)
    # All at once: each call goes over the network.
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=_FIELDS)
    columns = {name: _as_list(data, name, len(keys)) for name in _FIELDS}
    groups: defaultdict[str, list[SampledResponse]] = defaultdict(list)
    for position, key in enumerate(keys):
        prompt, index, _ = key.rsplit("_", 2)
        row = {name: column[position] for name, column in columns.items()}
        limit = max_response_tokens
        if row[COLUMN]:
            limit = row[COLUMN]["max_response_tokens"]
        groups[prompt].append(
            SampledResponse(
                name=session_of(key),
                judged=_read_judged(
                    row, int(index), reader, extract, limit=limit, seed=seed, step=step
                ),
                index=int(index),
                row=int((row["extra_info"] or {}).get("index", 0)),
                max_response_tokens=limit,
                weights_step=tags[key].get("min_global_steps"),
            )
        )
    return [sorted(groups[uid], key=lambda session: session.index) for uid in sorted(groups)]


def _find_last_outputs(tags: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the key of each session's last output, which is judged; `tags` is by key."""
    last_keys: dict[str, str] = {}
    last_outputs: dict[str, int] = {}
    for key, tag in tags.items():
        # verl pads a batch to a multiple of its processes.
        if tag.get("is_padding", False):
            continue
        session, output = key.rsplit("_", 1)
        # An agent loop may have several outputs in a session.
        if int(output) >= last_outputs.get(session, 0):
            last_keys[session] = key
            last_outputs[session] = int(output)
    return list(last_keys.values())


def _read_judged(
    row: Mapping[str, Any],
    index: int,
    reader: RolloutReader,
    extract: Extractor,
    *,
    limit: int,
    seed: int,
    step: int,
) -> JudgedRollout:
    """Return what a row says of its response: text, program, verdict, reward and mask draw."""
    stored = ResponseJudgement.read((row["extra_fields"] or {}).get("reward_extra_info") or {})
    extra_info = row["extra_info"] or {}
    name = problem_name(extra_info, row["data_source"] or "")
    prompt = ""
    if row["raw_prompt"]:
        # With all that the chat template adds: what the model was given.
        prompt = reader.render(row["raw_prompt"])
    (rollout,) = reader.read(name, prompt, [row["responses"]], max_response_tokens=limit)
    program = extract(
        rollout.completion,
        is_truncated=rollout.is_truncated,
        language=extra_info.get("language", "python"),
    )
    return JudgedRollout(
        rollout=rollout,
        program=program,
        verdict=stored.verdict,
        reward=stored.reward,
        draw=draw_uniform(seed=seed, step=step, problem_id=name, sample_index=index),
        tier=stored.tier,
    )


def sort_rows(batch: Any) -> None:
    """Sort the rows of a batch by prompt, session and output.

    They come in the order in which they were finished.
    """
    ranks: list[tuple[str, int, int]] = []
    for key in batch.keys:
        prompt, session, output = key.rsplit("_", 2)
        ranks.append((prompt, int(session), int(output)))
    batch.reorder(sorted(range(len(ranks)), key=ranks.__getitem__))


def _as_list(data: Any, name: str, size: int) -> list[Any]:
    """Return a column of verl's data with a value for each row; None where there is no column."""
    if name not in set(data.keys()):
        return [None] * size
    column = data[name]
    if isinstance(column, torch.Tensor):
        return [row.tolist() for row in column.unbind()]
    # Values that are no tensors may be wrapped.
    return [getattr(value, "data", value) for value in list(column)]


def decide_groups(
    groups: Sequence[Sequence[SampledResponse]], *, rules: Rules, step: int
) -> list[list[ScoredRollout]]:
    """Return a step's groups with rewards and advantages, by the common `decide_group`.

    Each group is decided under the length limit that it was sampled under.
    """
    decided_P_G = []
    for group in groups:
        # A response may have begun under an earlier limit.
        own_rules = replace(rules, max_response_tokens=group[0].max_response_tokens)
        scored_G = decide_group([response.judged for response in group], rules=own_rules)
        decided_G = []
        for response, scored in zip(group, scored_G, strict=True):
            staleness = 0
            if response.weights_step is not None:
                # A step's newest weights are those of the step before.
                staleness = step - 1 - response.weights_step
            decided_G.append(replace(scored, staleness=staleness))
        decided_P_G.append(decided_G)
    return decided_P_G


def score_sessions(groups: Sequence[Sequence[SampledResponse]]) -> list[list[ScoredRollout]]:
    """Return held-out samples in the order of the data, with their rewards."""
    scored_P_G = []
    for group in sorted(groups, key=lambda group: group[0].row):
        scored_G = []
        for response in group:
            judged = response.judged
            scored = score_apart(
                judged.rollout, judged.program, judged.verdict, judged.tier, response.index
            )
            scored_G.append(scored)
        scored_P_G.append(scored_G)
    return scored_P_G


def write_columns(batch: Any, columns: Mapping[str, Sequence[torch.Tensor]]) -> Any:
    """Write columns of one tensor per row, in verl's nested form; return the batch."""
    nested = {}
    for name, rows in columns.items():
        # Rows of different length, one after another.
        lengths = torch.tensor([0, *map(len, rows)])
        joined = torch.cat(list(rows))
        nested[name] = torch.nested.nested_tensor_from_jagged(joined, lengths.cumsum(0))
    fields = TensorDict(nested, batch_size=len(batch))
    return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)


def read_rows(batch: Any, names: Sequence[str]) -> dict[str, list[torch.Tensor]]:
    """Return columns of a batch by name, each a list of one tensor per row."""
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=list(names)
    )
    return {name: list(data[name].unbind()) for name in names}
