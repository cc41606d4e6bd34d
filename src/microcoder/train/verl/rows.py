"""verl's rows <-> our groups: reads the judged responses of a step, and writes rewards and advantages back.

verl keeps a step's rows in its TransferQueue under keys `{prompt}_{session}_{output}`. A session's last output is the
response that is judged; its reward and advantage hold for all outputs of the session.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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

FIELD = "microcoder"
"""Key in a response's `reward_extra_info` that holds its `Judged` as JSON."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdict, reward and problem tier of one response."""

    verdict: Verdict
    worth: Reward
    tier: str | None

    def as_json(self) -> str:
        """Return this as JSON text, for verl's batches."""
        return json.dumps(_JUDGED.dump_python(self, mode="json"))

    @classmethod
    def read(cls, extra: Mapping[str, Any]) -> Judged:
        """Return the value that our reward manager stored in a response's `reward_extra_info`."""
        return _JUDGED.validate_python(json.loads(extra[FIELD]))


_JUDGED = TypeAdapter(Judged)


def build_reader(config: Any, tokenizer: Any) -> RolloutReader:
    """Return the reader of responses under verl's configuration."""
    model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
    options = dict(config.data.get("apply_chat_template_kwargs") or {})
    ends = end_token_ids(tokenizer, model.generation_config)
    return RolloutReader(tokenizer, tuple(ends), opens_thinking(tokenizer, options), options)


_FIELDS = ["responses", "extra_fields", "extra_info", "data_source", "raw_prompt", COLUMN]


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
    """Number of steps that the oldest weights that sampled it had been trained; None if the agent loop reports none."""


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
    """Return the sessions of a batch, a list per prompt in the order of its samples; padding rows are left out.

    `max_response_tokens` is for rows without a limit of their own; `seed` and `step` are for the mask's draws.
    """
    last: dict[str, tuple[int, str]] = {}
    tags = dict(zip(batch.keys, batch.tags, strict=True))
    for key, tag in tags.items():
        output = int(key.rsplit("_", 1)[1])
        if not tag.get("is_padding", False) and output >= last.get(session_of(key), (0, ""))[0]:
            last[session_of(key)] = (output, key)
    keys = [key for _, key in last.values()]
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=_FIELDS)
    columns = {name: _as_list(data, name, len(keys)) for name in _FIELDS}
    groups: defaultdict[str, list[SampledResponse]] = defaultdict(list)
    for place, key in enumerate(keys):
        row = {name: column[place] for name, column in columns.items()}
        uid, index, _ = key.rsplit("_", 2)
        limit = row[COLUMN]["max_response_tokens"] if row[COLUMN] else max_response_tokens
        found = Judged.read((row["extra_fields"] or {}).get("reward_extra_info") or {})
        about = row["extra_info"] or {}
        name = problem_name(about, row["data_source"] or "")
        # With all that the chat template adds: what the model was given.
        prompt = reader.render(row["raw_prompt"]) if row["raw_prompt"] else ""
        (rollout,) = reader.read(name, prompt, [row["responses"]], max_response_tokens=limit)
        language = about.get("language", "python")
        program = extract(rollout.completion, is_truncated=rollout.is_truncated, language=language)
        draw = draw_uniform(seed=seed, step=step, problem_id=name, sample_index=int(index))
        judged = JudgedRollout(rollout, program, found.verdict, found.worth, draw, found.tier)
        place, age = int(about.get("index", 0)), tags[key].get("min_global_steps")
        groups[uid].append(SampledResponse(session_of(key), judged, int(index), place, limit, age))
    return [sorted(groups[uid], key=lambda session: session.index) for uid in sorted(groups)]


def sort_rows(batch: Any) -> None:
    """Sort the rows of a batch by prompt, session and output: they come in the order in which they were finished."""
    parts = [key.rsplit("_", 2) for key in batch.keys]
    places = [(uid, int(session), int(output)) for uid, session, output in parts]
    batch.reorder(sorted(range(len(places)), key=places.__getitem__))


def _as_list(data: Any, name: str, size: int) -> list[Any]:
    if name not in set(data.keys()):
        return [None] * size
    column = data[name]
    if isinstance(column, torch.Tensor):
        return [row.tolist() for row in column.unbind()]
    return [getattr(value, "data", value) for value in list(column)]


def decide(
    groups: Sequence[Sequence[SampledResponse]], *, rules: Rules, step: int
) -> list[list[ScoredRollout]]:
    """Return a step's groups with rewards and advantages, each under its own limit, by the common `decide_group`."""
    decided_P_G = []
    for group in groups:
        own = replace(rules, max_response_tokens=group[0].max_response_tokens)
        scored_G = decide_group([one.judged for one in group], rules=own)
        # A step's newest weights are those of the step before.
        ages_G = [0 if one.weights_step is None else step - 1 - one.weights_step for one in group]
        decided_P_G.append(
            [replace(one, staleness=age) for one, age in zip(scored_G, ages_G, strict=True)]
        )
    return decided_P_G


def score_sessions(groups: Sequence[Sequence[SampledResponse]]) -> list[list[ScoredRollout]]:
    """Return held-out samples in the order of the data, with their rewards."""

    def score(one: SampledResponse) -> ScoredRollout:
        judged = one.judged
        return score_apart(judged.rollout, judged.program, judged.verdict, judged.tier, one.index)

    return [list(map(score, group)) for group in sorted(groups, key=lambda group: group[0].row)]


def write_columns(batch: Any, columns: Mapping[str, Sequence[torch.Tensor]]) -> Any:
    """Write columns of one tensor per row, in verl's nested form; return the batch."""
    nested = {}
    for name, rows in columns.items():
        offsets = torch.tensor([0, *map(len, rows)]).cumsum(0)
        nested[name] = torch.nested.nested_tensor_from_jagged(torch.cat(list(rows)), offsets)
    fields = TensorDict(nested, batch_size=len(batch))
    return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)


def read_rows(batch: Any, names: Sequence[str]) -> dict[str, list[torch.Tensor]]:
    """Return columns of a batch by name, each a list of one tensor per row."""
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=list(names)
    )
    return {name: list(data[name].unbind()) for name in names}
