"""How much speaks for two problems being one, and when that is enough.

Thresholds are our choices, measured in docs/contamination.md.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from microcoder.data.behaviour.outputs import (
    Agreement,
    Tokens,
    are_labels,
    is_small,
    tokens_of_value,
)
from microcoder.data.behaviour.pairs import Pair
from microcoder.data.filter.contamination import Hit
from microcoder.data.inputs.layouts import Values

_LEAST_INPUTS = 4
"""On how many different inputs at least they agree."""
_LEAST_OWN = 4
"""On how many of the problem's own inputs they agree; of the benchmark's, if it has no program."""
_LEAST_ANSWERS = 6
"""On how many different outputs they agree where it is fewer."""
_LEAST_TELLING = 2
"""On how many different outputs they agree that do not all repeat the same value."""
_LEAST_TELLING_SHARE = 0.25
"""Share of all different outputs that these are at least."""
_LEAST_SMALL = 4
"""On how many different outputs they agree where all of these are small numbers."""
_LEAST_BITS = 14.0
"""Evidence in bits: minus the binary logarithm of how likely an unrelated program agrees as far."""
_LEAST_BACKED_OWN = 5
"""On how many of the problem's own inputs they agree, all, where fewer bits are enough."""
_BACKED_BITS = 8.0
"""Bits that are enough for answers that are no labels and of which `_LEAST_SMALL` differ."""
_LEAST_OF_A_LABEL = 3
"""How many of the problem's own inputs have the rarer label then."""
_LABEL_BITS = 5.0
"""Bits that are enough for labels, counted by these ways."""
_SHARED_BITS = 5.0
"""Bits that are enough where both problems show the same inputs."""
_LEAST_SHARED = 3
"""How many inputs both show then."""


@dataclass
class Trial:
    """A pair of forms that agreed on a few inputs, with the evidence for it so far."""

    row: int
    """Index of the problem among those that are compared together."""
    pair: Pair
    chance: float
    """Estimated share of unrelated programs that agree on an input."""
    bits: float = 0.0
    num_agreed: int = 0
    num_own: int = 0
    """Inputs of one problem on which the other's program agrees: the problem's own, if it can."""
    num_shared: int = 0
    """Inputs that both problems show, in whatever format."""
    is_whole: bool = True
    """Whether they agree on every input so far."""
    answers: set[Tokens] = field(default_factory=set)
    """Different outputs on which they agree."""
    echoes: set[Tokens] = field(default_factory=set)
    """Those of them that only repeat an input."""
    echoes_by_place: dict[int, set[Tokens]] = field(default_factory=lambda: defaultdict(set))
    """Those that repeat the value at a place, also with other blanks."""
    details: tuple[str, ...] = ()
    """What each phase came to."""
    how: str = ""
    """`Agreement.how` of the phases so far; empty before the first."""

    @property
    def has_labels(self) -> bool:
        """Whether the outputs are a few labels, on which unrelated programs often agree."""
        return are_labels([case.expected for case in self.pair.own.cases])

    @property
    def says_little(self) -> bool:
        """Whether each output is one on which unrelated programs often agree."""
        return self.has_labels or all(is_small(case.expected) for case in self.pair.own.cases)

    @property
    def has_both_programs(self) -> bool:
        """Whether both problems have a program."""
        return bool(self.pair.own.program and self.pair.other.program)

    @property
    def is_convincing(self) -> bool:
        """Whether there is enough evidence for a hit."""
        if self.num_agreed < _LEAST_INPUTS:
            return False
        least = max(_LEAST_TELLING, _LEAST_TELLING_SHARE * len(self.answers))
        for echoes in self.echoes_by_place.values():
            if len(self.answers - echoes) < least:
                return False
        if self.bits < _LEAST_BITS:
            return self._is_backed
        # Of labels that are nearly all the same, many programs give the same.
        if self.has_labels and self._is_told_by_labels and not self._are_labels_told:
            return False
        # Counting programs often agree: small numbers must be several.
        if not self.has_labels and all(map(is_small, self.answers)):
            return self.num_own >= _LEAST_OWN and len(self.answers) >= _LEAST_SMALL
        if self.num_own >= _LEAST_OWN:
            return True
        num_telling = len(self.answers - self.echoes)
        return self.how == "same" and num_telling >= _LEAST_ANSWERS

    @property
    def is_suspect(self) -> bool:
        """Whether they agree wherever they were tried, so that a model is worth asking."""
        return self.is_whole and self.num_agreed >= _LEAST_INPUTS and self.bits > 0

    @property
    def _is_backed(self) -> bool:
        """Whether less evidence is enough, since nothing differs and something else speaks for it.

        Either both problems show the same inputs, or the answers are too many for labels.
        """
        if not self.is_whole or self.num_own < _LEAST_BACKED_OWN:
            return False
        if self.num_shared >= _LEAST_SHARED and self.bits >= _SHARED_BITS:
            return True
        if self.has_labels:
            return self._is_told_by_labels and self._are_labels_told
        return len(self.answers) >= _LEAST_SMALL and self.bits >= _BACKED_BITS

    @property
    def _is_told_by_labels(self) -> bool:
        """Whether the benchmark's answers to the problem's own inputs are all that is known."""
        # With both programs there are many more inputs, which say more.
        return bool(self.pair.other.program) and not self.pair.own.program

    @property
    def _are_labels_told(self) -> bool:
        """Whether another program hardly gives all of the problem's own inputs these labels.

        That is one chance in as many as there are ways to choose the inputs of the rarer label.
        """
        counts = Counter(case.expected for case in self.pair.own.cases)
        rarest = min(counts.values())
        if len(counts) == 1 or rarest < _LEAST_OF_A_LABEL:
            return False
        return math.log2(math.comb(counts.total(), rarest)) >= _LABEL_BITS + self.pair.bits

    def add(
        self,
        agreement: Agreement,
        detail: str,
        answered: Iterable[tuple[Values, Tokens | None]],
    ) -> None:
        """Add the agreement found by one comparison to the evidence.

        Args:
            agreement: of the two programs' outputs.
            detail: describes it.
            answered: the values of each input, and one of its outputs.
        """
        for (values, output), is_equal in zip(answered, agreement.agreed, strict=True):
            if not is_equal or output is None:
                continue
            self.answers.add(output)
            for place, value in enumerate(values):
                repeated = tokens_of_value(value)
                # To give back what one gets is no sign of the same task.
                if repeated == output:
                    self.echoes.add(output)
                if "".join(repeated) == "".join(output):
                    self.echoes_by_place[place].add(output)
        self.is_whole = self.is_whole and all(agreement.agreed)
        # Bits are logarithms: adding them multiplies the chances.
        self.bits += agreement.bits
        self.num_agreed += sum(agreement.agreed)
        self.details += (detail,)
        # Labels that were renamed once stay renamed.
        if self.how in ("", "same"):
            self.how = agreement.how

    def to_hit(self) -> Hit:
        """Return the hit."""
        details = self.details
        if self.num_shared:
            details = (*details, f"both show {self.num_shared} of the same inputs")
        detail = "; ".join(details)
        return Hit(
            self.pair.other.id,
            "behaviour",
            round(self.bits, 1),
            detail,
        )
