"""What a piece of code can be: a program, an example, an output, prose.

The source is looked at, not run. `sketch` returns the traits of a block's code; `cannot_be_program`
recognises text that is certainly no program.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from microcoder.judge.core.syntax import try_parse

# Bounded, so that a hostile text without a brace takes no quadratic time.
_HEAD = r"[^;{}]{0,200}\{"
"""The rest of a head in C++ or Java, up to the brace that opens the body."""
_ENTRY = re.compile(rf"\bmain\s*\([^;{{}}]{{0,200}}\){_HEAD}|\bclass\s+\w{_HEAD}")
"""An entry point in C++ or Java, or a class."""
_READS = re.compile(r"\brequire\s*\(|\bstdin\b|readFileSync|readline")
"""A JavaScript program that reads its input."""
_WRITES = re.compile(r"console\.log|print|write|stdout")
"""A JavaScript or Python program that writes an output."""
_SIGNS_OF_PROGRAM: Mapping[str, Sequence[re.Pattern[str]]] = {
    "javascript": (_READS, _WRITES),
}
"""Language -> patterns that are all found in a full program; others have an entry point."""
_ABRIDGED = re.compile(
    r"^[ \t]*+(?:(?:def|class) .*:)?[ \t]*+(?:#|//)?[ \t]*+(?:\.{3}|…)(?![^\s(a-z])", re.MULTILINE
)
"""A placeholder for omitted code: a line `...`, or a comment that begins so.

The row of a map, such as `...#`, is none.
"""
_SHELL_LINE = re.compile(
    r"[ \t]*(?:[$%] +\S|[!%](?:pip|python|cd|ls)\b|(?:sudo +)?"
    r"(?:pip3?|python3?|pypy3?|conda|uv|poetry|npm|npx|node|yarn|apt(?:-get)?|brew"
    r"|g\+\+|gcc|clang(?:\+\+)?|javac?|make|cmake|cd|ls|echo|cat|bash|sh|export|source|git|docker"
    r"|chmod|pytest|curl|wget|mkdir) +[\w./<\"'$~-]|\./[\w.]+)"
)
"""A line of a shell, with or without its prompt."""
_SHOWN_LINE = re.compile(
    r"[ \t]*(?:>>> |In \[\d+\]:|Traceback \(most recent call last\)|[A-Z]\w*Error: )"
)
"""The first line of an interactive session, or of an error's report."""
_CODE_LINE = re.compile(
    r"[ \t]*(?:(?:import|from) +[\w.]|(?:async +)?def +\w|class +\w|@\w"
    r"|(?:for|while|if|elif|with|except)\b.*:|"
    r"(?:else|try|finally)[ \t]*:|return\b|yield\b|raise\b|(?:break|continue|pass)[ \t]*$|#"
    r"|[\w.,\[\]'\"() *]+[-+*/%|&^]?=[^=]|[\w.]+\(|[\])}])"
)
"""A line that begins as Python does."""
_LABEL = re.compile(r"[A-Z][\w ]*:(?: |$)")
"""A label of prose, such as `Output:`, that looks like the head of a statement."""
_DIFF_HEADS = ("@@ ", "+++ ")
"""How lines begin that only a diff has."""
_SHOWN_NODES = (
    ast.Constant,
    ast.Name,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.UnaryOp,
    ast.BinOp,
)
"""Expressions that an output may look like."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that define a function or a class."""
_SCOPES = (*_DEFINITIONS, ast.Lambda)
"""Nodes with names of their own."""
_READING_NAMES = frozenset(("input", "open", "fileinput", "stdin"))
"""Names by which a Python program reads its input."""


def reads_as_code(text: str) -> bool:
    """Whether most lines of a text are written like Python, whether or not it compiles."""
    lines = _filled_lines(text)
    if not lines or _CODE_LINE.match(lines[0]) is None:
        return False
    num_code = sum(_CODE_LINE.match(line) is not None for line in lines)
    return 2 * num_code > len(lines)


def _filled_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def cannot_be_program(code: str, language: str, *, is_compiled: bool) -> bool:
    """Whether a block is certainly no program: shell lines, a session, a diff, JSON, values or
    words.

    Args:
        code: the block's code.
        language: the problem's language.
        is_compiled: it compiles as Python; a program that does not may still be one.
    """
    if _is_json(code):
        return True
    lines = _filled_lines(code)
    if is_compiled:
        return not lines or _are_values(code) or _are_signed(code)
    if not lines or _SHELL_LINE.match(lines[0]) or _SHOWN_LINE.match(lines[0]):
        return True
    if _is_diff(lines):
        return True
    if language != "python":
        return not re.search(r"[;{}()=]", code)
    return not any(map(_is_code_line, lines))


def _is_code_line(line: str) -> bool:
    return _CODE_LINE.match(line) is not None and _LABEL.match(line) is None


def _is_diff(lines: Sequence[str]) -> bool:
    signs = {line[0] for line in lines}
    # Lines of a program begin with one of them only where an expression goes on.
    if {"+", "-"} <= signs:
        return True
    return any(line.startswith(_DIFF_HEADS) for line in lines)


def _is_json(code: str) -> bool:
    text = code.strip()
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    # A text of thousands of brackets exhausts the parser, and is no program for that.
    except (ValueError, RecursionError):
        return False
    return True


def _are_values(code: str) -> bool:
    """Whether code that compiles only names values, as an output does: `YES`, `[1, 2]`, `3`."""
    tree = try_parse(code)
    if tree is None or not tree.body:
        return False
    return all(isinstance(node, ast.Expr) and _is_shown(node.value) for node in tree.body)


def _is_shown(expression: ast.expr) -> bool:
    return isinstance(expression, _SHOWN_NODES)


def _are_signed(code: str) -> bool:
    """Whether code that compiles is a diff.

    Some of its statements begin with a plus, others with a minus.
    """
    tree = try_parse(code)
    if tree is None:
        return False
    signs = set[type]()
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.UnaryOp):
            signs.add(type(node.value.op))
    return {ast.UAdd, ast.USub} <= signs


@dataclass(frozen=True, slots=True)
class Sketch:
    """Traits of a block's code, found in its source without running it."""

    acts: bool = False
    """Running the code has an effect: a sample output such as `[1, 2]` compiles, but has none."""
    stands: bool = False
    """It can be a program: it defines something, or reads and writes.

    False for lines that only show how to use one, a method without its class, and code abridged by
    `...`.
    """
    is_whole: bool = False
    """It is a full program.

    It reads input; in JavaScript it also prints; in others it has a class or `main`.
    """
    defines: Mapping[str, list[str]] = field(default_factory=dict)
    """Names of the functions and classes it defines -> their source lines, without comments."""
    uses: frozenset[str] = frozenset()
    """Names used but not bound in an enclosing scope, or imported from a module outside the
    standard library."""


def sketch(code: str, language: str) -> Sketch:
    """Return the traits of a block's code.

    If it is not Python, `{` counts as a definition, `;` as a statement.
    """
    is_abridged = _ABRIDGED.search(code) is not None
    if language != "python":
        return _sketch_other(code, language, is_abridged=is_abridged)
    # A sign before an expression is valid Python, too.
    if code.lstrip()[:1] in ("+", "-"):
        return Sketch()  # Those begin the lines of a diff.
    tree = try_parse(code)
    if tree is None:
        return Sketch()
    uses = _find_uses(tree)
    acts = _acts(tree)
    defines = _find_definitions(tree, code)
    reads_by_name = not uses.isdisjoint(_READING_NAMES)
    is_reading = reads_by_name or any(map(_is_reading, ast.walk(tree)))
    is_acting_program = acts and is_reading and _WRITES.search(code) is not None
    return Sketch(
        acts=acts,
        stands=(bool(defines) or is_acting_program) and not is_abridged,
        is_whole=acts and is_reading,
        defines=defines,
        uses=uses,
    )


def _sketch_other(code: str, language: str, *, is_abridged: bool) -> Sketch:
    signs = _SIGNS_OF_PROGRAM.get(language, (_ENTRY,))
    is_whole = not is_abridged and all(sign.search(code) for sign in signs)
    has_body = "{" in code
    return Sketch(
        acts=is_whole or has_body or ";" in code,
        stands=is_whole or has_body,
        is_whole=is_whole,
    )


def _find_definitions(tree: ast.Module, code: str) -> dict[str, list[str]]:
    """Return the names that a module defines, with their source lines without comments."""
    # A `#` in a string is cut, too, but alike in both blocks that are compared.
    lines = [line.partition("#")[0].strip() for line in code.split("\n")]
    definitions: dict[str, list[str]] = {}
    for node in tree.body:
        if not isinstance(node, _DEFINITIONS) or _is_lone_method(node):
            continue
        own_lines = lines[node.lineno - 1 : node.end_lineno]
        definitions[node.name] = [line for line in own_lines if line]
    return definitions


def _is_lone_method(node: ast.stmt) -> bool:
    """Whether a statement of a module is a method that lacks its class."""
    match node:
        case ast.FunctionDef(args=ast.arguments(args=[ast.arg("self"), *_])):
            return True
    return False


def _acts(tree: ast.Module) -> bool:
    """Whether running a module has an effect: it does more than import, define and name values."""
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Expr(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
                if _calls_something(value or node):
                    return True
            case _:
                return True
    return False


def _calls_something(node: ast.AST) -> bool:
    return any(isinstance(inner, (ast.Call, ast.Lambda)) for inner in ast.walk(node))


def _is_reading(node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(attr="stdin")
            | ast.Attribute(ast.Name("os"), "read")
            | ast.alias("stdin" | "input")
        ):
            return True
    return False


def _find_uses(tree: ast.Module) -> frozenset[str]:
    """Return the names used but not bound in an enclosing scope.

    Names imported from outside the standard library are among them.
    """
    uses = set[str]()
    scopes: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while scopes:
        scope, around = scopes.pop()
        names = _Names(scope)
        known = around | names.bound
        uses |= names.imported
        uses |= names.loaded - known
        for inner in names.scopes:
            scopes.append((inner, known))
    return frozenset(uses)


class _Names:
    """The names of one scope, without those of the scopes inside it."""

    def __init__(self, scope: ast.AST) -> None:
        self.loaded = set[str]()
        """Names that it uses."""
        self.bound = set[str]()
        """Names that it binds."""
        self.imported = set[str]()
        """Names imported from outside the standard library, which are not bound."""
        self.scopes: list[ast.AST] = []
        """The scopes inside it."""
        for node in self._walk(scope):
            self._read(node)

    def _walk(self, scope: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes of a scope; of the scopes inside it only their heads."""
        nodes = list(ast.iter_child_nodes(scope))
        while nodes:
            node = nodes.pop()
            yield node
            if isinstance(node, _SCOPES):
                self.scopes.append(node)
            else:
                nodes += ast.iter_child_nodes(node)

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self.loaded.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                self.bound.add(name)
            case ast.ImportFrom(module=module, names=aliases):
                package = (module or "").partition(".")[0]
                is_known = package in sys.stdlib_module_names
                # `from solution import solve` uses the block before, which is no module of the
                # library.
                names = self.bound if is_known else self.imported
                names.update(alias.name for alias in aliases)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.bound.add(node.name)
