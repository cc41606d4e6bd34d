"""Accepted programs whose output is refused: where they agree the tests are wrong, else a checker is missing.

The judge returns verdicts, not outputs. A checker program sees the output, so one that always refuses and says a
digest of the tokens makes the outputs comparable without a second way to run programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from microcoder.dataset.verify.plans import Attempt, VerificationPlan
from microcoder.types import Checker, Outcome, Problem, Program, Verdict

_DIGEST = Checker(
    type="program",
    code=(
        "import hashlib, sys\n"
        "tokens = open(sys.argv[2], 'rb').read().split()\n"
        "sys.stderr.write('digest ' + hashlib.sha256(b' '.join(tokens)).hexdigest()[:32])\n"
        "sys.exit(1)\n"
    ),
)
_SAID = re.compile(r"digest ([0-9a-f]{32})")
_MOST_PROGRAMS = 4

Run = Callable[[Sequence[tuple[Program, Problem]]], list[Verdict]]


def compare_references(run: Run, plans: Sequence[VerificationPlan]) -> None:
    """Set `outputs` of the plans where accepted programs were refused for their output."""
    asked: list[tuple[VerificationPlan, Attempt]] = []
    for item in plans:
        refused = [a for a in item.accepted if a.verdicts[0].outcome is Outcome.WRONG_ANSWER]
        if refused and len(item.accepted) > 1 and item.candidate.fn_name is None:
            asked += [(item, attempt) for attempt in item.accepted[:_MOST_PROGRAMS]]
    problems = [
        item.problem(attempt.program.language).model_copy(update={"checker": _DIGEST}) for item, attempt in asked
    ]
    verdicts = run([(attempt.program, problem) for (_, attempt), problem in zip(asked, problems, strict=True)])
    said: dict[int, list[tuple[str, ...]]] = {}
    for (item, _), verdict in zip(asked, verdicts, strict=True):
        digests = tuple(found[1] for test in verdict.tests if (found := _SAID.search(test.detail)))
        if len(digests) == len(item.candidate.tests):
            said.setdefault(id(item), []).append(digests)
    for item in plans:
        outputs = said.get(id(item), [])
        if len(outputs) > 1:
            item.outputs = "agree" if len(set(outputs)) == 1 else "differ"
