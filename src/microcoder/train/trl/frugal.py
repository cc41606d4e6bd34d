"""GRPOTrainer that skips padding and rows without a gradient, with the same result.

TRL pads every rollout of a step to the longest and backpropagates rows whose advantage is zero.
With responses of mixed length and groups that all fail or all pass, most of that work changes
nothing. Each saving here leaves the log-probs and the gradient as they were (up to the order of
floating-point sums); a test holds each against plain TRL.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from microcoder.judge.core.errors import TrainingError
from microcoder.train.trl.adapter import AdaptedTrainer

ROWS_PER_FORWARD = 32
"""Most rows of a forward pass on a CPU.

Small passes cost no more per token there, and hold less padding.
"""
SHARES = (
    "clip_ratio/low_mean",
    "clip_ratio/high_mean",
    "clip_ratio/region_mean",
    "cispo_clip_ratio",
)
"""TRL's names of shares of an update's tokens.

Where the ratio is a response's, they are shares of its responses.
"""
MEANS = ("entropy", "kl")
"""TRL's names of means over an update's tokens."""


class Units(NamedTuple):
    """How much some rows of a pass count."""

    rows: int
    tokens: int
    """Tokens that are in the loss."""


class _Window(NamedTuple):
    """The columns in which at least one of some rows has a token."""

    first: int
    end: int
    """The first column behind them."""


class FrugalGRPOTrainer(AdaptedTrainer):
    """TRL's trainer without work on padding, or on rows whose advantage is zero.

    The latter only where the loss allows it.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._sums: dict[str, list[tuple[float, float]]] = defaultdict(list)
        super().__init__(*arguments, **keywords)

    def read_logps(
        self,
        model: nn.Module,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **extras: object,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return TRL's log-probs and entropies, 0 at padding.

        Nothing is computed for columns that are padding in all rows of a chunk.

        Shapes: `input_ids` and `attention_mask` (rows, prompt + completion); results (rows,
        logits_to_keep).
        """
        if any(value is not None and value is not False for value in extras.values()):
            # Images, an auxiliary loss: this knows nothing of their shapes.
            return super().read_logps(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size,
                compute_entropy,
                **extras,
            )
        chunk_rows = batch_size or len(input_ids)
        if input_ids.device.type == "cpu":
            chunk_rows = min(chunk_rows, ROWS_PER_FORWARD)
        # Rows of like length share a chunk; the order is undone below.
        order = torch.argsort(attention_mask[:, -logits_to_keep:].sum(1), stable=True)
        logps_parts: list[torch.Tensor] = []
        entropy_parts: list[torch.Tensor] = []
        for rows in order.split(chunk_rows):
            mask = attention_mask[rows]
            window = _find_window(mask, logits_to_keep)
            num_cut = mask.shape[1] - window.end
            logps, entropies, _ = super().read_logps(
                model,
                input_ids[rows][:, window.first : window.end],
                mask[:, window.first : window.end],
                logits_to_keep - num_cut,
                None,
                compute_entropy,
            )
            logps_parts.append(torch.nn.functional.pad(logps, (0, num_cut)))
            if entropies is not None:
                entropy_parts.append(torch.nn.functional.pad(entropies, (0, num_cut)))
        # TRL expects its own order.
        undo = torch.argsort(order)
        entropies = torch.cat(entropy_parts)[undo] if entropy_parts else None
        return torch.cat(logps_parts)[undo], entropies, None

    def compute_policy_loss(self, model: nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        """Return TRL's loss, computed without rows whose advantage is zero.

        Such rows add nothing to a policy loss. A loss that TRL divides by the number of rows is
        rescaled to all rows.

        No row is left out where one could matter: with a KL or entropy term, which has a gradient
        of its own; where tokens of highest entropy are chosen among all rows; with several
        processes; with an auxiliary loss. Reported clip ratios are shares of all tokens of the
        update; the entropy is a mean over the tokens of rows that teach.
        """
        all_rows = _count_units(inputs, torch.ones_like(inputs["advantages"], dtype=torch.bool))
        teaches = inputs["advantages"] != 0
        has_entropy_term = self.has_entropy_bonus or self.top_entropy_quantile != 1.0
        is_proportional = self.beta == 0.0 and not has_entropy_term
        # TRL gathers a figure a row from every process, so all must keep equally many.
        is_alone = self.accelerator.num_processes == 1
        needs_all_rows = self.aux_loss_enabled or not (is_proportional and is_alone)
        if needs_all_rows or bool(teaches.all()):
            loss = super().compute_policy_loss(model, inputs)
            self._note_shares(all_rows, all_rows)
            return loss
        # A pass without a row that teaches still needs one: it has no part in the entropy.
        teaching_rows = _count_units(inputs, teaches)
        if not bool(teaches.any()):
            teaches[0] = True
        passed_rows = _count_units(inputs, teaches)
        # What has a dimension has a row a response; a figure of the whole step has none.
        columns: dict[str, torch.Tensor] = {}
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor) and value.dim():
                columns[name] = value
        odd = [name for name, column in columns.items() if len(column) != len(teaches)]
        if odd:
            raise TrainingError(
                f"TRL's {', '.join(odd)} have no row a response; this version of TRL is not known"
            )
        kept = {name: column[teaches] for name, column in columns.items()}
        # TRL sees a pass of fewer rows.
        loss = super().compute_policy_loss(model, {**inputs, **kept})
        self._note_shares(all_rows, passed_rows, teaching_rows)
        return loss * self._share_of_denominator(teaches)

    def _note_shares(
        self, all_rows: Units, passed_rows: Units, teaching_rows: Units | None = None
    ) -> None:
        """Add TRL's figures of a pass to the sums of the update.

        TRL averages over the rows of a pass, then over passes, so the result depends on the number
        of passes. Sums over tokens do not.
        """
        reported = self.reported
        if self.importance_sampling_level == "sequence":
            counts = [passed_rows.rows, all_rows.rows]
        else:
            counts = [passed_rows.tokens, all_rows.tokens]
        passed, whole = self._everywhere(counts)
        (weight,) = self._everywhere([(teaching_rows or passed_rows).tokens])
        for name in SHARES:
            if reported.get(name):
                # No row that was left out is clipped: its advantage is zero.
                self._sums[name].append((reported[name][-1] * passed, whole))
        for name in MEANS:
            if reported.get(name):
                self._sums[name].append((reported[name][-1] * weight, weight))

    def _everywhere(self, counts: Sequence[int]) -> list[float]:
        """Return counts of this process's pass, each summed over all processes."""
        if self.accelerator.num_processes == 1:
            return [float(count) for count in counts]
        here = torch.tensor([float(count) for count in counts], device=self.accelerator.device)
        return self.accelerator.reduce(here, reduction="sum").tolist()

    def take_shares(self) -> dict[str, float]:
        """Return the shares and means of the update since the last call, by TRL's names."""
        taken: dict[str, float] = {}
        for name, parts in self._sums.items():
            weight = sum(part_weight for _, part_weight in parts)
            if weight:
                taken[name] = sum(value for value, _ in parts) / weight
        # An update's figures are taken once.
        self._sums.clear()
        return taken

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log an update's figures, with means over tokens in place of TRL's means over passes."""
        for name, value in self.take_shares().items():
            self.reported[name] = [value]
        super().log(logs, start_time)

    def _share_of_denominator(self, teaches: torch.Tensor) -> float:
        """Return the loss's denominator over some rows, as a share of the one over all rows."""
        if self.loss_type in ("dapo", "cispo"):
            # Divided by a figure of the whole step.
            return 1.0
        if self.loss_type in ("grpo", "sapo", "dr_grpo", "luspo"):
            # They divide by the rows that are passed.
            return int(teaches.sum()) / len(teaches)
        raise TrainingError(
            f"TRL's loss {self.loss_type} is unknown here; use one of algorithm.loss"
        )


def _find_window(mask: torch.Tensor, logits_to_keep: int) -> _Window:
    """Return the columns in which at least one row has a token.

    At least one column of the completion is among them, since a mask may hide whole responses.
    """
    completion_start = mask.shape[1] - logits_to_keep
    columns = mask.any(0).nonzero()[:, 0]
    first = min(int(columns[0]), completion_start)
    end = max(int(columns[-1]), completion_start) + 1
    return _Window(first, end)


def _count_units(inputs: dict[str, Any], rows: torch.Tensor) -> Units:
    """Return how many of a pass's rows are chosen, and how many of their tokens are in the loss."""
    mask = inputs["completion_mask"]
    # It masks what does not count (`MicroCoderTrainer.sample_step`).
    if "tool_mask" in inputs:
        mask = mask * inputs["tool_mask"]
    return Units(int(rows.sum()), int(mask[rows].sum()))
