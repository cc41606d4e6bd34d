"""Says which made inputs are valid: by a package's own validators, or by those that a model writes.

All programs run in the sandbox. The certificate of a made input says which validators accept it.

`package`    all validators of the package accept it, by the flags of one group of its tests, and
             refuse known ones that were spoilt
`model`      two validators accept it that a model wrote apart from each other, and that accept
             every known input and refuse spoilt ones, too
`unchecked`  no validator was run
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.formats.candidates import Candidate, InputKit
from microcoder.data.testgen.made import MadeInput, start
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Program, Record

Flags = tuple[str, ...]
"""Arguments that validators are called with."""
_VALID = (0, 42)
"""Exit codes of a validator that accepts.

testlib's and its like, and those of the Kattis format.
"""
_MOST_TRIED = 8
"""Known inputs that validators are tried on."""
_NUM_BY_MODEL = 2
"""Validators of a model that must accept an input."""
_MOST_BY_MODEL = 4
"""How many validators a model is asked for at most, until so many are reliable."""
_TEMPERATURE = 0.8
"""Sampling temperature: a model is to write another validator each time."""
_MOST_SHOWN = 5
"""Known inputs that a prompt shows."""
_LONGEST_SHOWN = 2000
"""Characters of a known input that a prompt shows."""
_TOKEN = re.compile(r"\S+")
_SMALL_NUMBER = re.compile(r"-?\d{1,30}")
_HUGE = "9" * 40
"""A number beyond every bound that a statement gives."""


@dataclass(frozen=True, slots=True)
class Validators:
    """Programs that must all accept an input."""

    judge: Judge
    programs: tuple[Program, ...]
    certificate: str
    """Certificate of the inputs that they accept."""
    ways: tuple[Flags, ...] = ((),)
    """Arguments to call them with, one tuple per group of tests.

    The one that accepts most known inputs comes first.
    """

    def accept(
        self,
        made: Sequence[MadeInput],
        dropped: Counter[str],
    ) -> list[MadeInput]:
        """Return the inputs that all programs accept in one of `ways`, certified, in order.

        The other inputs are counted in `dropped`.
        """
        valid: set[int] = set()
        # An input is valid if it is so by the rules of one group of tests.
        for flags in self.ways:
            left = [number for number in range(len(made)) if number not in valid]
            texts = [made[number].text for number in left]
            accepted = self.ask(texts, flags)
            valid.update(left[place] for place in accepted)
        dropped["refused by a validator"] += len(made) - len(valid)
        return [made[number].certified(self.certificate) for number in sorted(valid)]

    def ask(
        self,
        texts: Sequence[str],
        flags: Flags = (),
    ) -> set[int]:
        """Return the indices of the texts that all programs accept with these arguments."""
        valid = set(range(len(texts)))
        for program in self.programs:
            # All are started before the first is waited for.
            runs = {}
            # Only those that every program before this one accepts.
            for number in sorted(valid):
                run = start(
                    self.judge,
                    program,
                    stdin=texts[number],
                    arguments=flags,
                )
                runs[number] = run
            valid = set()
            for number, run in runs.items():
                if run.result().exit_code in _VALID:
                    valid.add(number)
        return valid


def read_validators(
    judge: Judge,
    kit: InputKit,
    known: Sequence[str],
    dropped: Counter[str],
) -> Validators | None:
    """Return a package's own validators.

    None if there are none or if they do not work, which is counted in `dropped`. It is not always
    stated to which tests a validator's flags belong, so `ways` are ordered by how many known inputs
    they accept.
    """
    programs = []
    for program in kit.programs:
        if program.role == "validator":
            programs.append(Program(program.code, program.language))
    if not programs:
        return None
    validators = Validators(judge, tuple(programs), "package")
    ways = _list_ways(kit)
    tried = _choose_tried(known)
    try:
        num_accepted = {flags: len(validators.ask(tried, flags)) for flags in ways}
    except (DataError, EvaluatorFault):
        dropped["validators cannot be run here"] += 1
        return None
    if known and not any(num_accepted.values()):
        # They are called in a way that is not known here.
        dropped["validators refuse what came with the problem"] += 1
        return None
    # The way that fits most known inputs is tried first, and decides about spoilt ones.
    ways.sort(key=lambda flags: -num_accepted[flags])
    # The shortest first, since that one is spoilt.
    if known and validators.ask(spoil(tried[::-1]), ways[0]):
        dropped["validators accept a spoilt input"] += 1
        return None
    return replace(validators, ways=tuple(ways))


def _list_ways(kit: InputKit) -> list[Flags]:
    """Return the different arguments that a package calls its validators with, the last first."""
    # A dict, as a set that keeps its order.
    ways = dict.fromkeys(reversed(kit.flags))
    for recipe in reversed(kit.recipes):
        # What is asked of the samples may be next to nothing.
        if not recipe.group.startswith("sample"):
            ways.setdefault(recipe.flags)
    return list(ways) or [()]


def _choose_tried(known: Sequence[str]) -> list[str]:
    """Return some known inputs of all lengths, the longest first; an empty input if none is
    known."""
    step = max(1, len(known) // _MOST_TRIED)
    from_longest = sorted(known, key=len)[::-step]
    return from_longest[:_MOST_TRIED] or [""]


_VALIDATOR_ASKED = """\
Write a Python 3 program that checks test inputs for the programming problem below. \
It reads one input from stdin,
{form}. It exits with 0 if the statement allows that input, else with 1: \
it checks every number of lines and of tokens,
every bound, every letter, whatever else the statement promises \
(distinct, sorted, connected, a tree, ...), and that
nothing follows.

Reply with JSON: {{"validator": "..."}}

{problem}"""


class WrittenValidator(Record):
    """A model's reply that holds the source of an input validator, a Python program."""

    validator: str


def write_validators(
    endpoint: Endpoint,
    judge: Judge,
    candidate: Candidate,
    dropped: Counter[str],
) -> Validators | None:
    """Return validators that a model wrote.

    None if too few of them prove reliable, which is counted in `dropped`.
    """
    known = [test.input for test in candidate.tests]
    spoilt = spoil(known)
    prompt = _VALIDATOR_ASKED.format(**describe(candidate))
    reliable: list[Program] = []
    # Without known inputs nothing shows that a validator can be relied on.
    num_asked = _MOST_BY_MODEL if known else 0
    for number in range(num_asked):
        try:
            # Another seed each time: the same request would get the same reply.
            reply = endpoint.ask(
                prompt,
                WrittenValidator,
                seed=number + 1,
                temperature=_TEMPERATURE,
            )
        except BadReply:
            dropped["model: no usable reply"] += 1
            continue
        program = Program(reply.validator)
        alone = Validators(judge, (program,), "model")
        if program in reliable:
            dropped["model: wrote a validator twice"] += 1
        elif len(alone.ask(known)) < len(known):
            dropped["model: its validator refuses a known input"] += 1
        elif alone.ask(spoilt):
            dropped["model: its validator accepts a spoilt input"] += 1
        else:
            reliable.append(program)
        if len(reliable) == _NUM_BY_MODEL:
            return Validators(judge, tuple(reliable), "model")
    dropped["model: too few validators that can be relied on"] += 1
    return None


def spoil(known: Sequence[str]) -> list[str]:
    """Return inputs that no problem allows, made from known inputs; none without known ones.

    Some are cut short or have text after the end. Others have a word or a huge number where all
    known inputs have a small number.
    """
    if not known:
        return []
    first = known[0]
    lines = first.rstrip("\n").split("\n")
    without_last_line = "".join(f"{line}\n" for line in lines[:-1])
    spoilt = ["", f"{first.rstrip()}\nxq zz!\n", without_last_line]
    tokens = list(_TOKEN.finditer(first))
    if not tokens:
        return list(dict.fromkeys(spoilt))
    # Cut short inside its last line, but "pea" may stand where "pea soup" does.
    if not _is_phrase(lines[-1]):
        cut_short = first[: tokens[-1].start()].rstrip()
        spoilt.append(cut_short + "\n")
    place = _find_number(known)
    # Where all have a number, a word is wrong, and so is a number beyond any bound.
    if place is not None:
        before = first[: tokens[place].start()]
        after = first[tokens[place].end() :]
        spoilt += [before + other + after for other in ("xq", _HUGE, f"-{_HUGE}")]
    # What was spoilt may by chance be another known input.
    return [text for text in dict.fromkeys(spoilt) if text not in known]


def _is_phrase(line: str) -> bool:
    """Whether a line is several words without a digit, of which one fewer is a line as well."""
    return len(line.split()) > 1 and not any(map(str.isdigit, line))


def _find_number(texts: Sequence[str]) -> int | None:
    """Return the place of the first token that is a small number in all texts."""
    tokens_by_text = map(_TOKEN.findall, texts)
    for place, tokens in enumerate(zip(*tokens_by_text, strict=False)):
        if all(map(_SMALL_NUMBER.fullmatch, tokens)):
            return place
    return None


def describe(candidate: Candidate) -> dict[str, str]:
    """Return what a prompt says of a problem.

    `form`: how an input is written. `problem`: the statement, with known inputs.
    """
    form = "as a solution reads it from stdin"
    if candidate.fn_name is not None:
        form = "one JSON value a line, an argument of the function each"
    inputs = [test.input for test in candidate.tests if len(test.input) <= _LONGEST_SHOWN]
    known = "\n---\n".join(inputs[:_MOST_SHOWN])
    statement = f"Problem:\n\n{candidate.statement}\n"
    problem = f"{statement}\nKnown inputs, one after the other:\n\n{known}\n"
    return {"form": form, "problem": problem}
