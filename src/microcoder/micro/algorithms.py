"""Tasks that are no chain of small operations: sequence, number and word algorithms, three tiers of them.

The last line of the code is the expression of the answer; the renderer prints or returns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microcoder.micro.operations import Domain, Operation

_GCD = "g = 0\nfor x in a:\n    while x:\n        g, x = x, g % x\nabs(g)"
_PREFIX = "t = 0\nr = []\nfor x in a:\n    t += x\n    r.append(t)\nr"
_BLOCK = "b = c = a[0]\nfor x in a[1:]:\n    c = max(x, c + x)\n    b = max(b, c)\nb"
_TWINS = "c = 0\nfor i in range(len(a)):\n    for j in range(i):\n        c += a[i] == a[j]\nc"
_SWAPS = "c = 0\nfor i in range(len(a)):\n    for j in range(i):\n        c += a[j] > a[i]\nc"
_CLIMB = "b = c = 1\nfor i in range(1, len(a)):\n    c = c + 1 if a[i] > a[i - 1] else 1\n    b = max(b, c)\nb"
_LADDER = (
    "d = [1] * len(a)\nfor i in range(len(a)):\n    for j in range(i):\n        if a[j] < a[i]:\n"
    "            d[i] = max(d[i], d[j] + 1)\nmax(d)"
)
_PEAKS = "sum(a[i - 1] < a[i] > a[i + 1] for i in range(1, len(a) - 1))"
_COLLATZ = "c = 0\nwhile x > 1:\n    x = x // 2 if x % 2 == 0 else 3 * x + 1\n    c += 1\nc"
_FIBONACCI = "p, q = 0, 1\nfor i in range(x):\n    p, q = q, p + q\np"
_ROOT = "r = 0\nwhile (r + 1) ** 2 <= x:\n    r += 1\nr"
_FACTORIAL = "r = 1\nfor i in range(1, x + 1):\n    r *= i\nr"
_PRIME = 'c = sum(x % i == 0 for i in range(1, x + 1))\n"YES" if c == 2 else "NO"'
_GROUPS = "r = s[0]\nfor c in s[1:]:\n    if c != r[-1]:\n        r += c\nr"
_TURNS = "c = 0\nfor i in range(len(s)):\n    c += s[i] in s[:i]\nc"


def _algorithm(
    domain: Domain,
    name: str,
    phrases: tuple[str, ...],
    code: str,
    slips: tuple[tuple[str, str], ...],
    lookalike: str,
    gives_list: bool = False,
) -> Operation:
    """Slips are given as (right piece, wrong piece) of the code, so that they cannot drift from it."""
    wrong = tuple(code.replace(right, slip) for right, slip in slips)
    if code in wrong:
        raise AssertionError(f"a slip of {name} changes nothing")
    return Operation(name, phrases, code, wrong, (lookalike,), domain=domain, gives_list=gives_list)


_EASY = [
    _algorithm(
        "integer",
        "triangle",
        ("sum of 1 to x", "x-th triangular number", "total of the numbers up to x"),
        "sum(range(x + 1))",
        (("x + 1", "x"), ("range(x + 1)", "range(1, x)")),
        "factorial",
    ),
    _algorithm(
        "integer",
        "binary",
        ("binary form of x", "digits of x in base two", "number x written in bits"),
        "bin(x)[2:]",
        (("[2:]", ""), ("[2:]", "[1:]")),
        "reversal",
    ),
    _algorithm(
        "integer",
        "reversal",
        ("digits of x backwards", "decimal form of x, reversed", "number x read from the right"),
        "str(x)[::-1]",
        (("[::-1]", "[1:]"), ("str(x)[::-1]", "-x")),
        "binary",
    ),
    _algorithm(
        "integer",
        "factorial",
        ("factorial of x", "product of 1 to x", "product of the numbers up to x"),
        _FACTORIAL,
        (("x + 1", "x"), ("r = 1", "r = 0")),
        "triangle",
    ),
    _algorithm(
        "numbers",
        "rotate",
        ("list moved left by one", "list with its first number put last", "numbers, the first one moved to the end"),
        "a[1:] + a[:1]",
        (("a[1:] + a[:1]", "a[-1:] + a[:-1]"), (" + a[:1]", "")),
        "alternate",
        gives_list=True,
    ),
    _algorithm(
        "numbers",
        "alternate",
        (
            "numbers at places 0, 2, 4 and so on",
            "list without every second number",
            "first number and each second after it",
        ),
        "a[::2]",
        (("a[::2]", "a[1::2]"), ("a[::2]", "a[2:]")),
        "rotate",
        gives_list=True,
    ),
    _algorithm(
        "word",
        "vowel count",
        ("number of vowels in it", "count of its vowels", "amount of letters of it from aeiou"),
        'sum(c in "aeiou" for c in s)',
        (("c in", "c not in"), ('sum(c in "aeiou" for c in s)', 's.count("aeiou")')),
        "repeats",
    ),
]

_MEDIUM = [
    _algorithm(
        "numbers",
        "running sum",
        ("running sums", "sums of the first 1, 2, 3 and more numbers", "total after each number"),
        _PREFIX,
        (("    t += x\n    r.append(t)", "    r.append(t)\n    t += x"), ("t += x", "t = x")),
        "gaps",
        gives_list=True,
    ),
    _algorithm(
        "numbers",
        "gaps",
        (
            "differences of neighbours, each less the one before",
            "steps from each number to the next",
            "change between neighbours",
        ),
        "[a[i + 1] - a[i] for i in range(len(a) - 1)]",
        (("a[i + 1] - a[i]", "a[i] - a[i + 1]"), ("len(a) - 1", "len(a)")),
        "running sum",
        gives_list=True,
    ),
    _algorithm(
        "numbers",
        "second",
        (
            "second largest different number, or -1",
            "runner-up without repeats (-1 if missing)",
            "number next below the largest, -1 for none",
        ),
        "b = sorted(set(a))\nb[-2] if len(b) > 1 else -1",
        (("sorted(set(a))", "sorted(a)"), ("b[-2]", "b[1]")),
        "favourite",
    ),
    _algorithm(
        "numbers",
        "favourite",
        (
            "most frequent number, the smallest on a tie",
            "number seen most often (smallest of equals)",
            "mode, lowest if shared",
        ),
        "min(set(a), key=lambda x: (-a.count(x), x))",
        (("-a.count(x)", "a.count(x)"), ("min(", "max(")),
        "second",
    ),
    _algorithm(
        "numbers",
        "twins",
        ("number of pairs of equal numbers", "count of pairs with the same value", "amount of equal pairs"),
        _TWINS,
        (("range(i)", "range(len(a))"), ("a[i] == a[j]", "i == j")),
        "swaps",
    ),
    _algorithm(
        "integer",
        "divisors",
        ("divisors of x, rising", "numbers that divide x, from small to large", "list of all factors of x"),
        "[i for i in range(1, x + 1) if x % i == 0]",
        (("x + 1", "x"), ("x % i", "i % x")),
        "prime",
        gives_list=True,
    ),
    _algorithm(
        "integer",
        "prime",
        (
            "word YES if x is prime, else NO",
            "answer YES or NO: is x a prime",
            "verdict YES for a prime x and NO otherwise",
        ),
        _PRIME,
        (("range(1,", "range(2,"), ("x + 1", "x")),
        "divisors",
    ),
    _algorithm(
        "integer",
        "root",
        ("whole square root of x", "largest r with r times r at most x", "square root of x rounded down"),
        _ROOT,
        (("<=", "<"), ("(r + 1)", "r")),
        "fibonacci",
    ),
    _algorithm(
        "integer",
        "fibonacci",
        (
            "Fibonacci number of index x, from 0, 1",
            "x-th Fibonacci number where the 0-th is 0",
            "member x of the Fibonacci row 0, 1, 1, 2",
        ),
        _FIBONACCI,
        (("p + q\np", "p + q\nq"), ("0, 1", "1, 1")),
        "root",
    ),
]

_HARD = [
    _algorithm(
        "numbers",
        "gcd",
        ("greatest common divisor", "largest number that divides all of them", "biggest shared factor"),
        _GCD,
        (("g = 0", "g = 1"), ("while x", "if x")),
        "swaps",
    ),
    _algorithm(
        "numbers",
        "best block",
        ("largest sum of neighbours in a row", "best sum of a block without gaps", "maximal sum of a contiguous part"),
        _BLOCK,
        (("b = c = a[0]", "b = c = 0"), ("max(x, c + x)", "c + x")),
        "ladder",
    ),
    _algorithm(
        "numbers",
        "swaps",
        ("number of pairs in falling order", "count of inversions", "amount of pairs where the earlier is larger"),
        _SWAPS,
        (("a[j] > a[i]", "a[j] < a[i]"), ("range(i)", "range(len(a))")),
        "twins",
    ),
    _algorithm(
        "numbers",
        "climb",
        (
            "length of the longest rising run",
            "longest strictly rising stretch of neighbours",
            "length of the longest climb in a row",
        ),
        _CLIMB,
        (("a[i] > a", "a[i] >= a"), ("else 1", "else 0")),
        "ladder",
    ),
    _algorithm(
        "numbers",
        "ladder",
        (
            "length of the longest rising subsequence",
            "longest strictly rising choice, gaps allowed",
            "size of the longest rising subsequence",
        ),
        _LADDER,
        (("a[j] < a[i]", "a[j] <= a[i]"), ("max(d[i], d[j] + 1)", "d[j] + 1")),
        "climb",
    ),
    _algorithm(
        "numbers",
        "peaks",
        (
            "number of peaks: larger than both neighbours",
            "count of numbers above both neighbours",
            "amount of inner numbers that beat both sides",
        ),
        _PEAKS,
        (("< a[i] >", "> a[i] <"), ("a[i - 1] < a[i] > a[i + 1]", "a[i] > a[i + 1]")),
        "swaps",
    ),
    _algorithm(
        "numbers",
        "by unit",
        (
            "list ordered by last digit, then by value",
            "numbers sorted on the ones digit, ties by value",
            "order by final digit and then size of value",
        ),
        "sorted(a, key=lambda x: (abs(x) % 10, x))",
        (("(abs(x) % 10, x)", "abs(x) % 10"), ("abs(x) % 10, x", "x, abs(x) % 10")),
        "by size",
        gives_list=True,
    ),
    _algorithm(
        "numbers",
        "by size",
        (
            "list ordered by distance from zero, then by value",
            "numbers sorted on absolute value, ties by value",
            "order by size without sign and then value",
        ),
        "sorted(a, key=lambda x: (abs(x), x))",
        (("(abs(x), x)", "abs(x)"), ("abs(x), x", "x, abs(x)")),
        "by unit",
        gives_list=True,
    ),
    _algorithm(
        "integer",
        "collatz",
        ("number of Collatz moves from x to 1", "steps of the 3x+1 rule until 1", "count of Collatz steps of x"),
        _COLLATZ,
        (("c = 0", "c = 1"), ("3 * x + 1", "x + 1")),
        "fibonacci",
    ),
    _algorithm(
        "word",
        "groups",
        (
            "word with each run of one letter cut to a single",
            "letters of it without neighbours that repeat",
            "word after squeezing equal neighbours",
        ),
        _GROUPS,
        (("r[-1]", "r[0]"), ("r = s[0]", "r = s[1]")),
        "repeats",
    ),
    _algorithm(
        "word",
        "repeats",
        (
            "number of letters seen before in it",
            "count of letters that came up earlier",
            "amount of its letters that repeat an earlier one",
        ),
        _TURNS,
        (("s[:i]", "s[i:]"), ("s[:i]", "s[i + 1]")),
        "groups",
    ),
]

ALGORITHMS_BY_TIER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "easy": tuple(item.name for item in _EASY),
        "medium": tuple(item.name for item in _MEDIUM),
        "hard": tuple(item.name for item in _HARD),
    }
)
ALGORITHMS: Mapping[str, Operation] = MappingProxyType({item.name: item for item in _EASY + _MEDIUM + _HARD})
