"""Accuracy by the thinking that is written: a model of the micro lab's chains, made to think so long and no longer.

    python benchmarks/thinking_curve.py MODEL [MODEL ...] [--num 240] [--samples 2]

Thinks step by step (`3+4=7`, five tokens a line) on held-out problems. While it is made to think, the tokens that would
end the thinking are not sampled; then the fence of the program is written for it, and it writes the program freely.
Prints a row for each number of tokens and one for each way of thinking that is only begun for the model, by tier, with
the 95 % interval over problems; programs are compared with the reference, which differs from a wrong one in one digit.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from microcoder.data.micro import STYLES, TIERS
from microcoder.data.micro.chains import ChainTask, draw_chain_tasks
from microcoder.lab.studies.effects import Solved, estimate_accuracy

FENCE = "```python"
TOKENS_A_LINE = 5
MOST_TOKENS = 96
BEGUN: dict[str, Callable[[ChainTask], str]] = {
    "none": lambda task: FENCE,
    "leap": lambda task: "leap ",
    "bare": lambda task: "digits ",
    "worked": lambda task: f"{task.start}",
    "free": lambda task: "",
}


class Thinker:
    """A model that is made to think."""

    def __init__(self, folder: str) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.fence = self.tokenizer.convert_tokens_to_ids(FENCE)  # pyrefly: ignore[missing-attribute]

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return self.tokenizer(text)["input_ids"]

    @torch.no_grad()
    def write(self, rows: Sequence[list[int]], num_tokens: int, *, thinks: bool) -> list[list[int]]:
        """Sample up to so many tokens after each row; `thinks`: exactly so many, none of them an end of thinking."""
        if not num_tokens:
            return [[] for _ in rows]
        width = max(map(len, rows))
        pad, end = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        held = {"suppress_tokens": [self.fence, end]} if thinks else {}
        written = self.model.generate(
            ids, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, max_new_tokens=num_tokens,
            eos_token_id=end, pad_token_id=pad, **held,
        )  # fmt: skip
        return [[token for token in row if token not in (pad, end)] for row in written[:, width:].tolist()]


def measure_forced(
    thinker: Thinker, tasks: Sequence[ChainTask], num_lines: int, samples: int, *, checks: bool = False
) -> tuple[Solved, float]:
    """Make it think so many worked lines, or to the end of the chain; return what is solved, and the mean tokens.

    `checks`: then it writes the lines again, and the program after that.
    """
    asked = [task for task in tasks for _ in range(samples)]
    lengths = [TOKENS_A_LINE * min(num_lines, len(task.steps)) for task in asked]
    # The first digit of a line is given, so that the lines are worked and not bare.
    prompts = [
        [*thinker.ids(f"{task.statement}<|sep|>"), *(thinker.ids(f"{task.start}") if num_lines else [])]
        for task in asked
    ]
    thought = thinker.write(prompts, max(0, max(lengths) - 1), thinks=True)
    rows = [
        [*prompt, *tokens[: max(0, length - 1)]]
        for prompt, tokens, length in zip(prompts, thought, lengths, strict=True)
    ]
    if checks:
        rows = [[*row, *thinker.ids("again\n")] for row in rows]
        again = thinker.write(rows, max(lengths), thinks=True)
        rows = [[*row, *tokens[:length]] for row, tokens, length in zip(rows, again, lengths, strict=True)]
        lengths = [2 * length + 2 for length in lengths]
    written = thinker.write([[*row, thinker.fence] for row in rows], 16, thinks=False)
    return _solved(thinker, asked, written), sum(lengths) / len(lengths)


def measure_begun(thinker: Thinker, tasks: Sequence[ChainTask], begun: str, samples: int) -> tuple[Solved, float]:
    """Begin a way of thinking for it; return what is solved, and the mean tokens of a response."""
    asked = [task for task in tasks for _ in range(samples)]
    starts = [thinker.ids(BEGUN[begun](task)) if begun != "free" else [] for task in asked]
    rows = [[*thinker.ids(f"{task.statement}<|sep|>"), *start] for task, start in zip(asked, starts, strict=True)]
    written = [
        [*start, *tokens] for start, tokens in zip(starts, thinker.write(rows, MOST_TOKENS, thinks=False), strict=True)
    ]
    return _solved(thinker, asked, written), sum(map(len, written)) / len(written) + 1


def _solved(thinker: Thinker, asked: Sequence[ChainTask], written: Sequence[list[int]]) -> Solved:
    solved: dict[str, list[bool | None]] = {}
    for task, tokens in zip(asked, written, strict=True):
        program = thinker.tokenizer.decode(tokens).removeprefix("\n").rpartition(FENCE)[2].strip("`\n")
        right = task.render_program(task.digits[-1]).strip("\n")
        solved.setdefault(f"{task.start} {task.steps} {task.statement}", []).append(program == right)
    return solved


def show(label: str, tasks: Sequence[ChainTask], solved: Solved, tokens: float) -> None:
    """Print a row."""
    tier_of = {f"{task.start} {task.steps} {task.statement}": task.tier for task in tasks}
    whole = estimate_accuracy(solved)
    assert whole
    tiers = []
    for tier in TIERS:
        part = estimate_accuracy({name: samples for name, samples in solved.items() if tier_of[name] == tier})
        tiers.append(f"{tier} {part.value:6.1%}" if part else f"{tier} none")
    print(
        f"{label:>10}  {tokens:5.1f}  {whole.value:6.1%} [{whole.low:.1%}, {whole.high:.1%}]  {'  '.join(tiers)}",
        flush=True,
    )


def main() -> None:
    """Measure every model named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--num", type=int, default=240)
    parser.add_argument("--samples", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    drawn = draw_chain_tasks(random.Random("thinking curve"), tiers=TIERS, styles=STYLES, split="heldout")
    tasks = list(islice(drawn, given.num))
    for folder in given.models:
        torch.manual_seed(0)
        thinker = Thinker(folder)
        print(f"{folder}\n  made to think, tokens of thinking")
        for num_lines in range(max(len(task.steps) for task in tasks) + 1):
            solved, tokens = measure_forced(thinker, tasks, num_lines, given.samples)
            show(f"{num_lines} lines", tasks, solved, tokens)
        solved, tokens = measure_forced(thinker, tasks, MOST_TOKENS, given.samples, checks=True)
        show("checked", tasks, solved, tokens)
        print("  begun for it, tokens of the response")
        for begun in BEGUN:
            solved, tokens = measure_begun(thinker, tasks, begun, given.samples)
            show(begun, tasks, solved, tokens)


if __name__ == "__main__":
    main()
