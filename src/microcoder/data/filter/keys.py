"""The names by which a problem is known: its source, title, examples and signature."""

import re
import unicodedata
from typing import NamedTuple

from microcoder.data.clean.samples import values_of
from microcoder.data.clean.sections import split
from microcoder.data.filter.texts import hash_token
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.test_programs import list_calls

_URLS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"leetcode(?:-cn)?\.(?:com|cn)/(?:contest/[\w-]+/)?problems/([\w-]+)"),
        "leetcode:{0}",
    ),
    (re.compile(r"codeforces\.com/(?:contest|gym)/(\d+)/problem/(\w+)"), "codeforces:{0}{1}"),
    (re.compile(r"codeforces\.com/problemset/problem/(\d+)/(\w+)"), "codeforces:{0}{1}"),
    (re.compile(r"atcoder\.jp/contests/[\w-]+/tasks/(\w+)"), "atcoder:{0}"),
    (re.compile(r"(?:open\.)?kattis\.com/problems/([\w-]+)"), "kattis:{0}"),
    (re.compile(r"codechef\.com/(?:\w+/)?problems/(\w+)"), "codechef:{0}"),
    (re.compile(r"hackerrank\.com/challenges/([\w-]+)"), "hackerrank:{0}"),
    (re.compile(r"codewars\.com/kata/([\da-f]{24})"), "codewars:{0}"),
    (re.compile(r"geeksforgeeks\.org/problems/([\w-]+)"), "geeksforgeeks:{0}"),
    (re.compile(r"luogu\.com(?:\.cn)?/problem/(\w+)"), "luogu:{0}"),
)
"""Addresses of problems, and the key that each gives."""
_ATCODER_ROW = re.compile(r"[a-z]{3}\d{3}_\w+")
_CODEFORCES_ROW = re.compile(r"(\d+)[_/-]?([a-z]\d?)")
_SLUG = re.compile(r"[a-z0-9-]+")
_CONTEST_NUMBER = re.compile(r"^\s*(?:\d+[_. -]+)?(?:[A-Z]\d?[.:)-]\s+|\d+\.\s+)?")
"""What contests put before a title: a letter, a number, or both."""
_SIGNATURE = re.compile(r"def\s+(\w+)\s*\(\s*(?:self\s*,?\s*)?([^)]{0,2000})\)")
LONGEST_EXAMPLE = 2000
"""Characters of an input or output that is compared: a longer one costs time and shows no more."""
_MOST_TESTS = 50
"""Tests of a problem that are compared, the first."""


class ExampleKey(NamedTuple):
    """Hash of an example's values, which is the same in every text format."""

    digest: int
    weight: int
    """Number of values in the example; few are weak evidence."""


def source_keys(candidate: Candidate) -> frozenset[str]:
    """Return keys `platform:problem` of a problem's origin.

    By its URL, and by its platform's own id.
    """
    keys = set()
    for pattern, template in _URLS:
        found = pattern.search(candidate.url)
        if found:
            address_key = template.format(*found.groups())
            keys.add(address_key.lower())
    key = _platform_key(candidate)
    if key:
        keys.add(key)
    return frozenset(keys)


def _platform_key(candidate: Candidate) -> str:
    """Return the key that the platform's own id of a problem gives; empty if it gives none."""
    row = candidate.id.rpartition("/")[2].lower()
    if candidate.platform == "atcoder" and _ATCODER_ROW.fullmatch(row):
        return f"atcoder:{row}"
    if candidate.platform == "codeforces":
        found = _CODEFORCES_ROW.fullmatch(row)
        return f"codeforces:{found[1]}{found[2]}" if found else ""
    if candidate.platform == "leetcode":
        # Some sets have the slug of the address as title, others as id.
        for name in (candidate.title, row):
            if _is_slug(name):
                return f"leetcode:{name}"
    return ""


def contest_of(key: str) -> str:
    """Return the contest of a problem's key: `codeforces:1000`, `atcoder:abc100`.

    Of platforms whose names say no contest, the platform.
    """
    platform, _, name = key.partition(":")
    if platform == "codeforces":
        number = re.match(r"\d+", name)
        return f"{platform}:{number[0]}" if number else platform
    if platform == "atcoder":
        return f"{platform}:{name.partition('_')[0]}"
    return platform


def _is_slug(text: str) -> bool:
    return "-" in text and _SLUG.fullmatch(text) is not None


def title_key(title: str) -> str:
    """Return a title's words in lower case.

    Punctuation is left out, and so is a contest letter or number at the beginning.
    """
    name = _CONTEST_NUMBER.sub("", title)
    normal = unicodedata.normalize("NFKC", name)
    return " ".join(re.findall(r"[^\W_]+", normal.lower()))


def example_keys(candidate: Candidate) -> frozenset[ExampleKey]:
    """Return a key per short example of the statement and first test.

    A key is of the values in order, without names or brackets.
    """
    shown = split(candidate.statement).examples
    # A set, since an example of the statement is mostly a test as well.
    pairs = set()
    for example in (*shown, *list_calls(candidate)[:_MOST_TESTS]):
        pairs.add((example.input, example.output))
    keys = set()
    for text, printed in pairs:
        is_short = len(text) <= LONGEST_EXAMPLE and len(printed) <= LONGEST_EXAMPLE
        if not is_short or not printed.strip():
            continue
        before = _values(text)
        after = _values(printed)
        # Without numbers or words there is nothing to compare.
        if before and after:
            # Marks that no text has: values of the input are not taken for some of the output.
            given = "\x1f".join(before)
            printed = "\x1f".join(after)
            digest = hash_token(given + "\x1e" + printed)
            keys.add(ExampleKey(digest, len(before) + len(after)))
    return frozenset(keys)


def _values(text: str) -> list[str]:
    normal = unicodedata.normalize("NFKC", text)
    # A value of Python and the same in JSON are one.
    return values_of(normal.replace("None", "null")).split()


def signature(candidate: Candidate) -> str:
    """Return the function's name and parameters as `name(a,b)`.

    Empty for a program that reads stdin.
    """
    if candidate.starter_code:
        code = candidate.starter_code
    elif candidate.fn_name and candidate.solutions:
        code = candidate.solutions[0].code
    else:
        return ""
    for name, parameters in _SIGNATURE.findall(code):
        # Helpers, and methods such as __init__, are not what is called.
        if candidate.fn_name in (None, name) and not name.startswith("__"):
            names = map(_parameter_name, parameters.split(","))
            return f"{name}({','.join(filter(None, names))})"
    return ""


def _parameter_name(parameter: str) -> str:
    """Return the name of a parameter, without its type and default."""
    untyped = parameter.split(":")[0]
    return untyped.split("=")[0].strip()
