"""Which programs may run several tests in one process: those that carry no state to the next test.

A process of its own for every test costs more than most tests do. Tests may share one if nothing
can get from one test to the next. So each starts in a fresh main module with fresh streams, and
`find_obstacle` finds nothing against the program. That is a list of what is allowed: a program that
names anything else keeps one process per test.

Why the allowed things carry nothing over: a program reaches only what its source names. It never
holds a module, a frame or a namespace as a value, and never names an attribute of the interpreter.
The attributes of modules that it names are functions, classes and constants. What it may change of
those is looked at between tests (`sandbox/batch.py`).

Which of them need not even be defined again for each test is decided in `constant_modules.py`.
"""

import ast
import copy
import itertools
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.run.main_threads import PUBLIC_NAMES, call_in_place_of_thread
from microcoder.judge.run.scopes import Function, Scope, nodes_of_scope, scope_of
from microcoder.judge.run.sharing_names import (
    METHODS,
    OUTLIVING,
    Obstacle,
    bound_names,
    check_attribute,
    check_member,
    check_name,
    is_plain_format,
    names_slots,
    refuse_a_timeout,
    runs_nothing,
)
from microcoder.judge.sandbox.batch import MODULES, PACKAGES
from microcoder.judge.sandbox.functions import prelude_names
from microcoder.judge.sandbox.runner import FILE_NAME

_MOST_SOURCE_CHARACTERS = 1 << 16
"""Longest source that is screened.

Contest programs are shorter, and parsing a longer one costs more than a batch saves.
"""
_ACTS_WHEN_THROWN_AWAY = re.compile(
    r"__del__|Wrapper|Buffered|FileIO|IOBase|detach|finally|contextmanager|ExitStack"
)
"""Names of what may run code when it is freed, so that an object left by one test could act in the
next."""
_TELLING_ADDRESSES = frozenset(("hash", "repr", "ascii", "object"))
"""Builtins that show the address of an object, or make one that is nothing but its address."""
_FOR_CALLING = (("copy", "deepcopy"), ("random", "seed"))
"""Names that may be called but not used as a value, since only the arguments make them safe."""
_SHOWING = frozenset(("print", "str", "format"))
"""Builtins that make texts of their arguments."""
_SETS = frozenset(("set", "frozenset"))
"""Builtins whose order follows hashes, which may be addresses."""
_SPECIAL = frozenset(("type", *_TELLING_ADDRESSES, *_SHOWING, *_SETS))
"""Builtins with rules of their own, whose names an import must not take."""
_TEXTS = re.compile(
    r"\b(?:str|format|StringIO|Template|args|keys|items|SortedSet|KeysView|ItemsView|file)\b"
    r"|\b(?:translate|to_bytes|tobytes)\b"
    r"|\b[rR]?[fF][rR]?['\"]"
    r"|\b(?:Text|UserString|Exception|BaseException|RuntimeError|RecursionError|__exit__)\b"
)
"""Signs that a source makes a text of any object, reads an error's text, or makes a set.

Also that it goes on after a limit on memory or calls, which is reached a little earlier or later in
a process that has run a test.
"""
_PERCENT = re.compile(
    r"['\"][^'\"\n]*%|'''|\"{3}|\\[xuUN0-7\r\n]"
    r"|\b(?:chr|bytes|bytearray|punctuation|printable|decode|fromhex)\b"
    r"|\b(?:encode|memoryview|BytesIO|loads|raw_decode)\b"
)
"""Signs that a source may have a text with `%` in it, which formats any object.

Without these `%` is a remainder. A text is made of numbers by buffers and encodings, of an escape
by JSON and by templates of `re`.
"""
_MAKING_TEXTS = frozenset(("re", "json", "array"))
"""Modules that make such a text of an escape or of numbers."""
_TEMPLATES = frozenset(("sub", "subn", "expand", "load"))
"""Methods that read escapes; many programs have these names for something of their own."""
_REPR_CONVERSIONS = (ord("r"), ord("a"))
"""Conversions of an f-string's field that show a representation: `!r` and `!a`."""
_GIVEN = cache(prelude_names)
"""Returns what a function finds without an import: name -> its module, and its name there."""
_ENDING = (ast.Try, ast.TryStar, ast.With)
"""Statements that run code when left; a generator that is freed at a `yield` inside one leaves
it."""
_YIELDS = (ast.Yield, ast.YieldFrom)
"""Expressions at which a generator waits."""


class Screened(NamedTuple):
    """Whether a program's tests may share a process, by its source."""

    obstacle: str
    """Why they must not share one; empty if they may."""
    may_tell: bool = False
    """Whether it has sets or texts of objects.

    Their order or text could show an address that differs by test.
    """


def find_obstacle(code: str, *, is_function: bool) -> str:
    """Return why a program must not run several tests in one process; empty if it may."""
    return screen(code, is_function=is_function).obstacle


@lru_cache(maxsize=1024)
def screen(code: str, *, is_function: bool) -> Screened:
    """Return whether a program may run its tests in one process, by its source alone."""
    if len(code) > _MOST_SOURCE_CHARACTERS:
        return Screened("its source is long")
    # As Python reads names: full-width letters are the plain ones.
    plain = code if code.isascii() else unicodedata.normalize("NFKC", code)
    acting = _ACTS_WHEN_THROWN_AWAY.search(plain)
    if acting:
        return Screened(f"it uses {acting[0]}")
    tree = parse(code)
    if isinstance(tree, str):
        return Screened("it cannot be read")
    try:
        if "threading" in plain and not is_function:
            # The tree that is kept stays as it was read: as a function, the same source is screened
            # with its threads.
            tree = copy.deepcopy(tree)
            call_in_place_of_thread(tree)
        walk = _Screen(is_function=is_function)
        walk.visit(tree)
    except Obstacle as obstacle:
        return Screened(str(obstacle))
    except (ValueError, RecursionError, MemoryError, EvaluatorFault):
        return Screened("it cannot be read")
    return Screened("", walk.may_tell or _may_make_texts(plain, makes_texts=walk.makes_texts))


def _may_make_texts(plain: str, *, makes_texts: bool) -> bool:
    """Whether a source may make a text of any object.

    Args:
        plain: the source.
        makes_texts: it names what makes texts of escapes or numbers.
    """
    if _TEXTS.search(plain):
        return True
    # `mod` of `operator` is the same as `%`.
    if "%" not in plain and "mod" not in plain:
        return False
    return makes_texts or bool(_PERCENT.search(plain))


# One of each worker's: asked first whether a program is Python, then whether and how it may share a
# process.
@lru_cache(maxsize=64)
def parse(code: str) -> ast.Module | str:
    """Return a program's tree, or its SyntaxError as text.

    The text is empty if it cannot be parsed for any other reason.
    """
    try:
        return parse_source(code.removeprefix("\ufeff"))
    except SyntaxError as error:
        error.filename = error.filename and FILE_NAME
        return f"{type(error).__name__}: {error}"
    except (ValueError, RecursionError, MemoryError, EvaluatorFault):
        return ""


def find_syntax_error(code: str) -> str:
    """Return a program's SyntaxError as text; empty for none.

    It is also empty if the source is too long to be parsed here.

    The program's own process would give the same error, as nothing is run before the whole program
    is compiled.
    """
    if len(code) > _MOST_SOURCE_CHARACTERS:
        return ""
    tree = parse(code)
    return tree if isinstance(tree, str) else ""


class _Screen(ast.NodeVisitor):
    """Walks a program once; raises Obstacle at the first thing that is not allowed."""

    def __init__(self, *, is_function: bool) -> None:
        self._given = _GIVEN() if is_function else {}
        self._imported: dict[str, tuple[str, str]] = {}
        """Name in the program -> its module, and its name there; empty for the module itself."""
        self._scopes: list[Scope] = []
        self._nameless: set[str] = set()
        """The program's functions and classes.

        As text they show an address, as may objects of these classes.
        """
        self._early: set[str] = set()
        """Names that are imported before anything has run: they never stand for what is given."""
        self._plain_classes: set[str] = set()
        """Classes of the program whose objects are told apart by their address."""
        self.makes_texts = False
        """Whether it names what makes texts of escapes or numbers, so that a `%` need not be
        seen."""
        self._has_queue = False
        """Whether it imports `queue`, which adds the time to a timeout: an own sum is a clock."""
        self._is_early = False
        """Whether the import being learned stands before anything that runs."""
        self.may_tell = False
        """Whether it makes a set, whose order follows addresses in memory.

        Also whether it goes on after running out of memory.
        """

    def visit_Module(self, node: ast.Module) -> None:
        """Record all imports and names first, then walk.

        A function may use what is imported below it.
        """
        nodes: list[ast.AST] = [node]
        first = set(itertools.takewhile(runs_nothing, node.body))
        # Breadth first, so that imports of the module come before those of its functions.
        for inner in nodes:
            nodes += ast.iter_child_nodes(inner)
            self._is_early = inner in first
            self._record(inner)
        self.generic_visit(node)

    def _record(self, node: ast.AST) -> None:
        """Record what a node imports or binds."""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self._nameless.add(node.name)
        if isinstance(node, ast.ClassDef) and _is_plain_class(node):
            self._plain_classes.add(node.name)
        if isinstance(node, ast.Import):
            self._import_modules(node)
        elif isinstance(node, ast.ImportFrom):
            self._import_names(node)
        elif isinstance(node, _ENDING) and _waits_inside(node):
            raise Obstacle("it has a generator that acts when it is thrown away")
        else:
            for name in bound_names(node):
                check_name(name)

    def visit_FunctionDef(self, node: Function) -> None:
        """Walk a function's body in a scope of its own.

        All but the body is evaluated in the scope around: defaults, annotations, decorators.
        """
        body = node.body if isinstance(node.body, list) else [node.body]
        inside = {id(statement) for statement in body}
        for child in ast.iter_child_nodes(node):
            if id(child) not in inside:
                self.visit(child)
        self._scopes.append(scope_of(node))
        for statement in body:
            self.visit(statement)
        self._scopes.pop()

    visit_Lambda = visit_FunctionDef

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Refuse coroutines: their event loop outlives a test."""
        raise Obstacle("it has coroutines")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Refuse what a class must not have.

        These are `__` names outside `METHODS`, imports (they make modules attributes), keywords and
        computed slots.
        """
        if node.keywords:
            raise Obstacle("a class has keywords")
        if self._has_queue:
            refuse_a_timeout(node)
        within = nodes_of_scope(node.body)
        if any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in within):
            raise Obstacle("a class imports")
        # Copying reads them again.
        num_slots = 0
        for inner in within:
            num_slots += isinstance(inner, ast.Name) and inner.id == "__slots__"
        if num_slots != sum(names_slots(statement) for statement in node.body):
            raise Obstacle("it makes its __slots__")
        for statement in node.body:
            name = getattr(statement, "name", "")
            if name.startswith("__") and name not in METHODS:
                raise Obstacle(f"it defines {name}")
        self._scopes.append(scope_of(node))
        for child in ast.iter_child_nodes(node):
            # As a base alone, `object` is harmless.
            is_object = isinstance(child, ast.Name) and child.id == "object"
            if not (is_object and child in node.bases):
                self.visit(child)
        self._scopes.pop()

    def visit_Name(self, node: ast.Name) -> None:
        """Refuse modules, `type` and what shows addresses as values, and assigned imports."""
        check_name(node.id)
        module, inside = self._library(node.id)
        if module and not inside:
            raise Obstacle(f"it uses the module {module} as a value")
        is_read = isinstance(node.ctx, ast.Load)
        if module and is_read:
            self._check_library_name(node.id, module, inside)
        elif module:
            if node.id in self._imported:
                raise Obstacle(f"it assigns {node.id}")
        elif is_read and not self._is_own(node.id):
            if node.id == "type":
                raise Obstacle("it uses type as a value")
            if node.id in _TELLING_ADDRESSES:
                raise Obstacle(f"it uses {node.id}")
            if node.id in _SETS:
                self.may_tell = True

    def _check_library_name(
        self,
        name: str,
        module: str,
        inside: str,
    ) -> None:
        """Check a name that is read, and stands for a member of a module."""
        is_given = name in self._given and name not in self._early
        if name in OUTLIVING and is_given:
            raise Obstacle(f"it uses {name} without importing it first")
        check_member(module, inside)
        _check_is_value(module, inside)
        self._note_texts(makes_texts=module in _MAKING_TEXTS)

    def _note_texts(self, *, makes_texts: bool) -> None:
        self.makes_texts = self.makes_texts or makes_texts

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Check the target as a value, too: an operator method of the right side may receive it."""
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Refuse `except ... as NAME` of an imported name: the handler deletes it."""
        if node.name in self._imported and not self._is_own(node.name):
            raise Obstacle(f"it assigns {node.name}")
        self.may_tell = self.may_tell or node.type is None
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set | ast.SetComp) -> None:
        """Refuse a set of objects that hash by their address, which orders them."""
        self._refuse_nameless(node.elts if isinstance(node, ast.Set) else [node.elt])
        self.may_tell = True
        self.generic_visit(node)

    visit_SetComp = visit_Set

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        """Refuse a field of an f-string that may show an address.

        Such are `!r` and `!a`, and functions, classes and plain objects.
        """
        if node.conversion in _REPR_CONVERSIONS:
            raise Obstacle("it shows a representation")
        self._refuse_nameless([node.value])
        self.generic_visit(node)

    def _refuse_nameless(self, shown: Sequence[ast.expr]) -> None:
        """Refuse objects whose text, hash or order shows their address in memory."""
        for node in shown:
            if isinstance(node, ast.Name):
                if node.id in self._nameless and not self._is_own(node.id):
                    raise Obstacle(f"it shows {node.id}, which has an address for a name")
            elif isinstance(node, (ast.Lambda, ast.GeneratorExp)):
                raise Obstacle("it shows an address")
            elif isinstance(node, ast.Call):
                callee = node.func
                if isinstance(callee, ast.Name) and callee.id in self._plain_classes:
                    raise Obstacle(f"it shows an object of {callee.id}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Refuse members of modules that are not allowed, and attributes of the interpreter."""
        # `a.b.c` is looked at from the name that it begins with.
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        module = ""
        inside = ""
        if isinstance(root, ast.Name):
            module, inside = self._library(root.id)
        if module and not isinstance(node.ctx, ast.Load):
            raise Obstacle(f"it assigns an attribute of {module}")
        if module and not inside and root is node.value:
            self._note_texts(makes_texts=module in _MAKING_TEXTS)
            check_member(module, node.attr)
            _check_is_value(module, node.attr)
            return
        if module and node.attr.startswith("_"):
            raise Obstacle(f"it uses {node.attr} of {module}")
        check_attribute(node.attr)
        self._note_texts(makes_texts=node.attr in _TEMPLATES)
        if node.attr == "seed":
            raise Obstacle("it uses seed as a value")
        if node.attr == "write" and not isinstance(node.ctx, ast.Load):
            # A stream's gets the texts of objects.
            raise Obstacle("it assigns the attribute write")
        if node.attr == "format" and not is_plain_format(node.value):
            raise Obstacle("it formats by a text that it makes")
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Check calls of `deepcopy` and `seed`, which only certain arguments make safe."""
        callee = self._callee(node)
        if callee == ("copy", "deepcopy"):
            _check_deepcopy(node)
        elif callee == ("random", "seed"):
            _check_seed(node)
        else:
            if isinstance(node.func, ast.Name) and node.func.id in _SHOWING:
                self._refuse_nameless(node.args)
                # Among them may be a file of its own, which is given texts.
                if any(keyword.arg is None for keyword in node.keywords):
                    self.may_tell = True
            self.visit(node.func)
        for argument in (*node.args, *node.keywords):
            self.visit(argument)

    def _callee(self, node: ast.Call) -> tuple[str, str]:
        """Return the module and name of a library function that is called by name.

        For any other these are two empty texts.
        """
        function = node.func
        if isinstance(function, ast.Name):
            module, inside = self._library(function.id)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            module, within = self._library(function.value.id)
            inside = "" if within else function.attr
        else:
            return "", ""
        if not (module and inside):
            return "", ""
        check_member(module, inside)
        return module, inside

    def _library(self, name: str) -> tuple[str, str]:
        """Return the module, and the name inside it, that a name may stand for.

        Both are empty if it is the program's own.
        """
        if self._is_own(name):
            return "", ""
        return self._imported.get(name) or self._given.get(name) or ("", "")

    def _is_own(self, name: str) -> bool:
        for scope in reversed(self._scopes):
            if name in scope.elsewhere:
                return False
            if name in scope.own:
                return True
        return False

    def _import_modules(self, node: ast.Import) -> None:
        for alias in node.names:
            is_allowed = alias.name in (*MODULES, *PACKAGES, "sys")
            # `import os.path` would bind `os`.
            binds_parent = "." in alias.name and not alias.asname
            if not is_allowed or binds_parent:
                raise Obstacle(f"it imports {alias.name}")
            self._add(alias.asname or alias.name, (alias.name, ""))

    def _import_names(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module not in (*MODULES, *PACKAGES, "sys", "__future__"):
            raise Obstacle(f"it imports {module}")
        for alias in node.names:
            if alias.name != "*":
                check_member(module, alias.name)
                self._add(alias.asname or alias.name, (module, alias.name))
                continue
            if module in PACKAGES:
                raise Obstacle(f"it imports all of {module}")
            for name in PUBLIC_NAMES(module):
                # Whether the program uses it or not; what it uses is checked if it does.
                self._learn(name, (module, name))

    def _add(
        self,
        name: str,
        meaning: tuple[str, str],
    ) -> None:
        check_name(name)
        self._learn(name, meaning)

    def _learn(
        self,
        name: str,
        meaning: tuple[str, str],
    ) -> None:
        self._has_queue = self._has_queue or meaning[0] == "queue"
        known = self._imported.get(name)
        if not known and not self._is_early:
            known = self._given.get(name)
        # A name with two meanings cannot be judged by its source.
        hides_builtin = name in _SPECIAL and not self._is_early
        if known not in (None, meaning) or hides_builtin:
            raise Obstacle(f"{name} is more than one thing")
        self._imported[name] = meaning
        if self._is_early:
            self._early.add(name)


def _check_is_value(module: str, name: str) -> None:
    if (module, name) in _FOR_CALLING:
        raise Obstacle(f"it uses {module}.{name} as a value")


def _check_deepcopy(node: ast.Call) -> None:
    """Raise Obstacle for a call of `deepcopy` with more than an object."""
    is_starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if is_starred or len(node.args) + len(node.keywords) > 1:
        # What it takes besides is a table by addresses.
        raise Obstacle("it calls deepcopy with a memo")


def _check_seed(node: ast.Call) -> None:
    """Raise Obstacle for a call of `random.seed` without a constant: None draws entropy."""
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Constant) or not first.value:
        raise Obstacle("it calls random.seed without a number to begin with")


def _waits_inside(node: ast.AST) -> bool:
    return any(isinstance(inner, _YIELDS) for inner in ast.walk(node))


def _is_plain_class(node: ast.ClassDef) -> bool:
    """Whether a class has plain names for bases and no `__hash__`.

    Its objects may then hash by their address.
    """
    own = {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
    return all(isinstance(base, ast.Name) for base in node.bases) and "__hash__" not in own
