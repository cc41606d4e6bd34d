"""Programs that do all their work in a thread, and are screened as if they called it.

Programs often start a thread as the last thing they do, for a larger stack. Read by the screen
(`screen.py`) alone, before it walks a program's tree.
"""

import ast
import re
from functools import cache
from keyword import iskeyword

from microcoder.judge.sandbox.batch import MODULES
from microcoder.judge.sandbox.functions import public_names

PUBLIC_NAMES = cache(public_names)
"""Returns the names that `import *` brings of a module."""
_THREAD = re.compile(r"threading\.Thread\(target=(\w+)\)\.start\(\)")
"""A thread that is started and not kept."""
_STACK_SIZE = re.compile(r"threading\.stack_size\([\d\s()*+/%<>&|^~-]+\)")
"""A setting of the stack size by a number."""


def call_in_place_of_thread(tree: ast.Module) -> None:
    """Make a thread that a program starts at its end a call of the thread's function.

    It is written `threading.Thread(target=main).start()`, and becomes `main()`.
    Nothing runs beside such a thread: the main one waits for its end, as the interpreter does, and
    the process then joins it before the test ends. So what the program may do is what it may do in
    a call. Programs often have it for a larger stack, which `threading.stack_size` asks for.
    Whatever else names the module is refused as before.
    """
    block = _last_block(tree)
    start = _THREAD.fullmatch(ast.unparse(block[-1])) if block else None
    imports = _imports_of_threading(tree)
    if start is None or not imports or iskeyword(start[1]):
        return
    target = start[1]
    for body in (tree.body, block):
        body[:] = [statement for statement in body if not _sets_stack_size(statement)]
    block[-1:] = [
        ast.Expr(
            ast.Call(
                ast.Name(target, ast.Load()),
                [],
                [],
            )
        )
    ]
    for node, alias in imports:
        node.names = [other for other in node.names if other is not alias]
    # Looked at without these imports, which name the module for the thread alone.
    if _is_plain_main(tree, target):
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import) or node.names]
        return
    # Put back, so that the screen finds what it refuses.
    for node, alias in imports:
        node.names = [alias]


def _last_block(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that a program ends with.

    They are its own, or those of a last `if` without `else`.
    """
    block = tree.body
    while block and isinstance(block[-1], ast.If) and not block[-1].orelse:
        block = block[-1].body
    return block


def _imports_of_threading(tree: ast.Module) -> list[tuple[ast.Import, ast.alias]]:
    """Return the statements `import threading` of a module's body, each with that name of it."""
    imports = []
    for node in tree.body:
        if not isinstance(node, ast.Import):
            continue
        for alias in node.names:
            if (alias.name, alias.asname) == ("threading", None):
                imports.append((node, alias))
    return imports


def _sets_stack_size(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return _STACK_SIZE.fullmatch(ast.unparse(statement)) is not None


def _is_plain_main(tree: ast.Module, target: str) -> bool:
    """Whether neither `target` nor `threading` stands for anything else, wherever it stands.

    The target is a function of the module, whose name may only be read besides.
    """
    names = []
    for node in ast.walk(tree):
        names += _names_in(node)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if target not in functions or names.count(target) != 1:
        return False
    return "threading" not in names


def _names_in(node: ast.AST) -> list[str]:
    """Return the names in a node's own fields, without a variable that is read.

    For `import *` these are the names that it binds.
    """
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        if node.module in MODULES:
            return list(PUBLIC_NAMES(node.module or ""))
        # It may bind any name, so it counts as binding the one that is refused.
        return ["threading"]
    if isinstance(node, ast.Name) and node.id != "threading":
        is_read = isinstance(node.ctx, ast.Load)
        return [] if is_read else [node.id]
    names = []
    for _, value in ast.iter_fields(node):
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str):
                names.append(word.partition(".")[0])
    return names
