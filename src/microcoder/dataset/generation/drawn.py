"""Inputs made from what is understood of a problem: drawn, mutated from known ones, or grown out of them.

Small ones in one round. Large ones in rounds: a kind of which no input is valid is tried again at a smaller size, since
a bound may hold that is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from microcoder.dataset.generation.answers import MadeInput
from microcoder.dataset.generation.making import Understanding, digest_input, seed_of
from microcoder.dataset.generation.settings import GenerateSettings
from microcoder.dataset.inputs.drawing import PROFILES, draw
from microcoder.dataset.inputs.growing import grow, zoom
from microcoder.dataset.inputs.mutating import MUTATIONS, mutate
from microcoder.formats.candidates import Candidate, Origin

_BYTES_PER_ITEM = 12
_GROWN = {"grown/beside": grow, "grown/zoomed": zoom}
_SHARES = (1, 2, 8, 64, 1024)
"""Of the largest size, what the rounds try: all, half, ..."""
_EACH = 2
"""Large inputs of a kind."""


def make_inputs(
    candidate: Candidate,
    understanding: Understanding,
    settings: GenerateSettings,
    dropped: Counter[str],
    *,
    most_bytes: int,
    accept: Callable[[Sequence[MadeInput]], list[MadeInput]],
    are_checked: bool,
    is_large_alone: bool = False,
) -> list[MadeInput]:
    """Return valid inputs, each once: drawn by every profile and mutated from known ones, in turn, then large ones.

    Args:
        candidate: whose inputs they are.
        understanding: what they look like.
        settings: how many.
        dropped: counts tries that gave none.
        most_bytes: of a large input.
        accept: returns those that are valid.
        are_checked: it knows: lists whose length nothing bounds may be tried as long as there is room for.
        is_large_alone: make no small ones.
    """
    making = _Making(candidate.id, understanding, settings, dropped, are_checked)
    large = [*(f"drawn/{name}" for name, profile in PROFILES.items() if profile.is_full), *_GROWN]
    small = [*(f"drawn/{name}" for name, profile in PROFILES.items() if not profile.is_full)]
    kinds = [*small, *(f"mutated/{name}" for name in MUTATIONS)]
    # Small ones are most, unless there are enough of them.
    most_large = settings.max_inputs if is_large_alone else settings.max_inputs // 3
    large = large[: max(1, most_large // _EACH)]
    num_large = _EACH * len(large)
    made: list[MadeInput] = []
    for number in range(0 if is_large_alone else 2 * settings.max_inputs):
        if len(made) >= settings.max_inputs - num_large:
            break
        made += making.make(kinds[number % len(kinds)], number, settings.max_test_bytes)
    return [*accept(made), *_make_large(making, large, most_bytes, accept)]


def _make_large(
    making: _Making, kinds: Sequence[str], most_bytes: int, accept: Callable[[Sequence[MadeInput]], list[MadeInput]]
) -> list[MadeInput]:
    """Return valid large inputs, of each kind the largest that are."""
    valid: list[MadeInput] = []
    left = list(kinds)
    for number, share in enumerate(_SHARES):
        made = [
            one
            for kind in left
            for copy in range(_EACH)
            for one in making.make(kind, _EACH * number + copy, most_bytes, most_bytes // share)
        ]
        accepted = accept(made)
        valid += accepted
        left = [kind for kind in left if all(one.origin.kind != kind for one in accepted)]
        if not left:
            break
    return valid


@dataclass(slots=True)
class _Making:
    """Inputs made so far."""

    problem_id: str
    understanding: Understanding
    settings: GenerateSettings
    dropped: Counter[str]
    are_checked: bool
    """Whether validators decide."""
    seen: set[str] = field(default_factory=set)

    def make(self, kind: str, number: int, most_bytes: int, about_bytes: int = 0) -> list[MadeInput]:
        """Make one of a kind, if it can be and is new.

        Args:
            kind: how.
            number: of the try.
            most_bytes: of a longer one there is none.
            about_bytes: how large a large one is to be.
        """
        model, known = self.understanding.model, self.understanding.known
        seed = seed_of(self.settings.seed, self.problem_id, kind, number)
        most_items = (about_bytes or most_bytes) // _BYTES_PER_ITEM
        how, _, name = kind.partition("/")
        parent = ""
        if how == "drawn":
            is_stretched = self.are_checked and about_bytes > 0
            values = draw(model, name, seed=seed, most_items=most_items, is_stretched=is_stretched)
        elif how == "grown":
            values = _GROWN[kind](model, [values for _, values in known], seed=seed, most_items=most_items)
        else:
            text, parent_values = known[seed % len(known)]
            parent = digest_input(text)
            values = mutate(model, parent_values, name, seed=seed)
        if values is None:
            self.dropped["not met the model of inputs"] += 1
            return []
        text = self.understanding.write(values)
        if text.strip() in self.seen or any(text.strip() == one.strip() for one, _ in known):
            self.dropped["made twice"] += 1
        elif len(text) > most_bytes:
            self.dropped["too long"] += 1
        else:
            self.seen.add(text.strip())
            return [MadeInput(text, Origin(kind=kind, seed=seed, parent=parent), "generated")]
        return []
