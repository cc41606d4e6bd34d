"""Which programs may run several tests in one process, and what such a process leaves behind.

A process of its own for every test costs more than most tests do. Tests may share one where nothing can get from one
test to the next: the process starts each in a fresh main module with fresh streams, and the program is one of those
that `find_obstacle` finds nothing against. That is a list of what is allowed, not of what is forbidden: a program
that names anything else keeps a process a test.

Why the allowed things carry nothing over: a program reaches only what its source names. It never holds a module, a
frame or a namespace as a value, never names an attribute of the interpreter, and the attributes of modules that it
names are functions, classes and constants. What it may change of those is looked at after every test
(`sandbox/batch.py`).
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache, lru_cache
from types import ModuleType

from microcoder.evaluator.sandbox.batch import MODULES
from microcoder.evaluator.sandbox.functions import prelude_names

_MOST_SOURCE_CHARACTERS = 1 << 16
"""Programs of contests are shorter; reading a longer one costs more than a batch saves."""

_SYS_TEXT = """
stdin stdout stderr exit maxsize setrecursionlimit getrecursionlimit set_int_max_str_digits float_info int_info
byteorder version version_info getsizeof intern argv
"""
_SYS = frozenset(_SYS_TEXT.split())
_SYS_REPLACED = frozenset(("stdin", "stdout", "stderr"))
"""What a program may assign: each test starts with new ones."""
_OS = frozenset(("read", "fstat", "write", "linesep"))
_IO = frozenset(("StringIO", "BytesIO"))
_STREAM_ARGUMENTS = {"read": (0,), "fstat": (0,), "write": (1, 2)}
"""The descriptors that a program may name."""

_FORBIDDEN_TEXT = """
getattr setattr delattr globals locals vars exec eval compile open breakpoint help attrgetter methodcaller
get_type_hints make_dataclass ForwardRef register singledispatch builtins gc inspect importlib ctypes threading
atexit signal weakref warnings modules gi_frame gi_code gi_yieldfrom cr_frame cr_code ag_frame tb_frame tb_next
f_back f_globals f_locals f_builtins f_code func_globals update_wrapper wraps
"""
_FORBIDDEN = frozenset(_FORBIDDEN_TEXT.split())
"""Names of anything, whoever they belong to."""
_NAMES_WITH_UNDERSCORES = frozenset(("__name__", "_"))
_CALLED_ON_SUPER_TEXT = """
__init__ __new__ __str__ __repr__ __eq__ __hash__ __lt__ __len__ __getitem__
"""
_CALLED_ON_SUPER = frozenset(_CALLED_ON_SUPER_TEXT.split())
_METHODS_TEXT = """
__init__ __new__ __str__ __repr__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __iter__ __next__
__getitem__ __setitem__ __delitem__ __contains__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__
__rmul__ __imul__ __truediv__ __floordiv__ __mod__ __pow__ __neg__ __pos__ __abs__ __bool__ __int__ __float__
__call__ __and__ __or__ __xor__ __lshift__ __rshift__ __matmul__ __index__ __missing__ __reversed__ __slots__
__post_init__ __rtruediv__ __rfloordiv__ __rmod__ __rpow__ __divmod__ __invert__ __enter__ __exit__ __name__
"""
_METHODS = frozenset(_METHODS_TEXT.split())
"""What a class may define."""
_ACTS_WHEN_THROWN_AWAY = re.compile(r"__del__|Wrapper|Buffered|FileIO|IOBase|detach|finally|contextmanager|ExitStack")
"""Left over from one test, these could act in the next."""


class _Obstacle(Exception):
    """Why a program keeps a process a test."""


@lru_cache(maxsize=1024)
def find_obstacle(code: str, *, is_function: bool) -> str:
    """Return why a program must not run several tests in one process; empty where it may.

    Args:
        code: its source.
        is_function: it is called in a module that holds the usual names of LeetCode.
    """
    if len(code) > _MOST_SOURCE_CHARACTERS:
        return "its source is long"
    found = _ACTS_WHEN_THROWN_AWAY.search(code)
    if found:
        return f"it names {found[0]}"
    try:
        _Screen(is_function=is_function).visit(ast.parse(code))
    except _Obstacle as obstacle:
        return str(obstacle)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "it cannot be read"
    return ""


class _Screen(ast.NodeVisitor):
    """Walks a program once; raises at the first thing that is not allowed."""

    def __init__(self, *, is_function: bool) -> None:
        self._given = prelude_names() if is_function else {}
        self._imported: dict[str, tuple[str, str]] = {}
        """Name in the program to the module, and the name inside it; an empty one for the module itself."""
        self._local: list[frozenset[str]] = []

    def visit_Module(self, node: ast.Module) -> None:
        """Learn all imports first: a function may use what is imported below it."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                self._import_modules(inner)
            elif isinstance(inner, ast.ImportFrom):
                self._import_names(inner)
        for inner in ast.walk(node):
            names = [*_bound_names(inner)]
            for name in names:
                _check_name(name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A name that a function binds is its own."""
        self._visit_scope(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Its parameters are its own."""
        self._visit_scope(node)

    def _visit_scope(self, node: ast.FunctionDef | ast.Lambda) -> None:
        for outer in (*node.args.defaults, *(default for default in node.args.kw_defaults if default)):
            self.visit(outer)
        for outer in getattr(node, "decorator_list", []):
            self.visit(outer)
        self._local.append(_names_of_function(node))
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(statement)
        self._local.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """A coroutine needs an event loop, which outlives a test."""
        raise _Obstacle("it has coroutines")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Its methods may only be ones that nothing calls behind a program's back."""
        for statement in node.body:
            name = getattr(statement, "name", "")
            if name.startswith("__") and name not in _METHODS:
                raise _Obstacle(f"it defines {name}")
        if any(keyword.arg == "metaclass" for keyword in node.keywords):
            raise _Obstacle("it has a metaclass")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """A module is never a value."""
        _check_name(node.id)
        module, inside = self._library(node.id)
        if module and not inside:
            raise _Obstacle(f"it holds the module {module}")
        if module and not isinstance(node.ctx, ast.Load) and node.id in self._imported:
            raise _Obstacle(f"it assigns {node.id}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Of modules, plain members; of anything else, no attribute of the interpreter's own."""
        is_store = not isinstance(node.ctx, ast.Load)
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        module, inside = self._library(root.id) if isinstance(root, ast.Name) else ("", "")
        is_module_member = module and not inside and root is node.value
        if is_store and module and not (is_module_member and module == "sys" and node.attr in _SYS_REPLACED):
            raise _Obstacle(f"it assigns an attribute of {module}")
        if is_module_member:
            _check_member(module, node.attr)
            return
        if node.attr.startswith("__") and not (node.attr in _CALLED_ON_SUPER and _is_super(node.value)):
            raise _Obstacle(f"it names {node.attr}")
        if node.attr in _FORBIDDEN or node.attr in ("sys", "os"):
            raise _Obstacle(f"it names {node.attr}")
        if module and node.attr.startswith("_"):
            raise _Obstacle(f"it names {node.attr} of {module}")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Descriptors only where they are the program's own."""
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            module, inside = self._library(function.value.id)
            if module == "os" and not inside:
                self._check_descriptor(function.attr, node)
        elif isinstance(function, ast.Name) and self._library(function.id)[0] == "os":
            self._check_descriptor(self._library(function.id)[1], node)
        self.generic_visit(node)

    def _check_descriptor(self, name: str, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Constant) or first.value not in _STREAM_ARGUMENTS.get(name, ()):
            raise _Obstacle(f"it calls os.{name}")

    def _library(self, name: str) -> tuple[str, str]:
        """Return the module, and the name inside it, that a name may stand for; empty where it is the program's."""
        if any(name in names for names in self._local):
            return "", ""
        return self._imported.get(name) or self._given.get(name) or ("", "")

    def _import_modules(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in (*MODULES, "sys", "os"):
                raise _Obstacle(f"it imports {alias.name}")
            if "." in alias.name and not alias.asname:
                raise _Obstacle(f"it imports {alias.name}")
            self._add(alias.asname or alias.name, (alias.name, ""))

    def _import_names(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module not in (*MODULES, "sys", "os", "__future__"):
            raise _Obstacle(f"it imports {module}")
        for alias in node.names:
            if alias.name == "*":
                if module in ("sys", "os", "io"):
                    raise _Obstacle(f"it imports all of {module}")
                for name in _public_names(module):
                    self._add(name, (module, name))
                continue
            _check_member(module, alias.name)
            self._add(alias.asname or alias.name, (module, alias.name))

    def _add(self, name: str, meaning: tuple[str, str]) -> None:
        if not self._imported.get(name, meaning)[1] and self._imported.get(name, meaning) != meaning:
            raise _Obstacle(f"{name} is more than one thing")
        self._imported[name] = meaning


def _check_name(name: str) -> None:
    if name in _FORBIDDEN or (name.startswith("__") and name not in _NAMES_WITH_UNDERSCORES | _METHODS):
        raise _Obstacle(f"it names {name}")


def _check_member(module: str, name: str) -> None:
    """Refuse a member of a module that is more than a function, a class or a constant."""
    if module in ("sys", "os"):
        if name not in (_SYS if module == "sys" else _OS):
            raise _Obstacle(f"it names {module}.{name}")
    elif (
        (module == "io" and name not in _IO)
        or name.startswith("_")
        or (name in _FORBIDDEN and (module, name) != ("re", "compile"))
        or (module != "__future__" and not _is_plain_member(module, name))
    ):
        raise _Obstacle(f"it names {module}.{name}")


@cache
def _is_plain_member(module: str, name: str) -> bool:
    value = getattr(importlib.import_module(module), name, None)
    if module == "typing":
        return not isinstance(value, (ModuleType, list, dict, set))
    return not isinstance(value, ModuleType) and (
        callable(value) or isinstance(value, (int, float, complex, str, bytes, tuple, frozenset))
    )


@cache
def _public_names(module: str) -> tuple[str, ...]:
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
    for name in names:
        # As they come with the star, whether the program uses them or not; what it names is looked at besides.
        if name not in _FORBIDDEN and not _is_plain_member(module, name):
            raise _Obstacle(f"it imports all of {module}")
    return tuple(names)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


Function = ast.FunctionDef | ast.Lambda


def _names_of_function(node: Function) -> frozenset[str]:
    """Return what a function binds: such names are never looked up outside it."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    bound = {argument.arg for argument in every if argument}
    elsewhere: set[str] = set()
    pending: list[ast.AST] = [*node.body] if isinstance(node.body, list) else [node.body]
    while pending:
        inner = pending.pop()
        if isinstance(inner, (ast.Global, ast.Nonlocal)):
            elsewhere.update(inner.names)
        elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            bound.add(inner.id)
        elif isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            bound.add(inner.name)
            pending += inner.decorator_list
            continue
        elif isinstance(inner, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        elif isinstance(inner, ast.ExceptHandler) and inner.name:
            bound.add(inner.name)
        pending += ast.iter_child_nodes(inner)
    return frozenset(bound - elsewhere)


def _bound_names(node: ast.AST) -> list[str]:
    """Return names that a node gives without an `ast.Name`."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.keyword):
        return [node.arg] if node.arg else []
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, (ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    if isinstance(node, ast.MatchClass):
        return node.kwd_attrs
    return []
