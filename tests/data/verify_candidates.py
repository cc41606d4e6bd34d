"""Candidates for the verifier."""

from microcoder.data import Candidate


def make_candidate(**fields: object) -> Candidate:
    """The sum of two numbers, with six tests, unless said otherwise."""
    tests = []
    for a, b in ((1, 2), (5, 5), (0, 0), (-3, 1), (9, 90), (7, -7)):
        tests.append({"input": f"{a} {b}\n", "output": f"{a + b}\n"})
    solutions = [{"code": "a, b = map(int, input().split())\nprint(a + b)\n"}]
    defaults = {"id": "made/sum", "dataset": "made", "tests": tests, "solutions": solutions}
    return Candidate.model_validate({**defaults, **fields})
