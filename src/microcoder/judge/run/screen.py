"""Which programs may run several tests in one process: those that cannot carry state to the next test.

A process of its own for every test costs more than most tests do. Tests may share one if nothing can get from one
test to the next: each starts in a fresh main module with fresh streams, and `find_obstacle` finds nothing against the
program. That is a list of what is allowed: a program that names anything else keeps one process per test.

Why the allowed things carry nothing over: a program reaches only what its source names. It never holds a module, a
frame or a namespace as a value, never names an attribute of the interpreter, and the attributes of modules that it
names are functions, classes and constants. What it may change of those is looked at between tests
(`sandbox/batch.py`).

What its own module defines need not be made anew for each test if the module binds nothing but functions, classes and
constants, and no function rebinds them by `global` (`binds_constants`): of such, a call can change only attributes. So
the process defines the module once if, besides, the program sets no attribute of anything, and names nothing of the
library that does (`is_rare` in `sandbox/batch.py`).
"""

import ast
import copy
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from keyword import iskeyword
from typing import NamedTuple

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.run.sharing_names import (
    METHODS,
    NAMING_FIELDS,
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
from microcoder.judge.sandbox.functions import prelude_names, public_names
from microcoder.judge.sandbox.runner import FILE_NAME

_MOST_SOURCE_CHARACTERS = 1 << 16
"""Longest source that is screened; contest programs are shorter, and parsing costs more than a batch saves."""
_ACTS_WHEN_THROWN_AWAY = re.compile(
    r"__del__|Wrapper|Buffered|FileIO|IOBase|detach|finally|contextmanager|ExitStack"
)
"""Names of what may run code when it is freed, so that an object left by one test could act in the next."""
_TELLING_ADDRESSES = frozenset(("hash", "repr", "ascii", "object"))
"""Builtins that show the address of an object, or make one that is nothing but its address."""
_FOR_CALLING = (("copy", "deepcopy"), ("random", "seed"))
"""Names that may be called but not used as a value, since only the arguments make them safe."""
_SHOWING = frozenset(("print", "str", "format"))
_SETS = frozenset(("set", "frozenset"))
_SPECIAL = frozenset(("type", *_TELLING_ADDRESSES, *_SHOWING, *_SETS))
"""Builtins with rules of their own, whose names an import must not take."""
_TEXTS = re.compile(
    r"\b(?:str|format|StringIO|Template|args|keys|items|SortedSet|KeysView|ItemsView|file|translate|to_bytes|tobytes)\b"
    r"|\b[rR]?[fF][rR]?['\"]|\b(?:Text|UserString|Exception|BaseException|RuntimeError|RecursionError|__exit__)\b"
)
"""Signs that a source makes a text of any object, reads an error's text, or makes a set; or that it goes on after a
limit on memory or calls, which is reached a little earlier or later in a process that has run a test."""
_PERCENT = re.compile(
    r"['\"][^'\"\n]*%|'''|\"{3}|\\[xuUN0-7\r\n]|\b(?:chr|bytes|bytearray|punctuation|printable|decode|fromhex)\b"
    r"|\b(?:encode|memoryview|BytesIO|loads|raw_decode)\b"
)
"""Signs that a source may have a text with `%` in it, which formats any object; else `%` is a remainder.

A text is made of numbers by buffers and encodings, of an escape by JSON and by templates of `re`.
"""
_MAKING_TEXTS = frozenset(("re", "json", "array"))
"""Modules that make such a text of an escape or of numbers."""
_TEMPLATES = frozenset(("sub", "subn", "expand", "load"))
"""Methods that read escapes; many programs have these names for something of their own."""
_REPR_CONVERSIONS = (ord("r"), ord("a"))
_GIVEN, _PUBLIC = cache(prelude_names), cache(public_names)
_ENDING, _YIELDS = (ast.Try, ast.TryStar, ast.With), (ast.Yield, ast.YieldFrom)
"""Statements that run code when left; a generator that is freed at a `yield` inside one leaves it."""
Function = ast.FunctionDef | ast.Lambda


class Screened(NamedTuple):
    """Whether a program's tests may share a process, by its source."""

    obstacle: str
    """Why they must not share one; empty if they may."""
    may_tell: bool = False
    """Whether it has sets or texts of objects, whose order or text could show an address that differs by test."""


def find_obstacle(code: str, *, is_function: bool) -> str:
    """Return why a program must not run several tests in one process; empty if it may."""
    return screen(code, is_function=is_function).obstacle


@lru_cache(maxsize=1024)
def screen(code: str, *, is_function: bool) -> Screened:
    """Return whether a program may run its tests in one process, judged by its source, which is not run."""
    if len(code) > _MOST_SOURCE_CHARACTERS:
        return Screened("its source is long")
    # As Python reads names: full-width letters are the plain ones.
    plain = code if code.isascii() else unicodedata.normalize("NFKC", code)
    found = _ACTS_WHEN_THROWN_AWAY.search(plain)
    if found:
        return Screened(f"it uses {found[0]}")
    tree = parse(code)
    if isinstance(tree, str):
        return Screened("it cannot be read")
    try:
        if "threading" in plain and not is_function:
            # The tree that is kept stays as it was read: as a function, the same source is screened with its threads.
            tree = copy.deepcopy(tree)
            _call_in_place_of_thread(tree)
        walk = _Screen(is_function=is_function)
        walk.visit(tree)
    except Obstacle as obstacle:
        return Screened(str(obstacle))
    except (ValueError, RecursionError, MemoryError, EvaluatorFault):
        return Screened("it cannot be read")
    may_format = _TEXTS.search(plain) or (
        ("%" in plain or "mod" in plain) and (walk.makes_texts or _PERCENT.search(plain))
    )
    return Screened("", walk.may_tell or bool(may_format))


# One of each worker's: asked first whether a program is Python, then whether and how it may share a process.
@lru_cache(maxsize=64)
def parse(code: str) -> ast.Module | str:
    """Return a program's tree, or its SyntaxError as text; empty if it cannot be parsed for any other reason."""
    try:
        return parse_source(code.removeprefix("\ufeff"))
    except SyntaxError as error:
        error.filename = error.filename and FILE_NAME
        return f"{type(error).__name__}: {error}"
    except (ValueError, RecursionError, MemoryError, EvaluatorFault):
        return ""


def find_syntax_error(code: str) -> str:
    """Return a program's SyntaxError as text; empty if it has none, or is too long to be parsed here.

    The program's own process would give the same error, as nothing is run before the whole program is compiled.
    """
    found = parse(code) if len(code) <= _MOST_SOURCE_CHARACTERS else ""
    return found if isinstance(found, str) else ""


_THREAD = re.compile(r"threading\.Thread\(target=(\w+)\)\.start\(\)")
_STACK_SIZE = re.compile(r"threading\.stack_size\([\d\s()*+/%<>&|^~-]+\)")


def _call_in_place_of_thread(tree: ast.Module) -> None:
    """Make `threading.Thread(target=main).start()`, the last thing that a program does, a call of `main`.

    Nothing runs beside such a thread: the main one waits for its end, as the interpreter does, and the process then
    joins it before the test ends. So what the program may do is what it may do in a call. Programs often have it for
    a larger stack, which `threading.stack_size` asks for. Whatever else names the module is refused as before.
    """
    block = tree.body
    while block and isinstance(block[-1], ast.If) and not block[-1].orelse:
        block = block[-1].body
    found = _THREAD.fullmatch(ast.unparse(block[-1])) if block else None
    imports = [node for node in tree.body if isinstance(node, ast.Import)]
    threading = [
        (node, alias)
        for node in imports
        for alias in node.names
        if (alias.name, alias.asname) == ("threading", None)
    ]
    if found is None or not threading or iskeyword(target := found[1]):
        return
    for place in (tree.body, block):
        calls = [
            one for one in place if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
        ]
        settings = [one for one in calls if _STACK_SIZE.fullmatch(ast.unparse(one))]
        place[:] = [one for one in place if one not in settings]
    block[-1:] = [ast.Expr(ast.Call(ast.Name(target, ast.Load()), [], []))]
    for node, alias in threading:
        node.names = [one for one in node.names if one is not alias]
    # Neither name may stand for anything else, wherever it stands: that of a function may only be read beside.
    nodes = [*ast.walk(tree)]
    named = [name for node in nodes for name in _names_in(node)]
    is_main = target in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if is_main and named.count(target) == 1 and "threading" not in named:
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import) or node.names]
    else:
        for node, alias in threading:
            node.names = [alias]


def _names_in(node: ast.AST) -> list[str]:
    """Return the names in a node's own fields, without a variable that is read; for `import *` what it binds."""
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        return [*_PUBLIC(node.module or "")] if node.module in MODULES else ["threading"]
    is_read = (
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != "threading"
    )
    fields = [] if is_read else [value for _, value in ast.iter_fields(node)]
    words = [word for value in fields for word in (value if isinstance(value, list) else [value])]
    return [word.partition(".")[0] for word in words if isinstance(word, str)]


class _Scope(NamedTuple):
    """How names are looked up in a function or a class."""

    own: frozenset[str]
    """Names bound here, so never looked up outside."""
    elsewhere: frozenset[str]
    """Names declared global or imported here: they never mean a variable of an outer function."""


class _Screen(ast.NodeVisitor):
    """Walks a program once; raises Obstacle at the first thing that is not allowed."""

    def __init__(self, *, is_function: bool) -> None:
        self._given = _GIVEN() if is_function else {}
        self._imported: dict[str, tuple[str, str]] = {}
        """Name in the program to the module, and the name inside it; an empty one for the module itself."""
        self._scopes: list[_Scope] = []
        self._nameless: set[str] = set()
        """The program's functions and classes: as text they show an address, as may objects of these classes."""
        self._early: set[str] = set()
        """Names that are imported before anything has run, so that they never stand for what is given."""
        self._plain_classes: set[str] = set()
        """Classes of the program whose objects are told apart by their address."""
        self.makes_texts = False
        """Whether it names what makes texts of escapes or numbers, so that a `%` need not be seen."""
        self._has_queue = False
        """Whether it imports `queue`, which adds the time to a timeout: an object's own sum is a clock."""
        self._is_early = False
        """Whether the import being learned is among those that the module begins with, before anything has run."""
        self.may_tell = False
        """Whether it makes a set, whose order follows addresses in memory, or goes on after running out of memory."""

    def visit_Module(self, node: ast.Module) -> None:
        """Record all imports and names first, then walk: a function may use what is imported below it."""
        found: list[ast.AST] = [node]
        first = set(itertools.takewhile(runs_nothing, node.body))
        for inner in found:
            found += ast.iter_child_nodes(inner)
            if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
                self._nameless.add(inner.name)
                if isinstance(inner, ast.ClassDef) and _is_plain_class(inner):
                    self._plain_classes.add(inner.name)
            self._is_early = inner in first
            if isinstance(inner, ast.Import):
                self._import_modules(inner)
            elif isinstance(inner, ast.ImportFrom):
                self._import_names(inner)
            elif isinstance(inner, _ENDING) and any(
                isinstance(one, _YIELDS) for one in ast.walk(inner)
            ):
                raise Obstacle("it has a generator that acts when it is thrown away")
            else:
                for name in bound_names(inner):
                    check_name(name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Function) -> None:
        """Walk a function's body in a scope of its own; defaults, annotations and decorators in the scope around."""
        # All but the body is evaluated outside: defaults, annotations, decorators.
        body = node.body if isinstance(node.body, list) else [node.body]
        inside = {id(statement) for statement in body}
        for child in ast.iter_child_nodes(node):
            if id(child) not in inside:
                self.visit(child)
        self._scopes.append(_scope_of(node))
        for statement in body:
            self.visit(statement)
        self._scopes.pop()

    visit_Lambda = visit_FunctionDef

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Refuse coroutines: their event loop outlives a test."""
        raise Obstacle("it has coroutines")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Refuse `__` names outside `METHODS`, imports (they make modules attributes), keywords, computed slots."""
        if node.keywords:
            raise Obstacle("a class has keywords")
        if self._has_queue:
            refuse_a_timeout(node)
        within = _of_this_scope(node.body)
        if any(isinstance(one, (ast.Import, ast.ImportFrom)) for one in within):
            raise Obstacle("a class imports")
        # Copying reads them again.
        slots = [one for one in within if isinstance(one, ast.Name) and one.id == "__slots__"]
        if len(slots) != sum(names_slots(one) for one in node.body):
            raise Obstacle("it makes its __slots__")
        for statement in node.body:
            name = getattr(statement, "name", "")
            if name.startswith("__") and name not in METHODS:
                raise Obstacle(f"it defines {name}")
        self._scopes.append(_scope_of(node))
        for child in ast.iter_child_nodes(node):
            if not (child in node.bases and isinstance(child, ast.Name) and child.id == "object"):
                self.visit(child)
        self._scopes.pop()

    def visit_Name(self, node: ast.Name) -> None:
        """Refuse, as values, modules, `type` and builtins that show addresses; refuse assignments to imported names."""
        check_name(node.id)
        module, inside = self._library(node.id)
        if module and not inside:
            raise Obstacle(f"it uses the module {module} as a value")
        if module and not isinstance(node.ctx, ast.Load):
            if node.id in self._imported:
                raise Obstacle(f"it assigns {node.id}")
        elif module:
            if node.id in OUTLIVING and node.id in self._given and node.id not in self._early:
                raise Obstacle(f"it uses {node.id} without importing it first")
            check_member(module, inside)
            _check_is_value(module, inside)
            self.makes_texts = self.makes_texts or module in _MAKING_TEXTS
        elif isinstance(node.ctx, ast.Load) and not self._is_own(node.id):
            if node.id == "type":
                raise Obstacle("it uses type as a value")
            if node.id in _TELLING_ADDRESSES:
                raise Obstacle(f"it uses {node.id}")
            if node.id in _SETS:
                self.may_tell = True

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Check the target as a value, too: an operator method of the right side's class may receive it."""
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Refuse `except ... as NAME` where an import binds the name too: the handler deletes it."""
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
        """Refuse a field of an f-string that may show an address: `!r`, `!a`, or a function, class or plain object."""
        if node.conversion in _REPR_CONVERSIONS:
            raise Obstacle("it shows a representation")
        self._refuse_nameless([node.value])
        self.generic_visit(node)

    def _refuse_nameless(self, shown: Sequence[ast.expr]) -> None:
        """Refuse objects whose text, hash or order shows their address in memory."""
        for one in shown:
            if isinstance(one, ast.Name) and one.id in self._nameless and not self._is_own(one.id):
                raise Obstacle(f"it shows {one.id}, which has an address for a name")
            if isinstance(one, (ast.Lambda, ast.GeneratorExp)):
                raise Obstacle("it shows an address")
            if (
                isinstance(one, ast.Call)
                and isinstance(one.func, ast.Name)
                and one.func.id in self._plain_classes
            ):
                raise Obstacle(f"it shows an object of {one.func.id}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Refuse members of modules that are not allowed, and attributes that are internal to the interpreter."""
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        module, inside = self._library(root.id) if isinstance(root, ast.Name) else ("", "")
        is_module_member = module and not inside and root is node.value
        if module and not isinstance(node.ctx, ast.Load):
            raise Obstacle(f"it assigns an attribute of {module}")
        if is_module_member:
            self.makes_texts = self.makes_texts or module in _MAKING_TEXTS
            check_member(module, node.attr)
            _check_is_value(module, node.attr)
            return
        if module and node.attr.startswith("_"):
            raise Obstacle(f"it uses {node.attr} of {module}")
        check_attribute(node.attr)
        self.makes_texts = self.makes_texts or node.attr in _TEMPLATES
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
        if callee == ("copy", "deepcopy") and (
            len(node.args) + len(node.keywords) > 1
            or any(isinstance(one, ast.Starred) for one in node.args)
        ):
            # What it takes besides is a table by addresses.
            raise Obstacle("it calls deepcopy with a memo")
        elif callee == ("random", "seed") and not (
            node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value
        ):
            raise Obstacle("it calls random.seed without a number to begin with")
        elif callee not in _FOR_CALLING:
            if isinstance(node.func, ast.Name) and node.func.id in _SHOWING:
                self._refuse_nameless(node.args)
                # Among them may be a file of its own, which is given texts.
                self.may_tell = self.may_tell or any(
                    keyword.arg is None for keyword in node.keywords
                )
            self.visit(node.func)
        for argument in (*node.args, *node.keywords):
            self.visit(argument)

    def _callee(self, node: ast.Call) -> tuple[str, str]:
        """Return the module and name of a library function that is called by name; two empty texts for any other."""
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
        """Return the module, and the name inside it, that a name may stand for; empty if it is the program's."""
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
            if alias.name not in (*MODULES, *PACKAGES, "sys") or (
                "." in alias.name and not alias.asname
            ):
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
            for name in _PUBLIC(module):
                # Whether the program uses it or not; what it uses is checked if it does.
                self._learn(name, (module, name))

    def _add(self, name: str, meaning: tuple[str, str]) -> None:
        check_name(name)
        self._learn(name, meaning)

    def _learn(self, name: str, meaning: tuple[str, str]) -> None:
        self._has_queue = self._has_queue or meaning[0] == "queue"
        known = self._imported.get(name) or (None if self._is_early else self._given.get(name))
        if known not in (None, meaning) or (name in _SPECIAL and not self._is_early):
            raise Obstacle(f"{name} is more than one thing")
        self._imported[name] = meaning
        if self._is_early:
            self._early.add(name)


def _check_is_value(module: str, name: str) -> None:
    if (module, name) in _FOR_CALLING:
        raise Obstacle(f"it uses {module}.{name} as a value")


def _is_plain_class(node: ast.ClassDef) -> bool:
    """Whether a class has plain names for bases and no `__hash__`, so that its objects may hash by their address."""
    own = {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
    return all(isinstance(base, ast.Name) for base in node.bases) and "__hash__" not in own


def _scope_of(node: Function | ast.ClassDef) -> _Scope:
    bound: set[str] = set()
    outer: set[str] = set()
    elsewhere: set[str] = set()
    for inner in _of_this_scope(node.body if isinstance(node.body, list) else [node.body]):
        if isinstance(inner, ast.Name):
            if not isinstance(inner.ctx, ast.Load):
                bound.add(inner.id)
        elif isinstance(inner, _BINDING):
            bound.add(getattr(inner, NAMING_FIELDS[type(inner)]) or "")
        elif isinstance(inner, ast.Nonlocal):
            outer.update(inner.names)
        elif isinstance(inner, ast.Global):
            elsewhere.update(inner.names)
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            elsewhere.update(alias.asname or alias.name for alias in inner.names)
    if isinstance(node, ast.ClassDef):
        # What a class binds is looked up outside by the functions in it, and in the module before it is bound.
        return _Scope(frozenset(), frozenset(elsewhere | bound))
    arguments = node.args
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    bound |= {argument.arg for argument in every if argument}
    return _Scope(frozenset(bound - elsewhere - outer), frozenset(elsewhere))


def _of_this_scope(body: Sequence[ast.AST]) -> list[ast.AST]:
    """Return the nodes that belong to a scope, without those inside its functions, classes and comprehensions."""
    found = [*body]
    # It grows on the way.
    for inner in found:
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            found += inner.decorator_list
        elif not isinstance(inner, _SCOPES):
            found += ast.iter_child_nodes(inner)
    return found


_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDING = (
    ast.FunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)


_CONSTANT = (
    ast.Constant,
    ast.Tuple,
    ast.UnaryOp,
    ast.BinOp,
    ast.unaryop,
    ast.operator,
    ast.expr_context,
)
_TARGET = (ast.Name, ast.Tuple, ast.expr_context)
_ANNOTATION = (*_CONSTANT, ast.Name, ast.Attribute, ast.Subscript, ast.List)
_SIGNATURE = (*_ANNOTATION, ast.arguments, ast.arg)


def binds_constants(code: str) -> bool:
    """Whether a program without an obstacle (`find_obstacle`) binds only functions, classes, constants; no `global`."""
    tree = parse(code)
    # Wherever the word stands: looking for the statement takes longer than a test.
    return "global" not in code and not isinstance(tree, str) and all(map(_is_fixed, tree.body))


def _is_fixed(statement: ast.stmt) -> bool:
    """Whether a statement in the body of a module or a class binds only imports, functions, classes, constants."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(args=args, returns=returns, decorator_list=[]):
            defaults = filter(None, (*args.defaults, *args.kw_defaults))
            return _consist_of(_CONSTANT, defaults) and _consist_of(
                _SIGNATURE, filter(None, (args, returns))
            )
        case ast.ClassDef(decorator_list=[], bases=bases, body=body):
            return all(isinstance(base, ast.Name) for base in bases) and all(map(_is_fixed, body))
        case ast.Assign(targets=targets, value=value):
            return _consist_of(_TARGET, targets) and _consist_of(_CONSTANT, [value])
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=ast.expr() as value):
            return _consist_of(_CONSTANT, [value]) and _consist_of(_ANNOTATION, [annotation])
    return False


def _consist_of(kinds: tuple[type, ...], trees: Iterable[ast.AST]) -> bool:
    return all(isinstance(node, kinds) for tree in trees for node in ast.walk(tree))
