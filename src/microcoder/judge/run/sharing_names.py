"""What programs that share a process may name of the library and of Python itself.

Of a module they may name what it publishes, if that is a function, a class or a constant. They may
not name what

- holds a state of its own, acts on things by a name that is computed, or keeps a register;
- tells how old the process is: a clock, an address, or the size of an object, which grows with what
  was asked of it;
- draws entropy: tests whose outcome is luck are judged with one process per test;
- is a base whose objects run code of the program when they are thrown away.
"""

import ast
import importlib
import re
from enum import Enum
from functools import cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from microcoder.judge.sandbox.batch import MODULES, PACKAGES


class Obstacle(Exception):
    """Why a program needs one process per test."""


_SYS_TEXT = """
stdin stdout stderr exit maxsize setrecursionlimit getrecursionlimit set_int_max_str_digits
float_info int_info byteorder version version_info argv
"""
_SYS = frozenset(_SYS_TEXT.split())
"""What may be named of `sys`."""
_IO = frozenset(("StringIO", "BytesIO"))
"""What may be named of `io`."""
OUTLIVING = frozenset(("stdin", "stdout", "stderr", "argv"))
"""Objects of `sys` that every test gets new, if it imports them.

The names that a function finds without an import keep the objects that were there before the first
test, and so whatever a test leaves in them.
"""

_FORBIDDEN_TEXT = """
getattr setattr delattr globals locals vars exec eval compile open breakpoint help attrgetter
methodcaller get_type_hints get_args make_dataclass ForwardRef register builtins gc inspect
importlib ctypes threading atexit signal weakref warnings modules gi_frame gi_code gi_yieldfrom
cr_frame cr_code ag_frame tb_frame tb_next f_back f_globals f_locals f_builtins f_code
func_globals update_wrapper wraps strptime format_map vformat detach close closed TextIOWrapper
BufferedReader BufferedWriter FileIO MemoryError id Random SystemRandom buffer_info not_empty
not_full all_tasks_done mutex TypedDict get_origin mro attrname
"""
FORBIDDEN = frozenset(_FORBIDDEN_TEXT.split())
"""Names that a program must not use for anything."""
_FORBIDDEN_MEMBERS_TEXT = {
    # It keeps the strings that it makes names of for as long as the process lives.
    "collections": "namedtuple",
    # A generator has a `close` that calls a method of the program, and Python calls it when the
    # object is thrown away.
    "typing": "NamedTuple overload get_overloads clear_overloads no_type_check "
    "no_type_check_decorator evaluate_forward_ref runtime_checkable Type Generator Coroutine "
    "AsyncGenerator",
    "collections.abc": "Generator Coroutine AsyncGenerator",
    "functools": "singledispatch singledispatchmethod",
    "string": "Formatter",
    "re": "RegexFlag",
    # They draw entropy for a seed that is None or hashes by its address.
    "statistics": "NormalDist kde_random",
}
_FORBIDDEN_MEMBERS = {
    module: frozenset(text.split()) for module, text in _FORBIDDEN_MEMBERS_TEXT.items()
}
"""Module -> members that a program must not name."""
_ONLY_MEMBERS = {
    "sys": _SYS,
    "io": _IO,
    "time": frozenset(("sleep",)),
    # Others read attributes by names that a program may compute.
    "dataclasses": frozenset(("dataclass",)),
    # It need not be importable where programs are judged.
    "sortedcontainers": frozenset(("SortedList", "SortedKeyList", "SortedDict", "SortedSet")),
}
"""Module -> the only members that a program may name."""
_PLAIN_TYPES = (FunctionType, BuiltinFunctionType, MethodType)
"""Types of members that hold no state."""
_CONSTANT_TYPES = (int, float, complex, str, bytes, bool, tuple, frozenset, type(None))
"""Types of members that nothing can change."""

_NAMES_WITH_UNDERSCORES = frozenset(("__name__", "_"))
"""Names that begin as special ones do, and are allowed."""
_METHODS_TEXT = """
__init__ __str__ __repr__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __iter__
__next__ __getitem__ __setitem__ __delitem__ __contains__ __add__ __radd__ __iadd__ __sub__
__rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __floordiv__ __mod__ __pow__ __neg__
__pos__ __abs__ __bool__ __int__ __float__ __call__ __and__ __or__ __xor__ __lshift__ __rshift__
__matmul__ __index__ __missing__ __reversed__ __slots__ __post_init__ __rtruediv__ __rfloordiv__
__rmod__ __rpow__ __divmod__ __invert__ __enter__ __exit__ __name__
"""
METHODS = frozenset(_METHODS_TEXT.split())
"""Special methods that a class may define."""


def check_name(name: str) -> None:
    """Raise Obstacle for a name that a program must not use for anything."""
    if name in FORBIDDEN:
        raise Obstacle(f"it uses {name}")
    if name.startswith("__") and name not in _NAMES_WITH_UNDERSCORES | METHODS:
        raise Obstacle(f"it uses {name}")


def check_attribute(name: str) -> None:
    """Raise Obstacle for an attribute, of any object, that is forbidden or internal.

    Internal are those of the interpreter and of the library.
    """
    if name.startswith("__") or name in FORBIDDEN or name in ("sys", "os"):
        raise Obstacle(f"it uses {name}")
    if name.startswith("_") and name in _internal_names():
        raise Obstacle(f"it uses {name}, a name inside the library")


def check_member(module: str, name: str) -> None:
    """Raise Obstacle for a member of a module that is not allowed.

    Allowed are functions, classes and constants.
    """
    if module in ("__future__", "nodes"):
        return
    if not _is_allowed(module, name):
        raise Obstacle(f"it uses {module}.{name}")


def _is_allowed(module: str, name: str) -> bool:
    if module not in (*MODULES, *PACKAGES, "sys"):
        return False
    # The builtin of that name is forbidden; that of `re` makes patterns.
    if name in FORBIDDEN and (module, name) != ("re", "compile"):
        return False
    if name in _FORBIDDEN_MEMBERS.get(module, ()):
        return False
    only = _ONLY_MEMBERS.get(module)
    if only is not None:
        return name in only
    return _is_plain_member(module, name)


@cache
def _is_plain_member(module: str, name: str) -> bool:
    loaded = importlib.import_module(module)
    if name.startswith("_") or name not in getattr(loaded, "__all__", dir(loaded)):
        return False
    value = getattr(loaded, name, None)
    if module == "typing":
        return not isinstance(value, (ModuleType, list, dict, set))
    if isinstance(value, type):
        has_members = issubclass(value, Enum) and len(value) > 0
        return not issubclass(value, type) and not has_members
    if type(value) in (*_PLAIN_TYPES, *_CONSTANT_TYPES):
        return True
    # Flags are members of an enumeration.
    return module == "re" and isinstance(value, int)


_OF_NAMED_TUPLES = frozenset(("_replace", "_asdict", "_make", "_fields"))
"""Allowed attributes with an underscore: those of named tuples, which a program may define."""


@cache
def _internal_names() -> frozenset[str]:
    """Return the attribute names with one leading underscore that members of the library have."""
    names = {"_convert_", "_evaluate", "_member_map_", "_value2member_map_", "_member_names_"}
    for module in (*MODULES, "_io", "builtins"):
        for member in vars(importlib.import_module(module)).values():
            if isinstance(member, ModuleType):
                continue
            names.update(name for name in dir(member) if _is_internal(name))
    return frozenset(names) - _OF_NAMED_TUPLES


def _is_internal(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


_REACHING_FIELD = re.compile(r"\{[^{}]*[.\[]")
"""A replacement field that names an attribute or an item.

What follows a colon (`:.2f`) is removed before it is looked for.
"""


def is_plain_format(node: ast.expr) -> bool:
    """Whether a text to be formatted is a constant that names no attribute and no item."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    return not _REACHING_FIELD.search(re.sub(r":[^{}]*", ":", node.value))


def names_slots(statement: ast.stmt) -> bool:
    """Whether a statement assigns constants to `__slots__`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
            kinds = (ast.Constant, ast.Tuple, ast.List, ast.Load)
            return all(isinstance(node, kinds) for node in ast.walk(value))
    return False


def runs_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is an import, a constant, or an assignment of a constant to names."""
    if isinstance(statement, ast.Assign):
        if not isinstance(statement.value, ast.Constant):
            return False
        return all(isinstance(target, ast.Name) for target in statement.targets)
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, (ast.Import, ast.ImportFrom))


NAMING_FIELDS: dict[type, str] = {
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.MatchMapping: "rest",
}
"""The field of a node that holds a name it binds."""


_READING = frozenset(("format", "seed", "sub", "subn", "expand", "load"))
"""Attributes that the screen looks at where a program names them, so not by a pattern."""


def bound_names(node: ast.AST) -> list[str]:
    """Return the names that a node binds without an `ast.Name`.

    Raises:
        Obstacle: it has type parameters or templates, or matches by what cannot be screened.
    """
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    if isinstance(node, ast.MatchClass):
        # By position it reads attributes whose names are made when it runs.
        if node.patterns or not _READING.isdisjoint(node.kwd_attrs):
            raise Obstacle("it matches attributes by position, or what makes texts")
        for name in node.kwd_attrs:
            check_attribute(name)
    # By name: older versions of Python do not have these classes.
    if type(node).__name__ in ("TypeAlias", "TypeVar", "ParamSpec", "TypeVarTuple", "TemplateStr"):
        raise Obstacle("it has type parameters, or templates")
    name = getattr(node, NAMING_FIELDS.get(type(node), ""), None)
    return [name] if name else []


_WITHOUT_SUMS = frozenset(("object", "Exception"))
"""Bases whose objects cannot be added to a number."""


def refuse_a_timeout(node: ast.ClassDef) -> None:
    """Refuse a class whose objects could be added to a time.

    It defines that, or may inherit it.
    """
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            name = inner.id
        else:
            name = getattr(inner, "name", "")
        if name == "__radd__":
            raise Obstacle("a queue may tell its class the time")
    for base in node.bases:
        is_harmless = isinstance(base, ast.Name) and base.id in _WITHOUT_SUMS
        if not is_harmless:
            raise Obstacle("a queue may tell a class with its bases the time")
