"""TeX as the classes of problem sets have it."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.clean.cleaning import clean, find_pandoc
from microcoder.data.clean.sections import split
from microcoder.judge.core.errors import ConfigError

PIECES = [r"\newcommand", r"\def", r"\x", "{", "}", "[1]", "#1", "a", " ", r"\begin{x}", "%", r"\newenvironment"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        (r"\newcommand{\maxn}{10^5}$n \le \maxn$", r"$n \le 10^5$"),
        (r"\newcommand\who[1]{Queen #1}\who{Ina} and \who X", "Queen Ina and Queen X"),
        (r"\newcommand{\pair}[2][a]{(#1, #2)}\pair{b} \pair[c]{d}", "(a, b) (c, d)"),
        (r"\def\sq#1{#1^2}$\sq{x}$", "$x^2$"),
        (r"\DeclareMathOperator{\lcm}{lcm}$\lcm(a, b)$", r"$\mathop{\mathrm{lcm}}(a, b)$"),
        (r"\newcommand{\a}{\alpha}$\a x$", r"$\alpha x$"),
        (r"\newenvironment{task}[1]{Task #1:}{.}\begin{task}{A}Sum\end{task}", "Task A:Sum."),
        (r"\newcommand{\one}{\two}\newcommand{\two}{2}\one", "2"),
        (r"nothing \defined here", "nothing here"),
        (r"\newcommand{\who}{Ina\xspace}\who is here", "Ina is here"),
        (r"$n \le \num{1e5}$ or $\num{2.5e6}$ or \num{300}", r"$n \le 10^{5}$ or $2.5 \cdot 10^{6}$ or 300"),
        (r"\input{/etc/passwd}\include{/etc/x}Two \ref{fig:b}, \label{fig:a}\label{fig:b} lines", "Two 2, lines"),
        (r"\illustration{0.3}{a.png}{By \href{http://a.b}{Ina}} Go", "![image](a.png) Go"),
        (r"\illustration{0.3}{a.png} Go", "![image](a.png) Go"),
        (r"``Yes'' or `no' \ldots{} \texttt{''} \url{http://a.b}", '"Yes" or \'no\' ... `"` http://a.b'),
    ],
)
def test_macros_stand_for_what_they_are(text: str, expanded: str) -> None:
    found = clean(f"\\section{{A}}\n\n{text}").text
    assert " ".join(found.removeprefix("## A").split()) == expanded


def test_what_does_not_end_or_cannot_be_read_stays() -> None:
    for text in (r"\section{A} \newcommand{\x}{\x\x}\x", r"\section{A} \begin{itemize} \item one"):
        assert clean(text).text.strip() == text


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_macros_of_any_kind_are_read(pieces: list[str]) -> None:
    assert isinstance(clean("\\section{A}" + "".join(pieces)).text, str)


def test_without_pandoc_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pypandoc", raising=False)
    find_pandoc.cache_clear()
    with pytest.raises(ConfigError, match=r"pandoc, which is not installed; type: pip install .*\[data\]"):
        clean(r"\section{A}")


def test_an_icpc_statement_reads_as_it_is_printed() -> None:
    text = clean(
        "\\newcommand{\\maxn}{2\\cdot 10^5}\n\\problemname{\\problemyamlname}\n"
        "\\begin{wrapfigure}{r}{5.5cm}\\begin{tikzpicture}[scale=2]\\draw (0,0) -- (1,1);\\end{tikzpicture}\n"
        "\\end{wrapfigure}\n"
        "Each socket is $\\SI{3}{\\cm}$ wide\\footnote{Or so.} and costs \\num{1e5}. % not printed\n"
        "\\begin{Input}\n\\begin{itemize}\n  \\item One line with $n$ ($1 \\leq n \\leq \\maxn$).\n\\end{itemize}\n"
        "\\end{Input}\n\\begin{Output}\nPrint ``yes'' or \\enquote{no}, Fr\\'ed\\'eric.\n\\end{Output}\n"
    ).text
    sections = split(text)
    assert sections.input == "- One line with $n$ ($1 \\leq n \\leq 2\\cdot 10^5$)."
    assert sections.output == 'Print "yes" or "no", Frédéric.'
    assert "$\\SI{3}{\\cm}$ wide (Or so.) and costs $10^{5}$." in sections.statement
    assert "![image](tikzpicture)" in sections.statement
    assert not {"5.5cm", "draw", "scale", "not printed"} & set(sections.statement.replace("(", " ").split())


def test_a_polygon_statement_has_its_parts_and_examples() -> None:
    sections = split(
        clean(
            "\\begin{problem}{A Sum}{standard input}{standard output}{1 second}{256 megabytes}\nAdd.\n\n\\InputFile\n"
            "Two numbers.\n\\OutputFile\nOne.\n\\Example\n\\begin{example}\n\\exmp{1 2\n}{3\n}%\n\\end{example}\n"
            "\\Note\nEasy.\n"
            "\\end{problem}\n"
        ).text
    )
    assert sections.statement == "# A Sum\n\nAdd."
    assert (sections.input, sections.output, sections.note) == ("Two numbers.", "One.", "Easy.")
    assert [(one.input, one.output) for one in sections.examples] == [("1 2", "3")]


def test_lists_tables_and_code_keep_their_form() -> None:
    text = clean(
        "\\section*{Steps}\n\\begin{enumerate}\\item First\n\\begin{itemize}\\item inner\\end{itemize}\n\\item Second\n"
        "\\end{enumerate}\n\\begin{tabular}{lr}\nName & Age \\\\\n\\hline\nAnna\n& $|S| = 3$ \\\\\n"
        "\\multicolumn{2}{c}{all}\n"
        "\\end{tabular}\n\\begin{lstlisting}[language=C]\nint a; % kept\n\\end{lstlisting}\n"
        "See Figure~\\ref{fig:b}, after\\label{fig:a} and\\label{fig:b}. "
        "{\\bf Bold} \\texttt{a\\_b} and \\verb|x % y|, `\\texttt{z}'.\n"
    ).text
    assert "1. First\n\n   - inner\n2. Second" in text
    assert "| Name | Age |\n| --- | --- |\n| Anna | $\\vert S\\vert = 3$ |\n| all | |" in text
    assert "```\nint a; % kept\n```" in text
    assert "See Figure 2, after and. **Bold** `a_b` and `x % y`, '`z`'." in text


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (
            r"\item So it is \texttt{hus\textbf{knallert}rumma} and \textbf{\texttt{S}}.",
            "`husknallertrumma` and **`S`**.",
        ),
        (r"\section*{Input} They are long.\looseness-1 \parindent=0pt So.", "They are long. So."),
        (
            r"\newcommand{\x}{}\newcolumntype{C}{>{\centering\arraybackslash}X} \section*{Input}One.",
            "## Input\n\nOne.",
        ),
        ("\\begin{enumerate}\\item[10 points] One.\\end{enumerate}", "1. 10 points One."),
    ],
)
def test_what_is_for_the_looks_alone_leaves_nothing_and_labels_stay(tex: str, text: str) -> None:
    assert text in clean(tex).text
