"""The secret order in which tests that share a process run.

A program that can tell one test of its process from another could answer by position: "first NO,
then YES". What that is worth depends on knowing the order of the tests. So it is drawn by a key of
the judge's process that no sandbox ever holds, and a program gains at most one chance in the number
of tests.
"""

import hmac
import random
import secrets
from collections.abc import Sequence
from hashlib import sha256


def make_key() -> str:
    """Return a new key; whoever is given it draws the same orders."""
    return secrets.token_hex(16)


def draw_order(key: str, code: str, tests: Sequence[int]) -> tuple[int, ...]:
    """Return numbers of tests in an order that is the same for equal programs.

    A program that is sampled twice must not have two chances.

    Args:
        key: of the judge's process.
        code: the program.
        tests: the numbers.
    """
    digest = hmac.digest(key.encode(), code.encode("utf-8", "surrogatepass"), sha256)
    order = list(tests)
    random.Random(digest).shuffle(order)
    return tuple(order)
