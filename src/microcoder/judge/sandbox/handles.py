"""Handles: what stands in one process of a conversation for an object of the other.

What has no form as data stays where it is. The other side gets a handle, whose use is a further
call: a function, an object with methods, a generator, a class, an open file. A handle has no
comparisons and no arithmetic: it equals itself alone, so that no assertion runs the answer's code.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from microcoder.judge.sandbox.value_kinds import CannotCross, Malformed

_METHODS = {
    "__call__": "call",
    "__len__": "len",
    "__iter__": "iter",
    "__next__": "next",
    "__getitem__": "item",
    "__setitem__": "put",
    "__delitem__": "drop",
    "__int__": "int",
    "__float__": "float",
    "__enter__": "enter",
    "__instancecheck__": "isinstance",
}
"""Methods that a handle has where its object's type has them, and the operation of each."""
_COMPARISONS = {
    "__eq__": "eq",
    "__hash__": "hash",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
    "__contains__": "contains",
    "__bool__": "bool",
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
}
"""Further methods of handles in the answer's process, on objects of the test: those run the test's
code. The other way around there are none of them."""
_PASSED_ON = ("__name__", "__doc__", "__qualname__", "__module__")
"""Attributes with such names that a handle passes on."""
_OPEN_MODULES = ("unittest.mock", "_io", "io")
"""Modules whose objects an answer may use by name, besides those of the test's own classes."""
_USES = {
    *("call", "get", "set", "len", "iter", "next", "send", "item", "put", "drop"),
    *("text", "repr", "int", "float", "enter", "leave"),
    *_COMPARISONS.values(),
}
"""What an answer may do with an object of a class of the test."""
_STEPS = frozenset({"iter", "next", "send"})
"""What it may do with an iterator."""
_REACHING = ("configure_mock", "attach_mock", "mock_add_spec")
"""Methods of mocks that set what a dotted path names, whatever that begins with."""
_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    functools.partial,
    type,
)
"""Types of what an answer may call, and do nothing else with."""


class Asking(Protocol):
    """The side of a conversation on which a handle is used."""

    is_closed: bool

    def ask(self, operation: str, number: int, *arguments: Any, **named: Any) -> Any:
        """Have the other side do something with one of its objects."""


class Handle:
    """An object of the other process; its use is a further call."""

    __slots__ = ("__weakref__", "_number", "_peer")

    def __init__(self, peer: Asking, number: int) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _PASSED_ON:
            raise AttributeError(name)
        return self._peer.ask("get", self._number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("set", self._number, name, value)

    def __str__(self) -> str:
        return self._show("text")

    def __repr__(self) -> str:
        return self._show("repr")

    def _show(self, operation: str) -> str:
        if self._peer.is_closed:
            return f"<{type(self).__name__}>"
        text = self._peer.ask(operation, self._number)
        if type(text) is not str:
            raise TypeError("a text was expected")
        return text


def _make_method(operation: str) -> Callable[..., Any]:
    if operation == "isinstance":
        return _is_instance

    def method(handle: Any, *arguments: Any, **named: Any) -> Any:
        return handle._peer.ask(operation, handle._number, *arguments, **named)

    return method


def _is_instance(handle: Any, value: Any) -> bool:
    # What is data is of no class of the other side.
    if not isinstance(value, Handle):
        return False
    return handle._peer.ask("isinstance", handle._number, value) is True


def _leave(handle: Any, kind: Any, error: Any, trace: Any) -> bool:
    handle._peer.ask("leave", handle._number)
    return False


_DOC = property(lambda handle: handle._peer.ask("get", handle._number, "__doc__"))
"""The object's own, in place of the type's."""


@functools.cache
def _handle_type(module: str, name: str, methods: tuple[str, ...]) -> type[Handle]:
    """Return the type of handles on objects of a type that has these methods."""
    body: dict[str, Any] = {"__slots__": (), "__module__": module, "__doc__": _DOC}
    for method in methods:
        body[method] = _make_method(_METHODS.get(method) or _COMPARISONS[method])
    if "__enter__" in methods:
        body["__exit__"] = _leave
    known = _find_library_type(module, name)
    if known is not None:
        # `isinstance(value, re.Match)` asks for it, behind the real type.
        body["__class__"] = property(lambda handle: known)
    return typing.cast("type[Handle]", type(name, (Handle,), body))


def _find_library_type(module: str, name: str) -> type | None:
    """Return a type of a library that is loaded here; None if there is none of that name."""
    if module == "builtins" and name in _BUILTIN_TYPES:
        return _BUILTIN_TYPES[name]
    if module in ("__main__", "solution") or module.startswith("microcoder"):
        return None
    known = getattr(sys.modules.get(module), name, None)
    return known if isinstance(known, type) else None


_BUILTIN_TYPES: Mapping[str, type] = {
    "function": types.FunctionType,
    "builtin_function_or_method": types.BuiltinFunctionType,
    "method": types.MethodType,
}
"""Types of functions, which have no name in `builtins`."""


def _generate(peer: Asking, number: int) -> Iterator[Any]:
    """Yield the items of a generator of the other process, as a generator."""
    sent = None
    while True:
        try:
            item = peer.ask("send", number, sent)
        except StopIteration as end:
            return end.value
        sent = yield item


def _iterate(peer: Asking, number: int) -> Iterator[Any]:
    """Yield the items of an iterator of the other process, each when it is asked for."""
    while True:
        try:
            item = peer.ask("next", number)
        except StopIteration:
            return
        yield item


async def _await(peer: Asking, number: int) -> Any:
    return peer.ask("await", number)


def _keep(item: Any) -> Any:
    return item


def _keep_all(item: Any) -> bool:
    return True


class Home:
    """What one side of a conversation knows of classes and functions."""

    def __init__(self, names: dict[str, Any], *, is_test: bool) -> None:
        """Know the names of the program that runs here."""
        self.names = names
        self.peer: Asking | None = None
        """The side itself, once it has joined."""
        self.exceptions: dict[tuple[str, ...], type[BaseException]] = {}
        """Exception classes of the other side, by the names of their bases."""
        self.common: frozenset[str] = frozenset()
        """Names of the classes that both sides define, by the source that runs first in both."""
        self._is_test = is_test

    def find_class(self, name: str) -> type | None:
        """Return the class that both sides define under a name; None if there is none."""
        known = self.names.get(name) if name in self.common else None
        return known if isinstance(known, type) else None

    def is_common(self, kind: type) -> bool:
        """Whether both sides define this class, so that its instances can cross."""
        return kind.__name__ in self.common and self.names.get(kind.__name__) is kind

    def is_own_module(self, name: str) -> bool:
        """Whether a module is one that the other side does not have."""
        return name in ("__main__", "solution") or name.partition(".")[0] == "microcoder"

    def may_name(self, value: object) -> bool:
        """Whether the other side finds this class or function by its name."""
        # An answer's functions are called where it runs, whatever their names.
        return self._is_test or value in _NAMED_TYPES.values()

    def find_named(self, module: str, name: str) -> object:
        """Return a class or function of a library; raises Malformed if it may not be named."""
        if self._is_test:
            if f"{module}.{name}" not in _NAMED_TYPES:
                raise Malformed(f"the name of {module[:40]}.{name[:40]}")
            return _NAMED_TYPES[f"{module}.{name}"]
        found: Any = importlib.import_module(module)
        for part in filter(None, name.split(".")):
            found = getattr(found, part)
        return found

    def wrap(self, number: int, parts: Sequence[Any]) -> object:
        """Return a handle on an object of the other side."""
        module, name, *methods = parts
        if self.peer is None or not isinstance(module, str) or not isinstance(name, str):
            raise Malformed("a handle without a type")
        known = _METHODS if self._is_test else {**_METHODS, **_COMPARISONS}
        if not all(isinstance(method, str) and method in known for method in methods):
            raise Malformed("a handle with unknown methods")
        if module == "builtins" and name == "generator":
            return _generate(self.peer, number)
        if module == "builtins" and name == "coroutine":
            return _await(self.peer, number)
        if module == "builtins" and name == "map":
            return map(_keep, _iterate(self.peer, number))
        if module == "builtins" and name == "filter":
            return filter(_keep_all, _iterate(self.peer, number))
        return _handle_type(module, name, tuple(methods))(self.peer, number)

    def unwrap(self, value: object) -> Sequence[Any]:
        """Return the parts of a handle on an object of this side."""
        kind = type(value)
        if self._is_test and not can_be_used(value):
            raise CannotCross(
                f"the test passes a {kind.__module__}.{kind.__name__}, which an answer in another "
                "process cannot use"
            )
        methods = [name for name in _METHODS if hasattr(kind, name)]
        if self._is_test and kind.__module__ == "__main__":
            for name in _COMPARISONS:
                own = getattr(kind, name, None)
                if own is not None and own is not getattr(object, name, None):
                    methods.append(name)
        return [str(kind.__module__), str(kind.__name__), *methods]


def may_use(operation: str, target: object, arguments: Sequence[Any]) -> bool:
    """Whether an answer may do an operation with an object of the test.

    It may call functions, take the items of iterators, and use by their public names the objects
    of the test's own classes: what leads to the test's variables begins with an underscore, or is
    an attribute of something else.
    """
    if operation in ("get", "set"):
        name = arguments[0] if arguments else ""
        is_public = type(name) is str and (not name.startswith("_") or name in _PASSED_ON)
        if not is_public or name in _REACHING or (operation == "set" and name in _PASSED_ON):
            return False
        if isinstance(target, _FUNCTIONS):
            return operation == "get" and name in _PASSED_ON
    if isinstance(target, _FUNCTIONS):
        return operation in ("call", "get", "isinstance")
    module = type(target).__module__
    if module == "__main__" or module in _OPEN_MODULES:
        return operation in _USES
    return operation in _STEPS and hasattr(type(target), "__next__")


def can_be_used(value: object) -> bool:
    """Whether there is anything that an answer may do with an object of the test."""
    module = type(value).__module__
    if module == "__main__" or module in _OPEN_MODULES or isinstance(value, _FUNCTIONS):
        return True
    return hasattr(type(value), "__next__")


def _list_named_types() -> dict[str, type]:
    names = "bool bytearray bytes complex dict float frozenset int list object range set str tuple"
    found: dict[str, type] = {"builtins.NoneType": type(None), "builtins.type": type}
    for name in names.split():
        found[f"builtins.{name}"] = getattr(builtins, name)
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, Exception):
            found[f"builtins.{name}"] = value
    return found


_NAMED_TYPES = _list_named_types()
"""Types that an answer may name: to make an object of one does no harm."""
