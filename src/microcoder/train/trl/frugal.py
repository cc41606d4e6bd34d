"""GRPOTrainer that skips padding and rows without a gradient, with the same result.

TRL pads every rollout of a step to the longest and backpropagates rows whose advantage is zero. With responses of mixed
length and groups that all fail or all pass, most of that work changes nothing. Each saving here leaves the log-probs
and the gradient as they were (up to the order of floating-point sums); a test holds each against plain TRL.
"""

from typing import Any

import torch
from trl import GRPOTrainer

from microcoder.judge.core.errors import TrainingError

ROWS_PER_FORWARD = 32
"""Most rows of a forward pass on a CPU, where small passes cost no more per token and hold less padding."""


class FrugalGRPOTrainer(GRPOTrainer):
    """TRL's trainer without work on padding and, where the loss allows it, on rows whose advantage is zero."""

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **extras: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return TRL's log-probs and entropies, without work on columns that are padding in all rows of a chunk: 0.

        Shapes: `input_ids` and `attention_mask` (rows, prompt + completion); results (rows, logits_to_keep).
        """
        if any(value is not None and value is not False for value in extras.values()):
            return super()._get_per_token_logps_and_entropies(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size,
                compute_entropy,
                **extras,
            )
        num_rows, width = input_ids.shape
        chunk_rows = batch_size or num_rows
        if input_ids.device.type == "cpu":
            chunk_rows = min(chunk_rows, ROWS_PER_FORWARD)
        # Rows of like length share a chunk; the order is undone below.
        order = torch.argsort(attention_mask[:, -logits_to_keep:].sum(1), stable=True)
        logps_parts, entropy_parts = [], []
        for rows in order.split(chunk_rows):
            ids, mask = input_ids[rows], attention_mask[rows]
            used = mask.any(0).nonzero()[:, 0]
            first = min(int(used[0]), width - logits_to_keep)
            # At least one column: a mask may hide whole responses.
            last = max(int(used[-1]), width - logits_to_keep) + 1
            keep, padding = logits_to_keep - (width - last), (0, width - last)
            logps, entropies, _ = super()._get_per_token_logps_and_entropies(
                model, ids[:, first:last], mask[:, first:last], keep, None, compute_entropy
            )
            logps_parts.append(torch.nn.functional.pad(logps, padding))
            if entropies is not None:
                entropy_parts.append(torch.nn.functional.pad(entropies, padding))
        undo = torch.argsort(order)
        return (
            torch.cat(logps_parts)[undo],
            torch.cat(entropy_parts)[undo] if entropy_parts else None,
            None,
        )

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        """Return TRL's loss, computed without rows whose advantage is zero: they add nothing to a policy loss.

        A loss that is divided by the number of rows passed is rescaled to all rows. KL and entropy terms have other
        gradients, and the tokens of highest entropy are chosen among all rows: with these, with several processes or
        an auxiliary loss, no row is left out. Reported clip ratios and entropy are means over the rows that remain.
        """
        teaches = inputs["advantages"] != 0
        is_proportional = (
            self.beta == 0.0
            and not self._entropy_bonus_enabled
            and self.top_entropy_quantile == 1.0
        )
        # TRL gathers a figure a row from every process, so all must keep equally many.
        is_alone = self.accelerator.num_processes == 1
        if not is_proportional or not is_alone or self.aux_loss_enabled or bool(teaches.all()):
            return super()._compute_loss(model, inputs)
        if not bool(teaches.any()):
            teaches[0] = True
        # What has a dimension has a row a response; a figure of the whole step has none.
        columns = {
            name: value
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor) and value.dim()
        }
        if odd := [name for name, column in columns.items() if len(column) != len(teaches)]:
            raise TrainingError(
                f"TRL's {', '.join(odd)} have no row a response; this version of TRL is not known"
            )
        kept = {name: column[teaches] for name, column in columns.items()}
        return super()._compute_loss(model, {**inputs, **kept}) * self._share_of_denominator(
            teaches
        )

    def _share_of_denominator(self, teaches: torch.Tensor) -> float:
        if self.loss_type in ("dapo", "cispo"):
            return 1.0  # divided by a figure of the whole step
        if self.loss_type in ("grpo", "sapo", "dr_grpo", "luspo"):
            return int(teaches.sum()) / len(teaches)
        raise TrainingError(
            f"TRL's loss {self.loss_type} is unknown here; use one of algorithm.loss"
        )
