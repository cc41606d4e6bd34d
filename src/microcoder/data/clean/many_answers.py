"""Finds the words by which a statement says that several answers are right.

Statements say it in few ways: "if there are several, print any", "print any such array", "any
answer is accepted", "the answer need not be unique". Each is a pattern of what a program does, a
word of choice, and what an answer is called.
"""

import re

from microcoder.data.clean.orders import NOT_DENIED, VERB

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
    r"(?:any|either|whichever|(?<!each )(?<!every )one of (?:them|these|those)"
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
_BEST = (
    r"(?:shortest|longest|smallest|largest|best|cheapest|fastest|minimal|maximal|minimum|maximum"
    r"|remaining|equivalent)"
)
_PARTS = (
    r"(?:ind(?:ex|ices)|positions?|vertices|nodes|edges|elements|items|members|coordinates"
    r"|descriptions?|moves|steps)"
)
"""What an answer may consist of."""
_GIVEN = r"(?:printed|output(?:ted)?|returned|reported|displayed|given)"
_ANY_VERB = r"(?:print|output|return|report|find|give|construct|produce|provide|show|display)"
_OURS = (
    r"(?:the |our |those of the )?(?:samples?|examples?|reference|jury(?:'s)?|judges?(?:'s?)?|ours)"
)
"""The answer of a source, beside which another may be right."""
_TOLERANCE = (
    r"(?![^.\n]{0,200}\b(?:(?:errors?|precision|toleran\w+|accura\w+)\b"
    r"|within (?:an? |the (?:absolute|relative)\b|[^\w.\n]{0,3}\d)"
    r"|differ\w*\b[^.\n]{0,60}\b(?:by|most|less|more)\b))"
)
"""Not before words of a tolerance: how far an answer may be off is no choice of answers.

An answer that "may differ from the sample" is one.
"""
_ACCEPTED = r"(?:accepted|allowed|fine|valid|correct|ok|okay|acceptable|considered correct)"
_NO_QUESTION = r"(?<!if )(?<!whether )(?<!when )(?<!unless )"
"""Not where it is asked whether any of the given things is right."""
_END = r"[ \t]*(?:[.;,!)]|$)"
_NOT = r"(?:n't|n\u2019t| not)"
_MANY_ANSWERS = re.compile(
    "|".join(
        (
            # If there are several, print any.
            rf"\b(?:if|when|should|in case) there (?:are|is|exist|be) {_MANY}\b"
            r"(?![^.\n,]{0,30}\b(?:person|people|player|team|friend)s?\b)[^.\n]{0,80}"
            rf"(?<!choose )(?<!pick )(?<!select )(?<!not print )(?<!not output )(?<!not return )"
            rf"\b{_WHICHEVER}\b",
            rf"\b{_MANY} (?:{_SUCH} )?(?:answers|solutions|outputs|orderings|results)\b"
            rf"[^.\n]{{0,80}}\b(?:{_WHICHEVER}|accepted|arbitrary)\b",
            # If several schedules meet the conditions, return any.
            rf"\bif (?:there (?:are|is|exist) )?{_MANY}\b[^.\n]{{0,80}}"
            rf"{NOT_DENIED}{_RETURN} (?!{_EITHER_OR}){_WHICHEVER}\b",
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
            rf"\b{_NO_QUESTION}(?:any|every|either|all)"
            rf" (?:of (?:them|these|those)\b|(?:of the )?(?:{_SUCH} )?"
            rf"{_ANSWER}\b){_TOLERANCE}[^.\n]{{0,90}}\b(?:is|are|be) (?:also )?{_ACCEPTED}\b",
            rf"\b{_NO_QUESTION}any (?:one )?is (?:also )?{_ACCEPTED}\b",
            rf"\baccepts? (?:any|all|every) (?:{_SUCH} )?{_ANSWER}\b",
            rf"\b(?:may|can|free to|allowed to) {VERB} (?:the )?{_WHICHEVER}"
            rf"(?: (?:of|{_SUCH}|{_ANSWER})\b|{_END})",
            rf"\b(?:does|do){_NOT} matter (?:which|what) (?:{_SUCH} )?(?:answer|solution|one)\b",
            # Print one of the optimal routes; a possible colouring; an example of such a set.
            rf"{VERB} [^.\n]{{0,30}}?\bone of the (?:{_SUCH}|{_BEST}) {_ANSWER}\b",
            rf"{VERB} (?:[^.,\n]{{0,30}}, )?(?:an example of (?:such|one|an?)\b"
            rf"|a possible {_ANSWER}\b(?! (?:of|for) (?:each|every)))",
            # Print the vertices of one such cycle, the indices of any peak.
            rf"{VERB} (?:the )?{_PARTS} of (?:one such|any(?: one| such)?(?! two\b)) \w+"
            r"\b(?<!s)(?<!than)",
            # Any of the possible answers may be printed.
            r"\b(?:any|either|one) of "
            rf"(?:them|these|those|(?:the|all) (?:{_SUCH}|{_BEST}) {_ANSWER})"
            rf" (?:may|can|could|should|must) be {_GIVEN}\b",
            rf"{VERB} (?![^.\n]{{0,40}}\b(?:number|count|minim\w+|maxim\w+|sum|amount|cost)\b)"
            rf"[^.\n]{{0,60}}\bin any of the {_SUCH} (?:ways|orders|forms)\b",
            # If there are several options, you may choose any.
            rf"\b{_MANY} (?:{_SUCH} )?(?:answers|solutions|options|ways|choices|possibilities)\b"
            rf"[^.\n]{{0,40}}\byou (?:may|can|are free to) (?:choose|pick|select) {_WHICHEVER}"
            rf"(?: of (?:them|these|those)\b|{_END})",
            # You only need to find one of several.
            r"\b(?:(?:only|just) (?:need|have) to|need only|it (?:is enough|suffices) to)"
            rf" {_ANY_VERB} (?:any |just |only )?(?:one|any)(?: of (?:them|these|those)\b|{_END})",
            # The output need not match the sample.
            rf"\b(?:answer|solution|output|result|yours)s?\b"
            rf" (?:(?:does|do){_NOT} (?:have to|need to|necessarily)|(?:may|need|might){_NOT})"
            r" (?:match|coincide with|be (?:the same as|identical to))"
            rf" {_OURS}\b",
            rf"\b(?:may|might|can|could) (?:well )?(?:differ|be different) from {_OURS}"
            r"\b(?![^.\n]{0,60}\bby\b)",
            r"\bspecial (?:judge|checker|evaluator)\b",
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


def says_many_answers(words: str) -> bool:
    """Whether a statement, without its examples, says that several answers are right."""
    return _MANY_ANSWERS.search(words.replace("*", "")) is not None


def shows_another_answer(explanation: str) -> bool:
    """Whether what explains an example says that another answer is right, too."""
    return _ALSO_ACCEPTED.search(explanation) is not None
