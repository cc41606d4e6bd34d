"""Tells programs that are one program in other spaces, comments or names.

Two such copies have the same mistakes, so in a vote they are one voter.
"""

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from microcoder.data.formats.test_programs import find_bound
from microcoder.data.formats.values import parse_python
from microcoder.judge.core.types import Program

_TOKEN = re.compile(
    r"(?P<text>\"(?:\\.|[^\"\\\n]){0,1000}\"|'(?:\\.|[^'\\\n]){0,1000}')"
    r"|(?P<comment>//[^\n]*|/\*(?:.*?\*/|.*)"
    r"|^[ \t]*#[ \t]*include[^\n]*|\busing\s+namespace\s+\w+\s*;)"
    r"|(?P<word>[^\W\d]\w*)|(?P<other>\d[\w.]*|\S)",
    re.DOTALL | re.MULTILINE,
)
"""A piece of a program in a language of braces."""
_NO_TYPES = frozenset({"return", "else", "in", "and", "or", "not", "new", "throw", "case", "do"})
"""Words before a call; another word before a bracket is the type of a function that is defined."""
_LANGUAGE_WORDS = """
break continue return if else while for do switch case goto true false null nullptr
int long short char float double unsigned signed bool string auto const static void
vector set multiset map multimap unordered_set unordered_map queue stack deque
priority_queue pair tuple less greater first second begin end rbegin rend front back
length size INT_MAX INT_MIN LLONG_MAX LLONG_MIN LONG_MAX LONG_MIN MAX_VALUE MIN_VALUE
Integer Long Double TreeMap HashMap LinkedHashMap TreeSet HashSet LinkedHashSet
int32_t int64_t uint32_t uint64_t i32 i64 u32 u64 i128 f32 f64 usize
"""
_KEPT = frozenset(_LANGUAGE_WORDS.split())
"""Words of the languages and their libraries: a program with another is no copy."""

_MOST_KEPT = 256
"""Forms that are kept, since a program is looked at for each input."""


def count_voters(programs: Sequence[Program]) -> int:
    """Return how many of some programs are no copies of each other."""
    return len({find_form(program) for program in programs})


def drop_copies(programs: Sequence[Program]) -> list[Program]:
    """Return programs without those that are copies of one before."""
    first: dict[str, Program] = {}
    for program in programs:
        first.setdefault(find_form(program), program)
    return list(first.values())


@lru_cache(maxsize=_MOST_KEPT)
def find_form(program: Program) -> str:
    """Return a program without its spaces, comments and own names: what all its copies share."""
    code = program.code or ""
    if program.language.startswith("python"):
        tree = parse_python(code)
        if tree is not None:
            return f"{program.language} {_form_of_tree(tree)}"
    return f"{program.language} {_form_of_tokens(code)}"


def _form_of_tree(tree: ast.Module) -> str:
    """Return a Python program with names by their order, without annotations and docstrings."""
    numbered = _Namer(find_bound(tree)).visit(tree)
    return ast.dump(numbered)


class _Namer(ast.NodeTransformer):
    """Replaces the names that a program binds by numbers, in place."""

    def __init__(self, bound: set[str]) -> None:
        self._bound = bound
        self._numbers: dict[str, str] = {}

    def _rename(self, name: str) -> str:
        if name not in self._bound:
            return name
        return self._numbers.setdefault(name, f"v{len(self._numbers)}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._rename(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._rename(node.arg)
        node.annotation = None
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg is not None:
            node.arg = self._rename(node.arg)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        # `self.helper()`, which the program defines.
        node.attr = self._rename(node.attr)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._rename(node.name)
        node.returns = None
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._rename(node.name)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return node
        return ast.Assign(targets=[node.target], value=node.value)


def _form_of_tokens(code: str) -> str:
    """Return a program of another language with its words by their order.

    Words before a bracket stay, such as `max` in `max(a, b)`, unless they are defined there.
    """
    tokens = [token for token in _TOKEN.finditer(code) if token["comment"] is None]
    words = [token["word"] for token in tokens]
    kept: set[str] = set(_KEPT)
    defined: set[str] = set()
    for number, word in enumerate(words):
        if word is None or number + 1 == len(tokens) or tokens[number + 1][0] != "(":
            continue
        before = words[number - 1] if number else None
        if before is None or before in _NO_TYPES:
            kept.add(word)
        else:
            defined.add(word)
    kept -= defined - _KEPT
    numbers: dict[str, str] = {}
    form = []
    for token in tokens:
        word = token["word"]
        if word is None or word in kept:
            form.append(token[0])
        else:
            form.append(numbers.setdefault(word, f"v{len(numbers)}"))
    return " ".join(form)
