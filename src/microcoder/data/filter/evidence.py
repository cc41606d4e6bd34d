"""What two records have in common besides their words: equal tests, and the same program."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from microcoder.data.filter.texts import hash_text
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import parse_python

_LEAST_CHARACTERS = 6
"""Fewest characters of an input that tells anything: many problems have one of `5`."""
_LEAST_EQUAL = 5
"""Fewest inputs with equal outputs by which two records are one problem (our choice)."""
_LEAST_SHARE = 0.5
"""Least share of the tests of the record with fewer (our choice).

Harder versions of a problem share its first examples.
"""
_LEAST_OUTPUTS = 3
"""Fewest different outputs among these: two problems may both answer yes five times."""
_MOST_OWNERS = 16
"""Records with one test from which on it says nothing, since many problems have it."""
_MOST_PROGRAMS = 3
"""Accepted programs of a record that are compared, the first."""
_LEAST_PROGRAM = 80
"""Fewest characters of a program that says what its problem is."""


def is_telling(test_input: str) -> bool:
    """Whether an input is long enough to be no problem's by chance."""
    return len(test_input.strip()) >= _LEAST_CHARACTERS


def hash_programs(candidate: Candidate) -> frozenset[int]:
    """Return a hash of each of the first accepted Python programs, without their layout."""
    hashes = set()
    programs = [one for one in candidate.solutions if one.known == "accepted"]
    for solution in programs[:_MOST_PROGRAMS]:
        tree = parse_python(solution.code) if solution.language == "python" else None
        if tree is None:
            continue
        code = ast.unparse(tree)
        if len(code) >= _LEAST_PROGRAM:
            hashes.add(hash_text(code))
    return frozenset(hashes)


def pairs_with_equal_tests(
    tests: Sequence[Mapping[int, int]],
) -> Iterator[tuple[int, int]]:
    """Yield the places of records that give equal outputs for enough telling inputs, lower first.

    Args:
        tests: of each record, the digest of the output by that of the input.
    """
    owners: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for place, answers in enumerate(tests):
        for test in answers.items():
            owners[test].append(place)
    num_equal: Counter[tuple[int, int]] = Counter()
    outputs: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for (_, output), places in owners.items():
        if len(places) > _MOST_OWNERS:
            continue
        for pair in combinations(places, 2):
            num_equal[pair] += 1
            outputs[pair].add(output)
    for pair in sorted(num_equal):
        one, other = pair
        fewer = min(len(tests[one]), len(tests[other]))
        least = max(_LEAST_EQUAL, _LEAST_SHARE * fewer)
        if num_equal[pair] >= least and len(outputs[pair]) >= _LEAST_OUTPUTS:
            yield pair


def pairs_with_one_program(
    programs: Sequence[frozenset[int]],
) -> Iterator[tuple[int, int]]:
    """Yield the places of successive records that have the same program, lower first."""
    first: dict[int, int] = {}
    for place, hashes in enumerate(programs):
        for program in sorted(hashes):
            if program in first:
                yield first[program], place
            first.setdefault(program, place)
