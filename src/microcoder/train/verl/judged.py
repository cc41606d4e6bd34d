"""What the judging of one response has found, as it travels from verl's reward workers to its trainer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from verl.utils.config import omega_conf_to_dataclass

from microcoder.judge.core.rewards import Reward
from microcoder.judge.core.types import Outcome, Verdict
from microcoder.train.run.chat import RolloutReader, end_token_ids, opens_thinking

FIELD = "microcoder"
"""Key in a response's `reward_extra_info` that holds its `Judged` as JSON."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything that was found out about one response by itself."""

    verdict: Verdict
    worth: Reward
    tier: str | None

    def as_json(self) -> str:
        """Return it as it travels through verl's batches."""
        return json.dumps(_JUDGED.dump_python(self, mode="json"))

    @classmethod
    def read(cls, extra: Mapping[str, Any], score: float) -> Judged:
        """Return what a reward manager has said; of another than ours, what a score says."""
        if (text := extra.get(FIELD)) is None:
            is_right = float(extra.get("acc", score)) >= 1
            outcome = Outcome.ACCEPTED if is_right else Outcome.WRONG_ANSWER
            if math.isnan(score):
                outcome = Outcome.SANDBOX_FAULT
            return cls(Verdict(outcome, (), 0), Reward(None if math.isnan(score) else score, {}), None)
        return _JUDGED.validate_python(json.loads(text))


_JUDGED = TypeAdapter(Judged)


def build_reader(config: Any, tokenizer: Any) -> RolloutReader:
    """Return what reads responses as verl's configuration has them written."""
    model = omega_conf_to_dataclass(config.actor_rollout_ref.model)
    options = dict(config.data.get("apply_chat_template_kwargs") or {})
    ends = end_token_ids(tokenizer, model.generation_config)
    return RolloutReader(tokenizer, tuple(ends), opens_thinking(tokenizer, options))
