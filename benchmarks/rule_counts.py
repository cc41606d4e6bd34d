"""How many rows of public sets each branch, pattern and table entry of reading, cleaning and comparing is used for.

    python benchmarks/rule_counts.py FOLDER -o counts.json        # FOLDER holds kodsport/, mbpp/ and so on, unpacked

The modules are imported with a call at the head of every branch; the patterns and tables that they keep count what
they find, alternative by alternative. A row is read, cleaned, put to the quality rules, and its expected outputs are
compared with themselves and with each other.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

COUNTED = tuple(
    f"microcoder.{name}" for name in ("data.clean.", "data.formats.", "data.filter.rules", "judge.compare.")
)
DOOCS = f"{Path(__file__).parents[1]}/examples/extensions/doocs.py:doocs"
SETS = {"kodsport": "kattis", "doocs": DOOCS, "humaneval_xl": "humaneval", "apps_sample": "apps_folder",
        "lcb_eval": "livecodebench", "codecontests_test": "humaneval", "google": "kattis"}  # fmt: skip
SETS |= {name: name for name in ("leetcodedataset", "deepseek_leetcode", "humaneval", "mbpp", "odex")}
MATCHING = ("search", "match", "fullmatch", "sub", "subn", "finditer", "findall", "split")
HITS: set[str] = set()
"""Everything that the row at hand has used."""
KNOWN: set[str] = set()
"""Everything that is counted."""


def hit(name: str, value: object = None) -> object:
    """Note that a branch was taken, and return its value."""
    HITS.add(name)
    return value


class Marker(ast.NodeTransformer):
    """Puts a call at the head of every branch."""

    def __init__(self, module: str) -> None:
        self.module = module.removeprefix("microcoder.")

    def _call(self, node: ast.AST, said: str, *value: ast.expr) -> ast.Call:
        name = f"{self.module}:{getattr(node, 'lineno', 0)} {' '.join(said.split())[:70]}"
        KNOWN.add(name)
        return ast.Call(ast.Name("_hit_", ast.Load()), [ast.Constant(name), *value], [])

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Mark bodies of functions, branches, loops and handlers, and both sides of a conditional expression."""
        super().generic_visit(node)
        if isinstance(node, ast.IfExp):
            node.body = self._call(node.body, f"then {ast.unparse(node.body)}", node.body)
            node.orelse = self._call(node.orelse, f"else {ast.unparse(node.orelse)}", node.orelse)
        elif isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.ExceptHandler | ast.match_case):
            for body in filter(None, (node.body, getattr(node, "orelse", []))):
                is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
                said = f"def {node.name}" if isinstance(node, ast.FunctionDef) else ast.unparse(body[0])
                body.insert(int(is_text), ast.Expr(self._call(body[0], said)))
        return node


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the counted modules with their marks."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return the specification of a counted module."""
        if not name.startswith(COUNTED):
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        is_module = spec is not None and not spec.submodule_search_locations
        return importlib.util.spec_from_file_location(name, spec.origin, loader=self) if spec and is_module else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the marked source; then let its patterns and tables count."""
        tree = Marker(module.__name__).visit(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")))
        vars(module)["_hit_"] = hit
        exec(compile(ast.fix_missing_locations(tree), str(module.__file__), "exec"), vars(module))
        for name, value in list(vars(module).items()):
            label = f"{module.__name__.removeprefix('microcoder.')}:{name}"
            if isinstance(value, re.Pattern):
                setattr(module, name, Pattern(label, value))
            elif (
                name.isupper()
                and type(value) in (dict, MappingProxyType)
                and all(isinstance(key, str) for key in value)
            ):
                setattr(module, name, Table(value))
                vars(module)[name].label = label
                KNOWN.update(f"{label}[{key}]" for key in value)


class Pattern:
    """A pattern that notes which of its alternatives was found."""

    def __init__(self, label: str, pattern: re.Pattern[str]) -> None:
        self.pattern, self.found = pattern, {pattern: label}
        for text in alternatives(pattern.pattern):
            with contextlib.suppress(re.error):  # a group that another alternative refers to
                self.found[re.compile(text, pattern.flags & ~re.UNICODE)] = f"{label} {' '.join(text.split())[:90]}"
        KNOWN.update(self.found.values())

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.pattern, name)

        def call(*given: Any, **named: Any) -> Any:
            result = found(*given, **named)
            is_one = name in ("match", "fullmatch")
            for one in [result] if is_one else self.pattern.finditer(given[name in ("sub", "subn")]):
                if one is not None:
                    HITS.update(
                        label for pattern, label in self.found.items() if pattern.match(one.string, one.start())
                    )
            return result

        return call if name in MATCHING else found


class Table(dict[str, Any]):
    """A table that notes which of its entries were looked up."""

    label = ""

    def __getitem__(self, key: str) -> Any:
        HITS.add(f"{self.label}[{key}]")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an entry."""
        HITS.add(f"{self.label}[{key}]")
        return super().get(key, default)


def alternatives(text: str) -> list[str]:
    """Return a pattern once for each alternative of the whole, or of its longest group that has some."""
    spans, opened, at = [], [[0]], 0
    while at < len(text):
        if text[at] == "[" and (closed := re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]").match(text, at)):
            at = closed.end() - 1
        elif text[at] == "(":
            opened.append([at + (3 if text.startswith("?:", at + 1) else 1)])
        elif text[at] == "|":
            opened[-1].append(at + 1)
        elif text[at] == ")":
            spans.append((opened.pop(), at))
        at += 2 if text[at] == "\\" else 1
    spans = [span for span in (*spans, (opened[0], len(text))) if len(span[0]) > 1]
    starts, end = max(spans, key=lambda span: span[1] - span[0][0], default=([0], 0))
    ends = [*(start - 1 for start in starts[1:]), end]
    return [text[: starts[0]] + text[a:b] + text[end:] for a, b in zip(starts, ends, strict=True) if end]


def read_rows(folder: Path) -> Iterator[str]:
    """Put each row through everything; yield its set once the row is done."""
    from microcoder.data.clean import process
    from microcoder.data.filter.rules import RULES, QualitySettings
    from microcoder.data.formats.candidates import Candidate
    from microcoder.data.formats.rows import read_problem
    from microcoder.data.sources import collect_row, list_shards, open_source, read_shard
    from microcoder.judge.compare.compare import compare_output, compare_value

    for name, source in ((name, open_source(folder / name, SETS[name])) for name in SETS if (folder / name).exists()):
        for row in (row for shard in list_shards(source, 100) for row in read_shard(source, shard)):
            HITS.clear()
            if isinstance(candidate := collect_row(source, row), Candidate):
                outputs = [test.output for test in candidate.tests[:6]]
                for pair in zip(outputs * 2, outputs + outputs[1:] + outputs[:1], strict=True):
                    with contextlib.suppress(ValueError):  # a checker program, or no JSON
                        if candidate.fn_name:
                            compare_value(json.loads(pair[0]), json.loads(pair[1]), candidate.checker)
                        else:
                            compare_output(*pair, candidate.checker)
                cleaned = process(candidate)
                for rule in RULES:
                    rule(cleaned if isinstance(cleaned, Candidate) else candidate, QualitySettings())
            if source.format.folders is None and row.values is not None:
                with contextlib.suppress(ValueError):  # a row that cannot be judged whole
                    read_problem(dict(row.values))
            yield name


def main() -> None:
    """Count, write the counts, and print how many are rare in each room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    sys.meta_path.insert(0, Finder())
    compiled: Any = vars(re)["_compile"]
    vars(re)["_compile"] = lambda text, flags: compiled(text.pattern if isinstance(text, Pattern) else text, flags)
    counts: Counter[str] = Counter()
    sets: Counter[str] = Counter()
    for name in read_rows(asked.folder):
        sets[name] += 1
        counts.update(HITS)
    found = {name: counts[name] for name in sorted(KNOWN)}
    asked.output.write_text(json.dumps({"rows": sets, "counts": found}, indent=1, ensure_ascii=False))
    print("| room | counted | for fewer than one row in 1,000 | for none |\n|---|--:|--:|--:|")
    for room in sorted({name.partition(":")[0].rpartition(".")[0] for name in found}):
        inside = [count for name, count in found.items() if name.startswith(f"{room}.")]
        rare = sum(count * 1000 < sets.total() for count in inside)
        print(f"| {room} | {len(inside)} | {rare} | {inside.count(0)} |")


if __name__ == "__main__":
    main()
