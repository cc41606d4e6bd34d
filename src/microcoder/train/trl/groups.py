"""Groups of a sampling round on engine trl: in TRL's form and in ours, and which process samples
them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from microcoder.train.rollouts import ScoredRollout
from microcoder.train.trl.adapter import Generated


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """One problem's samples: TRL's rows, what TRL generated for them, and our decisions."""

    inputs: Sequence[dict[str, Any]]
    generated: Sequence[tuple[Any, ...]]
    """One tuple per sample: prompt ids, completion ids, completion, and the sampler's log-probs.

    The last are None where the sampler reports none.
    """
    scored: list[ScoredRollout]


def join_generated(groups: Sequence[SampledGroup]) -> Generated:
    """Return TRL's eight values of a round that was sampled before.

    We use neither tools nor images, so their values are empty.
    """
    rows = chain.from_iterable(group.generated for group in groups)
    prompt_ids, completion_ids, completions, logprobs = (
        list(column) for column in zip(*rows, strict=True)
    )
    reported = None if logprobs[0] is None else logprobs
    return prompt_ids, completion_ids, None, completions, reported, {}, None, []


def share_out(number: int, *, process: int, num_processes: int) -> list[int]:
    """Return the indices of the tasks that a process samples.

    Every process takes equally many, some of them twice: sampling is a collective operation.
    """
    padded = math.ceil(number / num_processes) * num_processes
    return [index % number for index in range(process, padded, num_processes)]
