"""Programs that come with problems: their languages, and code cut out of Markdown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from posixpath import splitext
from urllib.parse import urlsplit

from microcoder.formats.candidates import Known, Solution
from microcoder.formats.text import is_python2, parse_python

_LANGUAGES = {
    ".py": "python",
    ".py3": "python",
    ".py2": "python2",
    ".cpp": "cpp",
    ".cc": "cpp",
    ".cxx": "cpp",
    ".c": "c",
    ".cs": "csharp",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".js": "javascript",
    ".kt": "kotlin",
    ".scala": "scala",
    ".hs": "haskell",
    ".rb": "ruby",
    ".pas": "pascal",
}
_NAMES = {
    "python3": "python",
    "py3": "python",
    "py": "python",
    "pypy3": "python",
    "py2": "python2",
    "pypy2": "python2",
    "c++": "cpp",
    "cpp17": "cpp",
    "c#": "csharp",
    "js": "javascript",
    "node": "javascript",
    "golang": "go",
}
_FENCE = re.compile(r"```[ \t]*(?:([\w+#.-]+)[ \t]*)?\n(.*?)\n?```", re.DOTALL)
_PLATFORMS = {
    "codeforces.com": "codeforces",
    "atcoder.jp": "atcoder",
    "leetcode.com": "leetcode",
    "leetcode.cn": "leetcode",
    "codechef.com": "codechef",
    "hackerrank.com": "hackerrank",
    "hackerearth.com": "hackerearth",
    "codewars.com": "codewars",
    "kattis.com": "kattis",
    "geeksforgeeks.org": "geeksforgeeks",
    "judge.u-aizu.ac.jp": "aizu",
    "spoj.com": "spoj",
}


def language_of(path: str) -> str:
    """Return the language of a file by its name; empty if it is not known."""
    return _LANGUAGES.get(splitext(path)[1].lower(), "")


def name_language(name: str) -> str:
    """Return a language's name as the evaluator has it: `C++` is `cpp`."""
    lowered = name.strip().lower()
    return _NAMES.get(lowered, lowered)


def python_solution(code: str, *, name: str = "", known: Known = "accepted") -> Solution:
    """Return a Python program; one that only Python 2 reads is `python2`."""
    return Solution(code=code, language="python2" if is_python2(code) else "python", name=name, known=known)


def python_solutions(codes: Iterable[str]) -> tuple[Solution, ...]:
    """Return the programs that are not blank, each once, fences taken off."""
    found = dict.fromkeys(cut_fence(code) for code in codes)
    return tuple(python_solution(code) for code in found if code.strip())


def cut_fence(text: str) -> str:
    """Return the code inside a text's last Markdown fence, or the text if it has none."""
    found = _FENCE.findall(text)
    return found[-1][1] if found else text


def find_platform(url: str, *words: str) -> str:
    """Return the platform of a URL, or the first of these words that is not blank, in lower case."""
    try:
        host = (urlsplit(url.strip()).hostname or "").lower() if url else ""
    except ValueError:
        host = ""
    for domain, platform in _PLATFORMS.items():
        if host == domain or host.endswith("." + domain):
            return platform
    return next((word.strip().lower() for word in words if word.strip()), "")


def head_of(code: str, fn_name: str) -> str | None:
    """Return the head of a function, `def f(a, b):`, with its class; None if the code does not define it."""
    tree = parse_python(code)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == fn_name:
            return _head(node)
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == fn_name:
                    return f"class {node.name}:\n    {_head(inner)}"
    return None


def _head(function: ast.FunctionDef) -> str | None:
    bare = ast.FunctionDef(function.name, function.args, [ast.Pass()], [], function.returns, lineno=1)
    try:
        return ast.unparse(bare).removesuffix("pass").rstrip()
    except (RecursionError, ValueError):
        return None


def public_methods(code: str, class_name: str = "Solution") -> tuple[str, ...]:
    """Return the methods of a class that a caller may use."""
    tree = parse_python(code)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return tuple(
                inner.name for inner in node.body if isinstance(inner, ast.FunctionDef) and inner.name[0] != "_"
            )
    return ()
