"""A package's input validators, asked about inputs that are made here.

Validators are called with the flags of a group of tests, and an input may be valid in one group and not in another: it
is valid here by the flags of any. The groups that the most known inputs are valid in are the widest, and asked first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from microcoder.dataset.generation.answers import MadeInput
from microcoder.dataset.generation.packages import find_valid
from microcoder.dataset.generation.settings import GenerateSettings
from microcoder.evaluator import Judge
from microcoder.formats.candidates import InputKit, InputRecipe, Origin

_MOST_TRIED = 8
"""Known inputs that the validators are tried on."""
_REFUSED = "refused by a validator"


@dataclass(slots=True)
class Validators:
    """What says whether an input is valid; where there are no validators, all are."""

    judge: Judge
    kit: InputKit
    known: Sequence[str]
    """Inputs that came with the problem."""
    settings: GenerateSettings
    dropped: Counter[str]
    """Counts what was refused, and what could not be run."""
    _ways: list[tuple[str, ...]] | None = field(default=None, init=False)

    @property
    def are_asked(self) -> bool:
        """Whether there are validators that can be asked."""
        return bool(self._find_ways())

    def accept(self, made: Sequence[MadeInput]) -> list[MadeInput]:
        """Return the inputs that all validators accept by the flags of one group, in their order."""
        ways = self._find_ways() if made else []
        if not ways:
            return list(made)
        left = list(made)
        for flags in ways:
            accepted = {one.text for one in self._ask(left, flags)}
            left = [one for one in left if one.text not in accepted]
        self.dropped[_REFUSED] += len(left)
        refused = {one.text for one in left}
        return [one for one in made if one.text not in refused]

    def _find_ways(self) -> list[tuple[str, ...]]:
        """Return the flags to call the validators with, those of the widest group first; none: do not ask them."""
        if self._ways is None:
            self._ways = []
            if any(one.role == "validator" for one in self.kit.programs):
                recipes = dict.fromkeys(recipe.flags for recipe in reversed(self.kit.recipes))
                self._ways = self._widest([*dict.fromkeys([*reversed(self.kit.flags), *recipes])] or [()])
        return self._ways

    def _widest(self, ways: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        if not self.known:
            return ways
        step = max(1, len(self.known) // _MOST_TRIED)
        tried = [MadeInput(text, Origin(kind="given")) for text in sorted(self.known, key=len)[::-step][:_MOST_TRIED]]
        accepted = {flags: len(self._ask(tried, flags)) for flags in ways}
        if not any(accepted.values()):
            # They are called in a way that is not known here.
            self.dropped["validators not asked, since they refuse what came with the problem: inputs"] += len(tried)
            return []
        return sorted(ways, key=lambda flags: -accepted[flags])

    def _ask(self, made: Sequence[MadeInput], flags: tuple[str, ...]) -> list[MadeInput]:
        programs = [one for one in self.kit.programs if one.role == "validator"]
        recipe = InputRecipe(group="", flags=flags)
        found: Counter[str] = Counter()
        valid = find_valid(self.judge, programs, [(one, recipe) for one in made], self.settings, found) if made else []
        # What one group refuses may be valid in another one.
        self.dropped.update({why: count for why, count in found.items() if why != _REFUSED})
        return valid
