"""How dense code is to read, in figures:
`python tests/density.py FOLDER...` prints them side by side.

Tokens a line and long lines move with the formatter. The rest does not: how much branching is
inside expressions, and how often a line does what two could say.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BRANCHING_STATEMENTS = (ast.If, ast.For, ast.While, ast.Try, ast.match_case)
_WIDEST = 100


def measure(folder: Path) -> dict[str, float]:
    """Return the figures of all Python files below a folder, by the names that are printed."""
    counts: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        counts.update(_count_lines(text, tree))
        counts.update(_count_nodes(tree))
    thousand_lines = counts["code lines"] / 1000
    inside = counts["branches in expressions"]
    return {
        "tokens a code line": counts["tokens"] / counts["code lines"],
        "branches in expressions a 100 statements": 100 * inside / counts["statements"],
        "% of branches inside expressions": 100 * inside / (inside + counts["branches"]),
        "ternaries a 1000 code lines": counts["ternaries"] / thousand_lines,
        "comprehensions a 1000 code lines": counts["comprehensions"] / thousand_lines,
        "a, b = x, y a 1000 code lines": counts["tuple assignments"] / thousand_lines,
        "walruses a 1000 code lines": counts["walruses"] / thousand_lines,
        "constants that share an assignment": counts["shared constants"],
        "lines over 100 characters": counts["long lines"],
        "% comment lines": 100 * counts["comment lines"] / counts["lines"],
        "% docstring lines": 100 * counts["docstring lines"] / counts["lines"],
    }


def _count_lines(text: str, tree: ast.Module) -> Counter[str]:
    """Count lines by kind, and the tokens of those that hold code."""
    documented = set(_docstring_lines(tree))
    tokens_on: Counter[int] = Counter()
    commented = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            commented.add(line)
        elif token.type not in _LAYOUT and line not in documented:
            tokens_on[line] += 1
    lines = text.splitlines()
    return Counter(
        {
            "lines": len(lines),
            "long lines": sum(len(line) > _WIDEST for line in lines),
            "code lines": len(tokens_on),
            "tokens": tokens_on.total(),
            "comment lines": len(commented - tokens_on.keys()),
            "docstring lines": len(documented),
        }
    )


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of texts that stand alone as statements, below a definition or a field."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _count_nodes(tree: ast.Module) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in tree.body:
        counts["shared constants"] += _is_tuple_assignment(node)
    for node in ast.walk(tree):
        counts["statements"] += isinstance(node, ast.stmt)
        counts["branches"] += isinstance(node, _BRANCHING_STATEMENTS)
        counts["tuple assignments"] += _is_tuple_assignment(node)
        counts["walruses"] += isinstance(node, ast.NamedExpr)
        if isinstance(node, ast.IfExp):
            counts["ternaries"] += 1
            counts["branches in expressions"] += 1
        elif isinstance(node, ast.BoolOp):
            counts["branches in expressions"] += len(node.values) - 1
        elif isinstance(node, _COMPREHENSIONS):
            counts["comprehensions"] += 1
            for generator in node.generators:
                counts["branches in expressions"] += 1 + len(generator.ifs)
    return counts


def _is_tuple_assignment(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return False
    return isinstance(node.value, ast.Tuple)


if __name__ == "__main__":
    columns = [measure(Path(folder)) for folder in sys.argv[1:]]
    for name in columns[0] if columns else ():
        values = [f"{column[name]:10.1f}" for column in columns]
        print(f"{name:42}", *values)
