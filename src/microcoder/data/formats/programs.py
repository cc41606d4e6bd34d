"""Reads programs that come with problems: their languages, and code inside Markdown."""

import ast
import re
from collections.abc import Iterable
from posixpath import splitext
from urllib.parse import urlsplit

from microcoder.data.formats.candidates import Known, Solution
from microcoder.data.formats.values import is_python2, parse_python

_WORDS_OF_LANGUAGES = {
    "python": ("py", "py3", "python3", "pypy3"),
    "python2": ("py2", "pypy2"),
    "cpp": ("cpp", "cc", "cxx", "c++", "cpp17"),
    "c": ("c",),
    "csharp": ("cs", "c#"),
    "java": ("java",),
    "go": ("go", "golang"),
    "rust": ("rs",),
    "javascript": ("js", "node"),
    "kotlin": ("kt",),
    "scala": ("scala",),
    "haskell": ("hs",),
    "ruby": ("rb",),
    "pascal": ("pas",),
}
"""By language: suffixes of its files and other names for it."""


def _index_words() -> dict[str, str]:
    language_of_word = {}
    for language, words in _WORDS_OF_LANGUAGES.items():
        for word in words:
            language_of_word[word] = language
    return language_of_word


_LANGUAGES = _index_words()
"""Language by the suffix of a file, or by another name."""
_FENCE = re.compile(r"```[ \t]*(?:([\w+#.-]+)[ \t]*)?\n(.*?)\n?```", re.DOTALL)
_PLATFORMS = {
    "codeforces.com": "codeforces",
    "leetcode.com": "leetcode",
    "codechef.com": "codechef",
    "hackerrank.com": "hackerrank",
    "hackerearth.com": "hackerearth",
    "codewars.com": "codewars",
    "kattis.com": "kattis",
    "spoj.com": "spoj",
    "atcoder.jp": "atcoder",
    "leetcode.cn": "leetcode",
    "geeksforgeeks.org": "geeksforgeeks",
    "judge.u-aizu.ac.jp": "aizu",
}
"""Platform by the domain of its site."""


def language_of(path: str) -> str:
    """Return the language of a file by its suffix; empty if it is not known."""
    suffix = splitext(path)[1].lower()
    return _LANGUAGES.get(suffix.removeprefix("."), "")


def name_language(name: str) -> str:
    """Return a language's name as the evaluator spells it (`C++` is `cpp`).

    A name that is not known is returned in lower case.
    """
    lowered = name.strip().lower()
    return _LANGUAGES.get(lowered, lowered)


def python_solution(
    code: str,
    *,
    name: str = "",
    known: Known = "accepted",
) -> Solution:
    """Return a Python program as a `Solution`; its language is `python2` if only that parses it."""
    language = "python2" if is_python2(code) else "python"
    return Solution(code=code, language=language, name=name, known=known)


def python_solutions(codes: Iterable[str]) -> tuple[Solution, ...]:
    """Return the programs that are not blank, each once, without Markdown fences."""
    programs = dict.fromkeys(cut_fence(code) for code in codes)
    return tuple(python_solution(program) for program in programs if program.strip())


def cut_fence(text: str) -> str:
    """Return the code inside a text's last Markdown fence, or the text if it has none."""
    fences = _FENCE.findall(text)
    if not fences:
        return text
    _, code = fences[-1]
    return code


def find_platform(url: str, *words: str) -> str:
    """Return the platform of a URL, such as `codeforces`.

    Args:
        words: names to use where the URL's site is unknown; the first counts that is not blank.
    """
    host = _host_of(url)
    for domain, platform in _PLATFORMS.items():
        # With the dot, since another site's name may only end alike.
        if host == domain or host.endswith("." + domain):
            return platform
    for word in words:
        if word.strip():
            return word.strip().lower()
    return ""


def _host_of(url: str) -> str:
    """Return the host of a URL, in lower case; empty if it has none."""
    try:
        return (urlsplit(url.strip()).hostname or "").lower()
    except ValueError:
        # A host in brackets that is no address, say.
        return ""


def head_of(code: str, fn_name: str) -> str | None:
    """Return the head of a function, `def f(a, b):`, with its class.

    None if the code does not define it.
    """
    tree = parse_python(code)
    if tree is None:
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == fn_name:
            return _write_head(node)
        # Sites such as LeetCode ask for a method of a class.
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == fn_name:
                    return f"class {node.name}:\n    {_write_head(inner)}"
    return None


def _write_head(function: ast.FunctionDef) -> str | None:
    bare = ast.FunctionDef(
        function.name,
        function.args,
        body=[ast.Pass()],
        decorator_list=[],
        returns=function.returns,
        lineno=1,
    )
    try:
        return ast.unparse(bare).removesuffix("pass").rstrip()
    except (RecursionError, ValueError):
        return None
