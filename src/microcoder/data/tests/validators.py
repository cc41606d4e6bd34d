"""The certificate of a made input: which programs, that read the problem's input format, accept it.

`package`    all validators of the package accept it, by the flags of one group of its tests
`model`      two validators accept it that a model wrote apart from each other, and that accept every known input and
             refuse known ones that were spoilt
`unchecked`  nothing was asked

Validators run in the sandbox. Those of 45 packages of Kodsport refuse every input that was spoilt, in seven ways: what
accepts one checks too little.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.formats.candidates import Candidate, InputKit
from microcoder.data.tests.answers import MadeInput
from microcoder.judge import Invocation, Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Program

PROGRAM_SECONDS, PROGRAM_MIB = 20.0, 2048
"""CPU seconds and memory of a generator or validator (our choices)."""
_VALID = (0, 42)
"""Exit codes of a validator that accepts: testlib's and its like, and those of the Kattis format."""
_MOST_TRIED = 8
"""Known inputs that validators are tried on."""
_NUM_BY_MODEL, _MOST_BY_MODEL = 2, 4
"""Validators of a model that must accept an input; how many it is asked for until so many can be relied on."""
_TEMPERATURE = 0.8
"""So that a model writes another one each time."""
_HUGE = "9" * 40


@dataclass(frozen=True, slots=True)
class Validators:
    """Programs that must all accept an input."""

    judge: Judge
    programs: tuple[Program, ...]
    certificate: str
    """What an input is certified by that they accept."""
    ways: tuple[tuple[str, ...], ...] = ((),)
    """Further arguments to call them with, of one group of tests each, those of the widest group first."""
    arguments: tuple[tuple[str, ...], ...] = ()
    """What each program is always called with."""

    def accept(self, made: Sequence[MadeInput], dropped: Counter[str]) -> list[MadeInput]:
        """Return the inputs that all accept in one of the ways, certified, in their order; others are counted."""
        valid: set[int] = set()
        for flags in self.ways:
            left = [number for number in range(len(made)) if number not in valid]
            valid |= {left[place] for place in self.ask([made[number].text for number in left], flags)}
        dropped["refused by a validator"] += len(made) - len(valid)
        return [certify(made[number], self.certificate) for number in sorted(valid)]

    def ask(self, texts: Sequence[str], flags: tuple[str, ...] = ()) -> set[int]:
        """Return the numbers of the texts that all programs accept.

        Raises:
            DataError: a program cannot be run here.
            EvaluatorFault: likewise.
        """
        valid = set(range(len(texts)))
        for place, program in enumerate(self.programs):
            own = self.arguments[place] if self.arguments else ()
            runs = {
                number: self.judge.submit_run(
                    Invocation(
                        program=program,
                        stdin=texts[number].encode("utf-8", "surrogatepass"),
                        arguments=(*own, *flags),
                        cpu_seconds=PROGRAM_SECONDS,
                        memory_limit_mib=PROGRAM_MIB,
                    )
                )
                for number in sorted(valid)
            }
            valid = {number for number, run in runs.items() if run.result().exit_code in _VALID}
        return valid


def certify(made: MadeInput, certificate: str) -> MadeInput:
    """Return an input with its certificate."""
    return made._replace(origin=made.origin.model_copy(update={"certificate": certificate}))


def read_validators(judge: Judge, kit: InputKit, known: Sequence[str], dropped: Counter[str]) -> Validators | None:
    """Return a package's own validators; None, and counted, where there are none that can be asked.

    Which groups of tests their flags are of is not always told: the group that most known inputs are valid in is the
    widest.

    Args:
        judge: runs them.
        kit: of the package.
        known: inputs that came with it.
        dropped: counts why none is asked.
    """
    own = [one for one in kit.programs if one.role == "validator"]
    if not own:
        return None
    programs = tuple(Program(one.code, one.language) for one in own)
    found = Validators(judge, programs, "package", arguments=tuple(one.arguments for one in own))
    recipes = dict.fromkeys(recipe.flags for recipe in reversed(kit.recipes))
    ways = [*dict.fromkeys([*reversed(kit.flags), *recipes])] or [()]
    step = max(1, len(known) // _MOST_TRIED)
    tried = sorted(known, key=len)[::-step][:_MOST_TRIED] or [""]
    try:
        accepted = {flags: len(found.ask(tried, flags)) for flags in ways}
    except (DataError, EvaluatorFault):
        dropped["validators cannot be run here"] += 1
        return None
    if known and not any(accepted.values()):
        # They are called in a way that is not known here.
        dropped["validators refuse what came with the problem"] += 1
        return None
    return replace(found, ways=tuple(sorted(ways, key=lambda flags: -accepted[flags])))


_SCHEMA = {
    "type": "object",
    "properties": {"validator": {"type": "string"}},
    "required": ["validator"],
    "additionalProperties": False,
}
_ASKED = """\
Write a Python 3 program that checks test inputs for the programming problem below. It reads one input from stdin,
{form}. It exits with 0 if the statement allows that input, else with 1: it checks every number of lines and of tokens,
every bound, every letter, whatever else the statement promises (distinct, sorted, connected, a tree, ...), and that
nothing follows.

Reply with JSON: {{"validator": "..."}}

{problem}"""


def write_validators(
    endpoint: Endpoint, judge: Judge, candidate: Candidate, dropped: Counter[str]
) -> Validators | None:
    """Return validators that a model wrote; None, and counted, where it wrote too few that can be relied on."""
    known = [test.input for test in candidate.tests][:_MOST_TRIED]
    spoilt = spoil(known)
    found: list[Program] = []
    for number in range(_MOST_BY_MODEL if known else 0):
        text = _ASKED.format(form=describe_form(candidate), problem=describe_problem(candidate))
        try:
            reply = endpoint.ask(
                [{"role": "user", "content": text}], _SCHEMA, seed=number + 1, temperature=_TEMPERATURE
            )
        except BadReply:
            dropped["model: no usable reply"] += 1
            continue
        program = Program(str(reply["validator"]))
        one = Validators(judge, (program,), "model")
        if program in found:
            dropped["model: wrote a validator twice"] += 1
        elif len(one.ask(known)) < len(known):
            dropped["model: its validator refuses a known input"] += 1
        elif one.ask(spoilt):
            dropped["model: its validator accepts a spoilt input"] += 1
        else:
            found.append(program)
        if len(found) == _NUM_BY_MODEL:
            return Validators(judge, tuple(found), "model")
    dropped["model: too few validators that can be relied on"] += 1
    return None


def spoil(known: Sequence[str]) -> list[str]:
    """Return inputs that no problem allows, made from known ones: cut short, with something after them, or with a word
    or a huge number where all known ones have a small number.
    """
    first = known[0]
    tokens = list(re.finditer(r"\S+", first))
    lines = first.rstrip("\n").split("\n")
    found = ["", f"{first.rstrip()}\nxq zz!\n", "".join(f"{line}\n" for line in lines[:-1])]
    if not tokens:
        return list(dict.fromkeys(found))
    found.append(first[: tokens[-1].start()].rstrip() + "\n")
    of_all = zip(*(re.findall(r"\S+", text) for text in known), strict=False)
    place = next((at for at, seen in enumerate(of_all) if all(re.fullmatch(r"-?\d{1,30}", one) for one in seen)), None)
    if place is not None:
        token = tokens[place]
        found += [first[: token.start()] + other + first[token.end() :] for other in ("xq", _HUGE, f"-{_HUGE}")]
    return [one for one in dict.fromkeys(found) if one not in known]


def describe_form(candidate: Candidate) -> str:
    """Return how a model is to write or to read an input."""
    if candidate.fn_name is not None:
        return "one JSON value a line, an argument of the function each"
    return "as a solution reads it from stdin"


def describe_problem(candidate: Candidate) -> str:
    """Return what a model is shown of a problem."""
    known = [test.input for test in candidate.tests if len(test.input) <= 2000][:5]
    return f"Problem:\n\n{candidate.statement}\n\nKnown inputs, one after the other:\n\n" + "\n---\n".join(known) + "\n"
