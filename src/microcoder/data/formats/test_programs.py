"""Tests that are Python programs: read as they were published, to be run as they are.

Nothing is evaluated or cut here. What is read is which names a test takes from the answer, and
whether there is anything in it that cannot be judged. How such a test runs is said in
`judge/run/conversations.py`.
"""

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from microcoder.data.formats.assertions import NotACall, read_assertions, read_parameters
from microcoder.data.formats.candidates import Candidate, DecodedTests
from microcoder.data.formats.values import parse_python, shorten
from microcoder.judge.core.types import Assertions, TestCase
from microcoder.judge.languages.packages import known_modules

CANDIDATE = "candidate"
"""Name by which a test calls the function, besides the function's own."""
CHECK = re.compile(r"^def check\(", re.MULTILINE)
"""Begin of a test's function that is given the answer's."""
_ALWAYS_THERE = ("pytest", "solution")
"""Modules that a test finds: the part of pytest that tests of functions use, and the answer."""
_STAYS = frozenset(
    "argparse http multiprocessing queue sklearn socket sqlite3 sympy xml".split()  # noqa: SIM905
)
"""Modules whose objects a test passes to an answer, which cannot use them in another process."""
_STATE = frozenset({"sys.path", "sys.modules", "warnings.filters", "os.getcwd"})
"""What a test reads of its own process, to see what the answer has done there."""
_CLOCKS = re.compile(r"\bimport (?:time|timeit)\b")
"""Imports of a test that may measure how long a function takes."""
_OF_PYTEST = ("approx", "raises", "fail", "param", "main", "mark")
"""What there is of pytest."""
_COLLECTS = "\n\nimport pytest\n\npytest.main()\n"
"""End of a program whose tests pytest collects."""


def read_programs(
    sources: Sequence[str],
    *,
    fn_name: str,
    setup: str = "",
    prelude: str = "",
) -> DecodedTests:
    """Return tests that are these programs.

    Args:
        sources: a program a test.
        fn_name: the function that they call, by this name or as `candidate`.
        setup: what runs first in the answer's module and in the test's.
        prelude: what runs before each test in its own module only.

    Raises:
        NotACall: one cannot be judged, and why.
    """
    names: dict[str, None] = {}
    tests = []
    _check_imports(parse_test(setup))
    for source in sources:
        program = f"{prelude}\n{source}" if prelude else source
        tree = parse_test(program)
        _check_imports(tree)
        _check_state(tree)
        _check_clocks(tree, setup)
        if _is_collected(tree):
            _check_collected(tree)
            program += _COLLECTS
        taken = _find_taken(tree, setup)
        if not _calls(tree, fn_name, taken):
            raise NotACall(f"it never calls {fn_name}: {shorten(source, 80)}")
        names |= dict.fromkeys(taken)
        tests.append(TestCase(input="", output=program))
    for name in (fn_name, CANDIDATE):
        names.pop(name, None)
    assertions = Assertions(setup=setup, names=tuple(names))
    return DecodedTests(tuple(tests), fn_name, assertions=assertions)


def read_as_published(
    sources: Sequence[str],
    fn_name: str,
    setup: str,
    given_by: str | None,
) -> DecodedTests:
    """Return tests that are these programs; NotACall if one cannot be judged.

    Args:
        given_by: code that must define what the tests take from an answer, and each program is a
            test if it can stand alone. None: they are one test, and take what they will.
    """
    together = "\n".join(sources)
    # The call that is added below says nothing.
    if CHECK.search(together) and not _calls(parse_test(together), fn_name, ()):
        raise NotACall(f"it never calls {fn_name}: {shorten(together, 80)}")
    whole = [call_check(together)]
    if given_by is None:
        return read_programs(whole, fn_name=fn_name, setup=setup)
    decoded: DecodedTests | None = None
    if len(sources) > 1:
        with suppress(NotACall):
            decoded = read_programs(sources, fn_name=fn_name, setup=setup)
    decoded = decoded or read_programs(whole, fn_name=fn_name, setup=setup)
    taken = decoded.assertions.names if decoded.assertions is not None else ()
    missing = set(taken) - find_bound(parse_test(given_by))
    if missing:
        raise NotACall(f"nothing defines {min(missing)}")
    return decoded


def list_calls(candidate: Candidate) -> tuple[TestCase, ...]:
    """Return a problem's tests with their inputs.

    Of tests that are programs these are the assertions that are calls of the function.
    """
    if candidate.assertions is None or candidate.fn_name is None:
        return candidate.tests
    source = "\n".join(test.output for test in candidate.tests)
    parameters = read_parameters(candidate.starter_code or "", candidate.fn_name)
    called = (candidate.fn_name, CANDIDATE)
    return read_assertions(source, called=called, parameters=parameters).tests


def call_check(source: str) -> str:
    """Return a program with a call of its `check(candidate)` at its end, if it defines one."""
    if CHECK.search(source) is None:
        return source
    return f"{source}\n\ncheck({CANDIDATE})\n"


def parse_test(source: str) -> ast.Module:
    """Return the syntax tree of a test's code; NotACall if it is not Python."""
    tree = parse_python(source)
    if tree is None:
        raise NotACall(f"it is not Python: {shorten(source, 80)}")
    return tree


def find_called(source: str, code: str = "") -> list[str]:
    """Return names that assertions call, in order.

    They are functions of `code`, or names that are neither bound in `source` nor built in.
    """
    tree = parse_python(source)
    if tree is None:
        return []
    solution = parse_python(code) or ast.Module([], [])
    defined = {node.name for node in solution.body if isinstance(node, ast.FunctionDef)}
    bound = find_bound(tree)
    names: dict[str, None] = {}
    for test in ast.walk(tree):
        if isinstance(test, ast.Assert):
            for node in ast.walk(test):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    names[node.func.id] = None
    called = []
    for name in names:
        is_known = name in bound or hasattr(builtins, name)
        # A solution may define a function by the name of a built-in one.
        if name in defined or not is_known:
            called.append(name)
    return called


def list_imports(source: str) -> str:
    """Return the import statements at the top of a program, as source."""
    tree = parse_python(source) or ast.Module([], [])
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, imports))


def find_bound(tree: ast.AST) -> set[str]:
    """Return the names that a program binds anywhere."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
    return bound


def _find_taken(tree: ast.Module, setup: str) -> list[str]:
    """Return the names that a test takes from the answer: those that nothing else binds."""
    bound = find_bound(tree) | find_bound(parse_test(setup))
    taken: dict[str, None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                if name not in bound and not hasattr(builtins, name):
                    taken[name] = None
            case ast.ImportFrom(module="solution", names=aliases):
                taken |= {alias.name: None for alias in aliases if alias.name != "*"}
    taken.pop("__file__", None)
    return list(taken)


def _calls(tree: ast.Module, fn_name: str, taken: Iterable[str]) -> bool:
    """Whether a test uses the function, by whichever name."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return bool(used & {fn_name, CANDIDATE, *taken})


def _check_imports(tree: ast.Module) -> None:
    """Raise NotACall if a test needs a package that no profile has."""
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [str(node.module)]
        for module in modules:
            root = module.split(".")[0]
            if root in _STAYS:
                raise NotACall(f"it uses {root}, whose objects cannot cross to an answer's process")
            is_known = root in sys.stdlib_module_names or root in known_modules()
            if not is_known and root not in _ALWAYS_THERE:
                raise NotACall(f"it imports {root}, which is in no profile of packages")


def _check_state(tree: ast.Module) -> None:
    """Raise NotACall if a test looks for what an answer does to its own process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
        else:
            continue
        if name in _STATE or name in ("globals", "locals"):
            raise NotACall(f"it reads {name} of its process, and the answer runs in another")


def _check_clocks(tree: ast.Module, setup: str) -> None:
    """Raise NotACall if a test has a function of its own timed: its calls cross to its process."""
    imports = f"{list_imports(setup)} {list_imports(ast.unparse(tree))}"
    if not _CLOCKS.search(imports):
        return
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        given = {argument.id for argument in node.args if isinstance(argument, ast.Name)}
        if node.func.id != "check" and given & own:
            raise NotACall(f"it has {node.func.id} time a function of the test")


def _is_collected(tree: ast.Module) -> bool:
    """Whether a program is a file of pytest's, which defines tests and runs none."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            return True
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            return True
    return False


def _check_collected(tree: ast.Module) -> None:
    """Raise NotACall if a file of pytest's uses what there is not."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="pytest"), attr=name):
                if name not in _OF_PYTEST:
                    raise NotACall(f"it uses pytest.{name}")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="pytest")), attr=name):
                if name != "parametrize":
                    raise NotACall(f"it uses pytest.mark.{name}")
            case ast.FunctionDef(name=name, args=ast.arguments(args=[*arguments])):
                names = [argument.arg for argument in arguments if argument.arg != "self"]
                if name.startswith("test") and names and not node.decorator_list:
                    raise NotACall(f"{name} takes fixtures of pytest: {', '.join(names)}")
