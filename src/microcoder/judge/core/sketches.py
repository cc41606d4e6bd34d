"""What a piece of code can be, told from its source without running it: a program, an example, an output, prose."""

import ast
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from microcoder.judge.core.syntax import try_parse

_HEAD = r"[^;{}]{0,200}\{"
_ENTRY = re.compile(rf"\bmain\s*\([^;{{}}]{{0,200}}\){_HEAD}|\bclass\s+\w{_HEAD}")
_READS, _WRITES = (
    re.compile(r"\brequire\s*\(|\bstdin\b|readFileSync|readline"),
    re.compile(r"console\.log|print|write|stdout"),
)
"""A JavaScript program has no entry point: it counts as whole if both patterns are found."""
_ABRIDGED = re.compile(
    r"^[ \t]*+(?:(?:def|class) .*:)?[ \t]*+(?:#|//)?[ \t]*+(?:\.{3}|…)(?![^\s(a-z])", re.MULTILINE
)
"""A placeholder for omitted code: a line `...`, or a comment that begins so; not the row of a map, such as `...#`."""
_SHELL_LINE = re.compile(
    r"[ \t]*(?:[$%] +\S|[!%](?:pip|python|cd|ls)\b|(?:sudo +)?(?:pip3?|python3?|pypy3?|conda|uv|poetry|npm|npx|node"
    r"|yarn|apt(?:-get)?|brew|g\+\+|gcc|clang(?:\+\+)?|javac?|make|cmake|cd|ls|echo|cat|bash|sh|export|source|git|docker"
    r"|chmod|pytest|curl|wget|mkdir) +[\w./<\"'$~-]|\./[\w.]+)"
)
"""A line of a shell, with or without its prompt."""
_SHOWN_LINE = re.compile(
    r"[ \t]*(?:>>> |In \[\d+\]:|Traceback \(most recent call last\)|[A-Z]\w*Error: )"
)
"""The first line of an interactive session, or of an error's report."""
_CODE_LINE = re.compile(
    r"[ \t]*(?:(?:import|from) +[\w.]|(?:async +)?def +\w|class +\w|@\w|(?:for|while|if|elif|with|except)\b.*:|"
    r"(?:else|try|finally)[ \t]*:|return\b|yield\b|raise\b|(?:break|continue|pass)[ \t]*$|#"
    r"|[\w.,\[\]'\"() *]+[-+*/%|&^]?=[^=]|[\w.]+\(|[\])}])"
)
"""A line that begins as Python does."""
_LABEL = re.compile(r"[A-Z][\w ]*:(?: |$)")


def reads_as_code(text: str) -> bool:
    """Whether most lines of a text are written like Python, whether or not it compiles."""
    lines = [line for line in text.splitlines() if line.strip()]
    num_code = sum(_CODE_LINE.match(line) is not None for line in lines)
    return bool(lines) and _CODE_LINE.match(lines[0]) is not None and 2 * num_code > len(lines)


def cannot_be_program(code: str, language: str, *, is_compiled: bool) -> bool:
    """Whether a block is surely none: shell lines, a session, a diff, JSON, values, words.

    Args:
        is_compiled: it compiles as Python; a program that does not may still be one.
    """
    if _is_json(code):
        return True
    lines = [line for line in code.splitlines() if line.strip()]
    if is_compiled:
        return not lines or _are_values(code) or _are_signed(code)
    if not lines or _SHELL_LINE.match(lines[0]) or _SHOWN_LINE.match(lines[0]):
        return True
    signs = {line[0] for line in lines}
    if {"+", "-"} <= signs or any(line.startswith(("@@ ", "+++ ")) for line in lines):
        return True
    if language != "python":
        return not re.search(r"[;{}()=]", code)
    return not any(_CODE_LINE.match(line) and not _LABEL.match(line) for line in lines)


def _is_json(code: str) -> bool:
    text = code.strip()
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _are_values(code: str) -> bool:
    """Whether code that compiles only names values, as an output does: `YES`, `[1, 2]`, `3`."""
    tree = try_parse(code)
    if tree is None or not tree.body:
        return False
    shown = (ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)
    return all(isinstance(node, ast.Expr) and isinstance(node.value, shown) for node in tree.body)


def _are_signed(code: str) -> bool:
    """Whether code that compiles is a diff: some of its statements begin with a plus, others with a minus."""
    tree = try_parse(code)
    signs = set[type]()
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.UnaryOp):
            signs.add(type(node.value.op))
    return {ast.UAdd, ast.USub} <= signs


@dataclass(frozen=True, slots=True)
class Sketch:
    """Traits of a block's code, found in its source without running it."""

    acts: bool = False
    """Whether running the code has an effect: a sample output such as `[1, 2]` compiles, but has none."""
    stands: bool = False
    """Whether it can be a program: it defines something, or reads and writes. False for lines that only show how to
    use one, a method without its class, and code abridged by `...`."""
    is_whole: bool = False
    """Whether it is a full program: reads input; in JavaScript also prints; in others has a class or `main`."""
    defines: Mapping[str, list[str]] = field(default_factory=dict)
    """Names of the functions and classes it defines -> their source lines, without comments."""
    uses: frozenset[str] = frozenset()
    """Names used but not bound in an enclosing scope, or imported from a module outside the standard library."""


def sketch(code: str, language: str) -> Sketch:
    """Return the traits of a block's code; if not Python, `{` counts as a definition, `;` as a statement."""
    is_abridged = bool(_ABRIDGED.search(code))
    if language != "python":
        signs = (_READS, _WRITES) if language == "javascript" else (_ENTRY,)
        is_whole = not is_abridged and all(sign.search(code) for sign in signs)
        return Sketch(is_whole or "{" in code or ";" in code, is_whole or "{" in code, is_whole)
    tree = (
        None if code.lstrip()[:1] in ("+", "-") else try_parse(code)
    )  # Those begin the lines of a diff.
    if tree is None:
        return Sketch()
    acts, defines, lines = False, {}, [line.partition("#")[0].strip() for line in code.split("\n")]
    for node in tree.body:
        match node:
            case (
                ast.FunctionDef(args=ast.arguments(args=[ast.arg("self"), *_]))
                | ast.Import()
                | ast.ImportFrom()
            ):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                defines[node.name] = [*filter(None, lines[node.lineno - 1 : node.end_lineno])]
            case ast.Expr(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
                acts = acts or any(
                    isinstance(inner, (ast.Call, ast.Lambda)) for inner in ast.walk(value or node)
                )
            case _:
                acts = True
    uses = _find_uses(tree)
    is_reading = not uses.isdisjoint(("input", "open", "fileinput", "stdin")) or any(
        map(_is_reading, ast.walk(tree))
    )
    stands = bool(defines) or (acts and is_reading and bool(_WRITES.search(code)))
    return Sketch(acts, stands and not is_abridged, acts and is_reading, defines, uses)


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
    """Return the names used but not bound in an enclosing scope, or imported from outside the standard library."""
    uses, scopes = set[str](), [(tree, frozenset[str]())]
    while scopes:
        scope, around = scopes.pop()
        loaded, bound, inside, nodes = set[str](), set[str](), [], [*ast.iter_child_nodes(scope)]
        while nodes:
            node = nodes.pop()
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    loaded.add(name)
                case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                    bound.add(name)
                case ast.ImportFrom(module=module, names=names):
                    is_known = (module or "").partition(".")[0] in sys.stdlib_module_names
                    (bound if is_known else uses).update(alias.name for alias in names)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    bound.add(node.name)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                inside.append(node)
            else:
                nodes += ast.iter_child_nodes(node)
        known = around | bound
        uses |= loaded - known
        scopes += [(one, known) for one in inside]
    return frozenset(uses)
