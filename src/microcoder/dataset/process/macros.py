"""What a TeX statement defines for itself, put in place of its uses: a reader sees the bound, not `\\maxn`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from microcoder.dataset.process.spans import replace_between

MAX_EXPANSIONS = 3000
"""Uses that are replaced; a macro that calls itself would go on for ever."""
MAX_CHARACTERS = 300_000
"""A text that has grown beyond this is left as it is from there on."""

_COMMAND = re.compile(r"\\([a-zA-Z@]+)\*?|\\.", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*(?:\n[ \t]*(?=\S))?")
_PARAMETER = re.compile(r"#([1-9])")
_DECLARED = ("newcommand", "renewcommand", "providecommand", "DeclareRobustCommand", "newcommandx")
_ENVIRONMENTS = ("newenvironment", "renewenvironment", "provideenvironment")


@dataclass(frozen=True, slots=True)
class Macro:
    """What stands for a command."""

    body: str
    num_arguments: int = 0
    default: str | None = None
    """Of the first argument, where it may be left out."""


def strip_comments(text: str) -> str:
    """Return TeX without its comments; an escaped percent sign is none."""
    text = replace_between(_COMMENT.sub(r"\1", text), "\\iffalse", "\\fi")
    return replace_between(text, "\\begin{comment}", "\\end{comment}")


def expand_macros(text: str) -> str:
    """Return TeX with the macros and environments that it defines put in place of their uses.

    Definitions go. What is defined nowhere in the text stays as it is, as does what would not come to an end.

    Args:
        text: without comments and verbatim code.
    """
    if not re.search(r"\\(?:(?:re|provide)?new|(?:re)?newcommand|providecommand|def\b|let\b|Declare)", text):
        return text
    return _Expander(text).run()


@dataclass(slots=True)
class _Expander:
    text: str
    at: int = 0
    left: int = MAX_EXPANSIONS
    done: list[str] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)
    environments: dict[str, tuple[Macro, str]] = field(default_factory=dict)

    def run(self) -> str:
        readers: dict[str, Callable[[], None]] = {
            **dict.fromkeys(_DECLARED, self._declare),
            **dict.fromkeys(_ENVIRONMENTS, self._declare_environment),
            "def": self._define,
            "gdef": self._define,
            "let": self._let,
            "newcolumntype": self._column,
            "DeclareMathOperator": self._operator,
            "DeclarePairedDelimiter": self._delimiter,
        }
        while self.left > 0 and len(self.text) <= MAX_CHARACTERS and (found := _COMMAND.search(self.text, self.at)):
            self.done.append(self.text[self.at : found.start()])
            self.at = found.end()
            name = found[1] or ""
            if name in readers:
                readers[name]()
            elif name in self.macros:
                # A star is the macro's own only where it was declared with one, which none of ours is.
                self.at -= found[0].endswith("*") and not found[0].endswith("\\*")
                self._use(self.macros[name])
            elif name not in ("begin", "end") or not self._environment(name):
                self.done.append(found[0])
        return "".join(self.done) + self.text[self.at :]

    def _use(self, macro: Macro) -> None:
        arguments = []
        if macro.default is not None:
            optional = self._optional()
            arguments.append(macro.default if optional is None else optional)
        while len(arguments) < macro.num_arguments:
            arguments.append(self._argument())
        self._put(_fill(macro.body, arguments))

    def _put(self, body: str) -> None:
        rest = self.text[self.at :]
        # `\alpha` before `x` is not `\alphax`.
        gap = " " if re.search(r"\\[a-zA-Z]+$", body) and rest[:1].isalpha() else ""
        self.text, self.at = body + gap + rest, 0
        self.left -= 1

    def _environment(self, edge: str) -> bool:
        found = re.match(r"\s*\{([^{}\n]{1,60})\}", self.text[self.at : self.at + 100])
        if not found or found[1] not in self.environments:
            return False
        opening, closing = self.environments[found[1]]
        self.at += found.end()
        if edge == "begin":
            self._use(opening)
        else:
            self._put(closing)
        return True

    def _declare(self) -> None:
        name = self._argument().strip().lstrip("\\")
        macro = self._macro()
        if name:
            self.macros[name] = macro

    def _declare_environment(self) -> None:
        name, opening = self._argument().strip(), self._macro()
        self.environments[name] = opening, self._argument()

    def _macro(self) -> Macro:
        count, default = self._optional(), self._optional()
        number = int(count) if count and count.strip().isdigit() and len(count) < 3 else 0
        return Macro(self._argument(), number, default)

    def _define(self) -> None:
        found = re.compile(r"\s*\\([a-zA-Z@]+)([^{}\n]{0,60})(?=\{)").match(self.text, self.at)
        if found:
            self.at = found.end()
            self.macros[found[1]] = Macro(self._argument(), len(_PARAMETER.findall(found[2])))

    def _let(self) -> None:
        found = re.compile(r"\s*\\([a-zA-Z@]+)\s*=?\s*(\\[a-zA-Z@]+|\S)").match(self.text, self.at)
        if found and found[2] != f"\\{found[1]}":
            self.at = found.end()
            self.macros[found[1]] = Macro(found[2])

    def _column(self) -> None:
        """A kind of column is there for its looks."""
        self._argument()
        self._macro()

    def _operator(self) -> None:
        name = self._argument().strip().lstrip("\\")
        self.macros[name] = Macro(f"\\operatorname{{{self._argument()}}}")

    def _delimiter(self) -> None:
        name = self._argument().strip().lstrip("\\")
        left, right = self._argument(), self._argument()
        self.macros[name] = Macro(f"{left} #1 {right}", 1)

    def _optional(self) -> str | None:
        found = re.compile(r"[ \t]*\[([^\[\]]{0,500})\]").match(self.text, self.at)
        if not found:
            return None
        self.at = found.end()
        return found[1]

    def _argument(self) -> str:
        start = re.compile(r"\s*").match(self.text, self.at)
        at = start.end() if start else self.at
        if self.text[at : at + 1] != "{":
            found = re.compile(r"\\[a-zA-Z@]+|\\.|[^{}]").match(self.text, at)
            self.at = found.end() if found else at
            return found[0] if found else ""
        end = _find_end(self.text, at)
        self.at = end + 1
        return self.text[at + 1 : end]


def _find_end(text: str, at: int) -> int:
    """Return where the group that opens there closes, or the end of the text."""
    depth = 0
    for found in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0 and found[0] == "}":
            return found.start()
    return len(text)


def _fill(body: str, arguments: list[str]) -> str:
    return _PARAMETER.sub(lambda found: (arguments[int(found[1]) - 1 :] or [""])[0], body)
