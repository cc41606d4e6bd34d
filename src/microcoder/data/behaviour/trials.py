"""How much speaks for two problems being one, and when that is enough.

Thresholds are our choices, measured in docs/contamination.md.
"""

from __future__ import annotations

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
_LEAST_SMALL = 4
"""On how many different outputs they agree where all of these are small numbers."""
_LEAST_BITS = 14.0
"""Evidence in bits: minus the binary logarithm of how likely an unrelated program agrees as far."""
_LEAST_BACKED_OWN = 5
"""On how many of the problem's own inputs they agree, all, where fewer bits are enough."""
_BACKED_BITS = 9.0
"""Bits that are enough for answers that are no labels and of which `_LEAST_SMALL` differ."""
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
        if self.bits < _LEAST_BITS:
            return self._is_backed
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
        is_varied = not self.has_labels and len(self.answers) >= _LEAST_SMALL
        return is_varied and self.how == "same" and self.bits >= _BACKED_BITS

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
            # To give back what one gets is no sign of the same task.
            if any(tokens_of_value(value) == output for value in values):
                self.echoes.add(output)
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
