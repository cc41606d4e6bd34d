"""Finds new inputs of a problem, by all ways of making them, and certifies them."""

from collections import Counter
from collections.abc import Sequence

from microcoder.data.completions import Endpoint
from microcoder.data.inputs.texts import TEXT_CHANGES
from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.extremes import make_arranged, make_stretched
from microcoder.data.testgen.kits import ask_for_inputs, run_kit
from microcoder.data.testgen.made import MadeInput, MadeTest
from microcoder.data.testgen.mutation import (
    InputSchema,
    change_known_texts,
    find_ways,
    infer_schema,
    make_tiny,
    mutate_known,
    relax_bounds,
)
from microcoder.data.testgen.settings import (
    MOST_CHANGED,
    MOST_LARGE_MADE,
    MOST_TINY,
    MOST_TINY_KEPT,
    MOST_WALKED,
    PACKAGE_INPUTS,
    STEPS_OF_WALK,
    GenerateSettings,
)
from microcoder.data.testgen.validators import Validators, read_validators, write_validators


class InputSearch:
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
        self._validators: Validators | None = None

    @property
    def num_found(self) -> int:
        """How many inputs were made."""
        return len(self._found)

    def find(self) -> list[MadeInput]:
        """Return the inputs.

        Uncertified inputs are included if the settings allow it and there are two references.
        """
        # Without a validator, what a mutation made may be no input at all.
        self._validators = self._find_validators()
        if self._validators is None and not self._allows_unchecked():
            return []
        # Where only large ones are missing, no more are made than may be kept.
        most = MOST_LARGE_MADE if self._only_large else PACKAGE_INPUTS
        made = run_kit(
            self._judge,
            self._candidate.kit,
            self._dropped,
            most=most,
        )
        self._add(made)
        if self._only_large:
            return list(self._found.values())
        schema = self._infer_schema()
        if schema is not None and self._lacks_inputs():
            self._add(mutate_known(self._candidate, schema, self._dropped))
        # What a model's generators make is only kept where validators check it.
        is_checked = self._validators is not None
        if is_checked and self._endpoint is not None and self._lacks_inputs():
            made = ask_for_inputs(
                self._endpoint,
                self._judge,
                self._candidate,
                self._dropped,
            )
            self._add(made)
        if self._validators is not None:
            self._add_certified(schema, self._validators)
        return list(self._found.values())

    def find_more(
        self,
        tests: Sequence[MadeTest],
        number: int,
    ) -> list[MadeInput]:
        """Return further inputs, changed from known and made ones; none without a validator.

        Args:
            tests: those made so far.
            number: that of the round; another one makes other inputs.
        """
        if self._validators is None or self._candidate.fn_name is not None:
            return []
        known = [*self._candidate.tests, *(made.test for made in tests)]
        changed = change_known_texts(
            self._candidate,
            known,
            most=MOST_CHANGED,
            round_name=str(number),
        )
        return self._add(changed)

    def find_between(self, tests: Sequence[MadeTest]) -> list[list[MadeInput]]:
        """Return the valid inputs of ways between tests that have different answers."""
        if self._validators is None or self._candidate.fn_name is not None:
            return []
        known = [*self._candidate.tests, *(made.test for made in tests)]
        ways = find_ways(self._candidate, known)
        accepted = self._add([made for way in ways for made in way])
        certified = {made.text: made for made in accepted}
        return [[certified[made.text] for made in way if made.text in certified] for way in ways]

    def _add_certified(
        self,
        schema: InputSchema | None,
        validators: Validators,
    ) -> None:
        """Add what is made without regard to known bounds, as validators decide."""
        if self._candidate.fn_name is None:
            self._walk()
        if schema is not None:
            tiny = make_tiny(self._candidate, schema, most=MOST_TINY)
            self._add(tiny, most=MOST_TINY_KEPT)
            self._add(make_arranged(schema, validators, self._candidate))
        elif self._candidate.fn_name is None:
            self._add(make_stretched(validators, self._candidate))

    def _walk(self) -> None:
        """Add changed inputs, and changed ones of those that are valid, and so on.

        Many changes at once are refused, as a rule. A change at a time leads to inputs that have
        little in common with the known ones, such as crowded ones.
        """
        latest: list[MadeInput] = []
        num_accepted: Counter[str] = Counter()
        for number in range(STEPS_OF_WALK):
            changed = change_known_texts(
                self._candidate,
                self._candidate.tests,
                most=MOST_WALKED // STEPS_OF_WALK,
                round_name=f"walk {number}",
                latest=latest,
                changes=_favour(num_accepted),
            )
            accepted = self._add(changed)
            for made in accepted:
                num_accepted[made.origin.kind.partition("/")[2]] += 1
            # Where a step led nowhere, the next one starts where it started.
            if accepted:
                latest = accepted

    def _infer_schema(self) -> InputSchema | None:
        """Return the layout of the inputs, with bounds where no validator decides."""
        validators = self._validators
        schema = infer_schema(self._candidate, is_validated=validators is not None)
        if isinstance(schema, str):
            self._dropped[f"not mutated: {schema}"] += 1
            return None
        if validators is None:
            return schema
        return relax_bounds(schema, validators, self._candidate)

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

    def _add(
        self,
        made: Sequence[MadeInput],
        *,
        most: int | None = None,
    ) -> list[MadeInput]:
        """Add those inputs that are new and valid, the first `most` of them; return them."""
        known_texts = {text.strip() for text in self._known}
        fresh: dict[str, MadeInput] = {}
        for item in made:
            text = item.text.strip()
            if text not in known_texts and text not in self._found:
                # What was made twice is the first, in the place of the last.
                fresh[text] = fresh.pop(text, item)
        if self._validators is not None:
            accepted = self._validators.accept(list(fresh.values()), self._dropped)
        else:
            accepted = [item.certified("unchecked") for item in fresh.values()]
        accepted = accepted[:most]
        for item in accepted:
            self._found[item.text.strip()] = item
        return accepted


def _favour(num_accepted: Counter[str]) -> list[str]:
    """Return the changes to make in turn: each once, and as many again of those that succeed."""
    changes = list(TEXT_CHANGES)
    total = num_accepted.total()
    if not total:
        return changes
    favoured = []
    for name in TEXT_CHANGES:
        times = round(len(TEXT_CHANGES) * num_accepted[name] / total)
        favoured += [name] * times
    return changes + favoured


def find_inputs(
    answering: Answering, settings: GenerateSettings, endpoint: Endpoint | None
) -> list[MadeInput]:
    """Return new inputs of a candidate that validators certify; none where nothing does."""
    certified = settings.model_copy(update={"keep_unchecked": False})
    return InputSearch(answering, certified, endpoint, only_large=False).find()
