"""Looks for what is missing to solve or to judge a problem, and flags it."""

import re

from microcoder.data.clean.orders import FLAG, NOT_DENIED, VERB, says_any_order
from microcoder.data.clean.pictures import IMAGE, needs_picture
from microcoder.data.clean.samples import samples_of, values_of
from microcoder.data.clean.sections import Sections, split
from microcoder.data.clean.unstated import FLAG as UNSTATED
from microcoder.data.clean.unstated import has_unstated_answer
from microcoder.data.formats.candidates import Candidate

_INTERACTIVE = re.compile(
    r"\bthis is an? (?:interactive|reactive) (?:problem|task)|\binteractive (?:problem|task)s?\b|"
    r"\bflush (?:the )?(?:output|stdout)"
    r"|\bfflush\b|\bsys\.stdout\.flush|\bcout\.flush|\byour program (?:will|should) interact"
    r"|\bthe interactor\b"
    r"|\byou (?:can|may) (?:ask|make) (?:at most|up to|no more than) "
    r"[\w$^{}\\ ]{1,20} quer(?:y|ies) to the (?:judge|jury)",
    re.IGNORECASE,
)
"""Words of a problem whose program talks with a judge."""
_ANSWER = (
    r"(?:answers?|solutions?|outputs?|results?|order(?:ing)?s?|sequences?|arrays?|lists?"
    r"|permutations?|strings?|words?|ways?|pairs?|triples?|sets?|subsets?|paths?|routes?"
    r"|colou?rings?|assignments?|arrangements?|configurations?|constructions?|matri(?:x|ces)"
    r"|tables?|trees?|graphs?|edges?|ind(?:ex|ices)|positions?|options?|ones?|representations?"
    r"|partitions?|plans?|numbers?(?! of)|integers?)"
)
_SUCH = r"(?:such|valid|possible|correct|suitable|optimal|feasible|appropriate|acceptable)"
_MANY = r"(?:multiple|several|many|more than one|various|different)"
_WHICHEVER = (
    r"(?:any|either|whichever|one of (?:them|these|those)"
    r"|all of (?:them|these|those) (?:is|are|will|would|count)\b)"
)
_RETURN = r"(?:return|print|output)"
_EITHER_OR = r"either (?!of\b|one\b)[^.\n]{1,40}\bor\b"
"""Two answers of which one is right, as in "print either YES or NO"."""
_NO_ANSWER = (
    r"(?:extra|other|more|further|additional|leading|trailing|(?:white)?spaces?|text|debug\w*"
    r"|number of|kind of|prompts?|blank|unnecessary|remaining|newlines?|messages?)"
)
"""What a program must print none of."""
_OF_ONE = (
    rf"(?:of|that|which|with|in|from|whose|where|and|or|for|as|one|two|three|four|five|six|[a-z]"
    rf"|answers|solutions|outputs|results|{_SUCH})\b"
)
"""What makes one answer of a plural: "any two indices", "any valid pairs", "any solutions"."""
_ANY = (
    rf"any(?! (?:(?!{_OF_ONE})[a-z-]+ ){{0,2}}(?!{_OF_ONE})[a-z-]{{2,}}(?<![sui])s\b"
    r"(?! \W{0,2}[b-z]\b))"
)
"""Not before a plural: "return any numbers above 5" asks for all of these.

"Any indices i and j" are one answer.
"""
_TOLERANCE = (
    r"(?![^.\n]{0,200}\b(?:(?:errors?|precision|toleran\w+|accura\w+)\b"
    r"|within (?:an? |the (?:absolute|relative)\b|[^\w.\n]{0,3}\d)"
    r"|differ\w*\b[^.\n]{0,60}\b(?:by|most|less|more)\b))"
)
"""Not before words of a tolerance: how far an answer may be off is no choice of answers.

An answer that "may differ from the sample" is one.
"""
_ACCEPTED = r"(?:accepted|allowed|fine|valid|correct|ok|okay|acceptable|considered correct)"
_END = r"[ \t]*(?:[.;,!)]|$)"
_NOT = r"(?:n't|n\u2019t| not)"
_MANY_ANSWERS = re.compile(
    "|".join(
        (
            # If there are several, print any.
            rf"\b(?:if|when|should|in case) there (?:are|is|exist|be) {_MANY}\b"
            r"(?![^.\n,]{0,30}\b(?:person|people|player|team|friend)s?\b)[^.\n]{0,80}"
            rf"(?<!choose )(?<!pick )(?<!select )\b{_WHICHEVER}\b",
            rf"\b{_MANY} (?:{_SUCH} )?(?:answers|solutions|outputs|orderings|results)\b"
            rf"[^.\n]{{0,80}}\b(?:{_WHICHEVER}|accepted|arbitrary)\b",
            # If several schedules meet the conditions, return any.
            rf"\bif (?:there (?:are|is|exist) )?{_MANY}\b[^.\n]{{0,80}}"
            rf"\b{_RETURN} (?!{_EITHER_OR}){_WHICHEVER}\b",
            # Return any grid such that ...; the size of any such subarray; find any peak and ...
            rf"{NOT_DENIED}{_RETURN} {_ANY} (?!{_NO_ANSWER}\b)[\w\[]",
            rf"\b{_RETURN} the [^.,\n]{{1,40}} of any such\b",
            rf"\b(?:find|construct|build) {_ANY} (?!two\b)[^.\n]{{1,80}}"
            rf"\b(?:and {_RETURN}|or (?:report|determine|say|{_RETURN}))\b",
            # Print any of them; output any.
            rf"{VERB} (?:them |it |the answer )?(?:{_ANY}|an arbitrary|arbitrary)"
            rf"(?: (?:one|of (?:them|the)\b|{_SUCH}\b|{_ANSWER}\b)|{_END})",
            # "If the lock displays any of these codes" is another matter.
            rf"{VERB} any of (?:these|those)(?: (?:{_SUCH}\b|{_ANSWER}\b)|{_END})",
            rf"{VERB} (?:just |only )?one (?:such\b|{_SUCH} {_ANSWER}\b"
            r"|of (?:them|these|those)\b|if there)",
            # The answer need not be unique.
            r"\b(?:answer|solution|output|result|ordering|permutation|sequence|it)s?\b[^.\n]{0,25}"
            rf"\b(?:is|are|was|were|may|might|need|does|do){_NOT}"
            r"(?: have to be| need to be| be)?(?: necessarily| always)? unique\b",
            # Any answer is accepted.
            rf"\b(?:any|every|either|all) (?:of (?:them|these|those)\b|(?:of the )?(?:{_SUCH} )?"
            rf"{_ANSWER}\b){_TOLERANCE}[^.\n]{{0,90}}\b(?:is|are|be) (?:also )?{_ACCEPTED}\b",
            rf"\bany (?:one )?is (?:also )?{_ACCEPTED}\b",
            rf"\baccepts? (?:any|all|every) (?:{_SUCH} )?{_ANSWER}\b",
            rf"\b(?:may|can|free to|allowed to) {VERB} (?:the )?{_WHICHEVER}"
            rf"(?: (?:of|{_SUCH}|{_ANSWER})\b|{_END})",
            rf"\b(?:does|do){_NOT} matter (?:which|what) (?:{_SUCH} )?(?:answer|solution|one)\b",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)
"""Words of a problem with several right answers."""
_ALSO_ACCEPTED = re.compile(
    r"\b(?:is|are|was|were|be|been|'s)(?: also)? (?:also accepted|accepted as well|accepted too)\b"
    r"|\b(?:would|will) also (?:be|have been) (?:accepted|considered correct)\b"
    r"|\banother (?:valid|correct|possible|acceptable) (?:answer|output)\b",
    re.IGNORECASE,
)
"""Words of an example that has another right answer than the one that it shows."""
_COMPARISONS = ("default", "exact", "tokens", "float")
"""Types of checkers that accept one answer only."""
_MOST_OF_A_SAMPLE = 50_000
"""Characters of a test; a longer one is not compared with the statement's examples."""


def find_flags(candidate: Candidate) -> tuple[str, ...]:
    """Return the candidate's flags and those found here, sorted.

    `has_image` (a picture, kept as a reference), `needs_image` (the text leaves something to a
    picture), `interactive`, `many_answers` (several answers are
    right and nothing but a comparison decides), `unstated_output` (the tests expect what the
    statement never names), `samples_missing` (an example of the statement is
    not among the tests), `samples_differ` (a test has an example's input and another output). An
    interactor decides about all but the pictures.
    """
    sections = split(candidate.statement)
    words = _words_of(sections)
    flags = set(candidate.flags)
    if IMAGE.search(candidate.statement):
        flags.add("has_image")
    if needs_picture(sections):
        flags.add("needs_image")
    if candidate.interactor is not None:
        return tuple(sorted(flags))
    if _INTERACTIVE.search(words):
        flags.add("interactive")
    only_compares = candidate.checker.type in _COMPARISONS or FLAG in flags
    if only_compares and _has_many_answers(candidate, words):
        flags.add("many_answers")
    if candidate.checker.type in _COMPARISONS and has_unstated_answer(candidate):
        flags.add(UNSTATED)
    flags |= _compare_samples(candidate, sections)
    return tuple(sorted(flags))


def _has_many_answers(candidate: Candidate, words: str) -> bool:
    """Whether a statement speaks of several right answers."""
    if _MANY_ANSWERS.search(words.replace("*", "")):
        return True
    for example in split(candidate.statement).examples:
        if _ALSO_ACCEPTED.search(example.explanation):
            return True
    # Those that have a checker for that were given it (`find_order`, `find_printed_order`).
    has_no_order = candidate.fn_name is None and FLAG not in candidate.flags
    return has_no_order and says_any_order(words)


def _words_of(sections: Sections) -> str:
    """Return a statement without constraints and examples: words there say nothing about the
    task."""
    texts = [sections.statement, sections.input, sections.output, sections.note]
    for title, text in sections.other:
        texts += [title, text]
    return "\n".join(texts)


def _compare_samples(candidate: Candidate, sections: Sections) -> set[str]:
    """Return flags for examples of the statement that are missing among the tests, or differ
    there."""
    # Without tests, or in tests that are programs, no example is missing.
    if not candidate.tests or candidate.assertions is not None:
        return set()
    outputs: dict[str, set[str]] = {}
    for test in candidate.tests:
        if len(test.input) + len(test.output) <= _MOST_OF_A_SAMPLE:
            known_outputs = outputs.setdefault(values_of(test.input), set())
            known_outputs.add(values_of(test.output))
    flags = set()
    for given, printed in samples_of(sections):
        if given not in outputs:
            flags.add("samples_missing")
        elif printed not in outputs[given]:
            flags.add("samples_differ")
    return flags
