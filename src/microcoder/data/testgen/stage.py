"""The generate stage: a problem with few hidden tests gets more.

package's own -> mutated from known ones -> a model's -> certified by validators
-> answered by agreeing references -> tried on known-wrong submissions -> chosen
"""

from collections import Counter
from collections.abc import Callable, Sequence

from microcoder.data.clean.samples import count_hidden
from microcoder.data.completions import Endpoint
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.testgen.answers import Answering, Judges
from microcoder.data.testgen.choice import STEP, add_chosen
from microcoder.data.testgen.differences import settle
from microcoder.data.testgen.kits import ask_for_inputs, run_kit
from microcoder.data.testgen.made import MadeInput
from microcoder.data.testgen.mutation import infer_schema, mutate_known, relax_bounds
from microcoder.data.testgen.programs import find_passing_references, find_references, knows_slow
from microcoder.data.testgen.settings import (
    MOST_LARGE,
    MOST_TESTS,
    PACKAGE_INPUTS,
    GenerateSettings,
)
from microcoder.data.testgen.validators import Validators, read_validators, write_validators
from microcoder.judge.core.types import Program

_LARGE_ENOUGH_BYTES = 100_000
"""Size of an input from which on slow compiled programs are caught too."""


def generate(
    candidate: Candidate,
    judges: Callable[[], Judges],
    settings: GenerateSettings,
    endpoint: Endpoint | None = None,
) -> Candidate | Rejection:
    """Return a candidate with more tests if it has few.

    Return a rejection if it has none and none could be made.

    Args:
        candidate: from the filter stage.
        judges: starts or returns the judges; not called if there are enough tests.
        settings: settings of the stage.
        endpoint: the model to ask, where the settings name one.

    Raises:
        ConfigError: the endpoint gave no answer at all.
        EvaluatorFault: a judge is closed.
    """
    # Nothing is started for a problem that has enough tests.
    is_enough = _has_enough(candidate, settings)
    has_tests = bool(candidate.tests) and is_enough
    is_complete = has_tests and not _lacks_large(candidate)
    if settings.mode == "off" or is_complete:
        return candidate
    references = find_references(candidate)
    obstacle = _find_obstacle(candidate, references)
    if obstacle:
        return _without_tests(candidate, obstacle)
    answering = Answering(judges(), candidate, references)
    answering.references = find_passing_references(answering)
    if not answering.references:
        return _without_tests(candidate, "no accepted program passes the known tests")
    # A problem with tests enough came here for want of large ones.
    only_large = has_tests
    inputs = _InputSearch(
        answering,
        settings,
        endpoint,
        only_large=only_large,
    ).find()
    # Long runs are only paid for where a slow program is known to be caught by them.
    num_slow = MOST_LARGE if knows_slow(candidate) else 0
    tests = answering.answer_all(inputs, num_slow=num_slow)
    settled = settle(answering)
    if isinstance(settled, Rejection):
        return settled
    if settled is not candidate:
        # By the comparison that they have shown, the same inputs have answers.
        answering = Answering(answering.judges, settled, answering.references)
        tests = answering.answer_all(inputs, num_slow=num_slow)
    candidate = settled
    num_references = len(answering.references)
    made = f"{len(inputs)} inputs made, {len(tests)} answered by {num_references} references"
    detail = f"{made}; lost: {_describe_dropped(answering.dropped)}"
    if not tests:
        return _without_tests(candidate, detail)
    # Large tests alone are there for the slow.
    return add_chosen(answering, settings, tests, detail, is_tried=not only_large)


def find_inputs(
    answering: Answering,
    settings: GenerateSettings,
    endpoint: Endpoint | None,
) -> list[MadeInput]:
    """Return new inputs of a candidate that validators certify; none where nothing does."""
    certified = settings.model_copy(update={"keep_unchecked": False})
    return _InputSearch(answering, certified, endpoint, only_large=False).find()


def _has_enough(candidate: Candidate, settings: GenerateSettings) -> bool:
    """Whether a candidate has as many hidden tests as it may get."""
    num_generated = 0
    for recipe in candidate.kit.recipes:
        if recipe.generator and not recipe.group.startswith("sample"):
            num_generated += 1
    # A package's generators make more tests than came with it where large ones were left out, as a
    # rule.
    return count_hidden(candidate) >= max(settings.min_hidden_tests, num_generated)


def _lacks_large(candidate: Candidate) -> bool:
    """Whether large tests are missing that a package can make, and that slow submissions need."""
    if not candidate.kit.recipes or not knows_slow(candidate):
        return False
    return all(len(test.input) <= _LARGE_ENOUGH_BYTES for test in candidate.tests)


def _find_obstacle(candidate: Candidate, references: Sequence[Program]) -> str:
    """Return why no test can be made; empty if there is no obstacle."""
    if not references:
        return "no accepted program runs here"
    if "interactive" in candidate.flags or "file_io" in candidate.flags:
        return "it talks back, or reads files"
    has_checker = candidate.checker.type in ("program", "unordered")
    if "many_answers" in candidate.flags and not has_checker:
        return "many answers are right and no checker decides"
    return ""


def _without_tests(candidate: Candidate, why: str) -> Candidate | Rejection:
    """Return a candidate that gets no tests, flagged; a rejection if it has none at all."""
    if not candidate.tests:
        return candidate.reject("generate", "no_tests", why)
    flags = tuple(sorted({*candidate.flags, "no_tests_made"}))
    return candidate.change("generate", STEP, why, flags=flags)


def _describe_dropped(dropped: Counter[str]) -> str:
    """Return how many inputs were lost for each reason."""
    counts = [f"{reason} {count}" for reason, count in sorted(dropped.items()) if count]
    return ", ".join(counts) or "none"


class _InputSearch:
    """Finds new certified inputs of one candidate, each once."""

    def __init__(
        self,
        answering: Answering,
        settings: GenerateSettings,
        endpoint: Endpoint | None,
        *,
        only_large: bool,
    ) -> None:
        """Prepare the search.

        Args:
            answering: the candidate, its references and its judges.
            settings: settings of the stage.
            endpoint: a model that may be asked.
            only_large: only large inputs are missing.
        """
        self._answering = answering
        self._candidate = answering.candidate
        self._judge = answering.judges.thorough
        self._dropped = answering.dropped
        self._settings = settings
        # Large tests are made by a package's own generators alone, so no model is asked.
        self._endpoint = None if only_large else endpoint
        self._only_large = only_large
        self._known = [test.input for test in answering.candidate.tests]
        self._found: dict[str, MadeInput] = {}
        """Inputs so far, by their text without space at its ends."""

    def find(self) -> list[MadeInput]:
        """Return the inputs.

        Uncertified inputs are included if the settings allow it and there are two references.
        """
        # Without a validator, what a mutation made may be no input at all.
        validators = self._find_validators()
        if validators is None and not self._allows_unchecked():
            return []
        # Where only large ones are missing, no more are made than may be kept.
        most = MOST_TESTS if self._only_large else PACKAGE_INPUTS
        made = run_kit(
            self._judge,
            self._candidate.kit,
            self._dropped,
            most=most,
        )
        self._add(made, validators)
        if self._only_large:
            return list(self._found.values())
        if self._lacks_inputs():
            self._add(self._mutate(validators), validators)
        # What a model's generators make is only kept where validators check it.
        if validators is None or self._endpoint is None:
            return list(self._found.values())
        if self._lacks_inputs():
            made = ask_for_inputs(
                self._endpoint,
                self._judge,
                self._candidate,
                self._dropped,
            )
            self._add(made, validators)
        return list(self._found.values())

    def _lacks_inputs(self) -> bool:
        return len(self._found) < self._settings.min_hidden_tests

    def _find_validators(self) -> Validators | None:
        """Return a package's validators; if it has none that work, a model's."""
        kit = self._candidate.kit
        validators = read_validators(
            self._judge,
            kit,
            self._known,
            self._dropped,
        )
        if validators is None and self._endpoint is not None:
            return write_validators(
                self._endpoint,
                self._judge,
                self._candidate,
                self._dropped,
            )
        return validators

    def _allows_unchecked(self) -> bool:
        """Whether inputs may become tests that no validator certifies."""
        if not self._settings.keep_unchecked:
            self._dropped["no validator for inputs"] += 1
            return False
        # The same program twice confirms nothing.
        distinct = {program.code for program in self._answering.references}
        if len(distinct) < 2:
            self._dropped["no validator and only one reference"] += 1
            return False
        return True

    def _mutate(self, validators: Validators | None) -> list[MadeInput]:
        """Return inputs mutated from known ones."""
        schema = infer_schema(self._candidate, is_validated=validators is not None)
        if isinstance(schema, str):
            self._dropped[f"not mutated: {schema}"] += 1
            return []
        if validators is not None:
            schema = relax_bounds(schema, validators, self._candidate)
        return mutate_known(self._candidate, schema, self._dropped)

    def _add(
        self,
        made: Sequence[MadeInput],
        validators: Validators | None,
    ) -> None:
        """Add those inputs that are new and valid."""
        known_texts = {text.strip() for text in self._known}
        fresh: dict[str, MadeInput] = {}
        for item in made:
            text = item.text.strip()
            if text not in known_texts and text not in self._found:
                # What was made twice is the first, in the place of the last.
                fresh[text] = fresh.pop(text, item)
        if validators is not None:
            accepted = validators.accept(list(fresh.values()), self._dropped)
        else:
            accepted = [item.certified("unchecked") for item in fresh.values()]
        for item in accepted:
            self._found[item.text.strip()] = item
