"""What follows from a comparison, how it is kept as text, and how a row names its suspects."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from microcoder.data.behaviour.comparison import Compared
from microcoder.data.filter.contamination import Hit, describe_hits
from microcoder.data.formats.candidates import Candidate, Lineage, Rejection

STEP = "behaviour/3"
"""Name and version of the step in the lineage of a candidate."""
_SUSPECTS = "suspects"
"""Field of the line that names the benchmark problems; the detail is a JSON list of their ids."""
_MOST_SUSPECTS = 5
"""At most so many benchmark problems are named, those with most evidence."""


def write_compared(compared: Compared) -> str:
    """Return a comparison as JSON."""
    fields = {}
    for name, hits in compared._asdict().items():
        fields[name] = [asdict(hit) for hit in hits]
    return json.dumps(fields)


def read_compared(text: str) -> Compared:
    """Return the comparison that `write_compared` wrote."""
    fields = {}
    for name, hits in json.loads(text).items():
        fields[name] = [Hit(**hit) for hit in hits]
    return Compared(**fields)


def decide_on(candidate: Candidate, compared: Compared) -> Candidate | Rejection:
    """Return the rejection of a candidate that is a benchmark's problem.

    Otherwise the candidate; its lineage names the problems that it may be.
    """
    if compared.hits:
        return candidate.reject("filter", "contaminated", describe_hits(compared.hits))
    return note_suspects(candidate, compared.suspects)


def note_suspects(candidate: Candidate, suspects: Sequence[Hit]) -> Candidate:
    """Return a candidate whose lineage names benchmark problems that it may be."""
    if not suspects:
        return candidate
    ids = [hit.problem_id for hit in suspects[:_MOST_SUSPECTS]]
    line = Lineage(
        stage="filter",
        step=STEP,
        field=_SUSPECTS,
        detail=json.dumps(ids),
    )
    return candidate.model_copy(update={"lineage": (*candidate.lineage, line)})


def find_suspects(candidate: Candidate) -> list[str]:
    """Return the ids of benchmark problems that a candidate may be, by its lineage."""
    for line in reversed(candidate.lineage):
        if line.step == STEP and line.field == _SUSPECTS:
            return list(json.loads(line.detail))
    return []
