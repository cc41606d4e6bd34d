"""Whether a problem of a file is the one that the model saw.

Tests are shown beside a rollout only where it is. A problem file may have changed after a run, and
two files may hold different problems under one id. So the statement is compared with what the run
recorded: training records the prompts, an evaluation a digest of each statement.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import microcoder
from microcoder.judge.core.errors import MicroCoderError
from microcoder.judge.core.prompts import BUILTINS
from microcoder.train.recipe.judge import PromptConfig, make_prompt_builder
from microcoder.view.files import ShownProblem

_MOST_TO_COMPARE = 64 * 2**20
"""Bytes of problem files up to which a viewer reads all of them, to see whether anything in them
changed."""


@dataclass(frozen=True, slots=True)
class FoundTests:
    """The tests to show beside the rollouts of a problem, or the reason why none are shown."""

    problem: ShownProblem | None
    why: str = ""
    """The reason in a sentence; empty with tests, or where no file holds the problem."""


def explain_other(problem: ShownProblem) -> str:
    """Return the sentence for a file whose statement differs from what the model saw."""
    return (
        "Not shown: the problem file changed after the run, or is another one. The statement of "
        f"this problem in {problem.origin} is not the one that the model saw."
    )


def explain_count(problem: ShownProblem, *, num_judged: int) -> str:
    """Return the sentence for a file that has another number of tests than the run was judged by.

    Empty if the numbers agree.
    """
    if len(problem.tests) == num_judged:
        return ""
    return (
        f"Not shown: the problem file changed after the run. {problem.origin} holds "
        f"{len(problem.tests)} tests of this problem, and the run was judged by {num_judged}."
    )


def note_change(found: FoundTests) -> FoundTests:
    """Return tests of a file that has changed, with a note that they may be others.

    Their statement is the same.
    """
    if found.problem is None:
        return found
    change = "which changed after the run: the statement is the same, the tests may not be"
    return FoundTests(replace(found.problem, origin=f"{found.problem.origin}, {change}"))


def is_of_this_version(manifest: Mapping[str, Any]) -> bool:
    """Whether this version of MicroCoder wrote a manifest.

    Only then can digests be compared: another version may digest the same problems differently.
    """
    return manifest.get("microcoder_version") == microcoder.__version__


def is_small(paths: Iterable[Path]) -> bool:
    """Whether the files exist and are together small enough to be read for a comparison."""
    num_bytes = 0
    for path in paths:
        if not path.is_file():
            return False
        num_bytes += path.stat().st_size
    return 0 < num_bytes <= _MOST_TO_COMPARE


@dataclass(frozen=True, slots=True)
class PromptFrame:
    """How many characters stand around the problem in every prompt of a run.

    They are a chat template's marks and a system turn.
    """

    before: int
    after: int

    def holds(self, prompt: str, content: str) -> bool:
        """Whether a prompt is `content` within this frame.

        A longer text that merely contains it is not.
        """
        # The content may stand in the frame, too, as an example does: each place is tried.
        begin = prompt.find(content)
        while begin >= 0:
            num_after = len(prompt) - begin - len(content)
            if begin <= self.before and num_after <= self.after:
                return True
            begin = prompt.find(content, begin + 1)
        return False


def find_frame(prompts: Collection[str]) -> PromptFrame | None:
    """Return the frame that a run's prompts share.

    None if there are fewer than two prompts, which cannot show one.
    """
    folded = {fold_spaces(prompt) for prompt in prompts}
    if len(folded) < 2:
        return None
    # Reversed, ends are beginnings, and counted by the same function.
    backwards = {prompt[::-1] for prompt in folded}
    return PromptFrame(before=_count_shared(folded), after=_count_shared(backwards))


def _count_shared(texts: Collection[str]) -> int:
    """Return the number of characters at the beginning that all texts share."""
    # What the first and the last in order share, all between them share.
    num_shared = 0
    for left, right in zip(min(texts), max(texts), strict=False):
        if left != right:
            break
        num_shared += 1
    return num_shared


def is_asked_by(
    prompt: str,
    problem: ShownProblem,
    *,
    style: Mapping[str, Any],
    frame: PromptFrame | None,
) -> bool:
    """Whether a recorded prompt asks a problem as a file holds it.

    Args:
        prompt: the prompt's text as the run recorded it.
        problem: the problem of the file.
        style: the table `prompt` of the run's config; empty if the run does not say how it made its
            prompts.
        frame: what stands around the problem in every prompt of the run, if known.
    """
    recorded = fold_spaces(prompt)
    content = _make_content(problem, style)
    if content is None:
        # An unknown style, or one of the user's own: code that a viewer of somebody else's run
        # does not run.
        return fold_spaces(problem.statement) in recorded
    # One prompt shows no frame: then it has to do that it holds the problem.
    if frame is None:
        return content in recorded
    return frame.holds(recorded, content)


def fold_spaces(text: str) -> str:
    """Return a text with single spaces.

    Chat templates strip the white space of a text, and tokenizers may change it.
    """
    return " ".join(text.split())


def _make_content(problem: ShownProblem, style: Mapping[str, Any]) -> str | None:
    """Return the user's turn that a built-in style makes of a problem; None if that is not
    known."""
    if problem.problem is None or not style:
        return None
    try:
        config = PromptConfig.model_validate(style)
        if config.style not in BUILTINS:
            return None
        return fold_spaces(make_prompt_builder(config)(problem.problem).text)
    # A config of another version: how it made prompts is not known.
    except (MicroCoderError, ValidationError):
        return None
