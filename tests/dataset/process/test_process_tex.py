"""TeX as the classes of problem sets have it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.dataset.process.cleaning import clean
from microcoder.dataset.process.macros import MAX_CHARACTERS, expand_macros
from microcoder.dataset.process.sections import split

PIECES = [r"\newcommand", r"\def", r"\x", "{", "}", "[1]", "#1", "a", " ", r"\begin{x}", "%", r"\newenvironment"]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        (r"\newcommand{\maxn}{10^5}$n \le \maxn$", r"$n \le 10^5$"),
        (r"\newcommand\who[1]{Queen #1}\who{Ina} and \who X", "Queen Ina and Queen X"),
        (r"\newcommand{\pair}[2][a]{(#1, #2)}\pair{b} \pair[c]{d}", "(a, b) (c, d)"),
        (r"\def\sq#1{#1^2}\sq{x}", "x^2"),
        (r"\let\le\leqslant $a \le b$", r" $a \leqslant b$"),
        (r"\DeclareMathOperator{\lcm}{lcm}$\lcm(a, b)$", r"$\operatorname{lcm}(a, b)$"),
        (r"\newcommand{\a}{\alpha}$\a x$ \a{}y", r"$\alpha x$ \alpha{}y"),
        (r"\newenvironment{task}[1]{Task #1:}{.}\begin{task}{A}Sum\end{task}", "Task A:Sum."),
        (r"\newcommand{\one}{\two}\newcommand{\two}{2}\one", "2"),
        (r"nothing \defined here", r"nothing \defined here"),
    ],
)
def test_macros_stand_for_what_they_are(text: str, expanded: str) -> None:
    assert expand_macros(text) == expanded


def test_macros_that_do_not_end_do_end() -> None:
    assert len(expand_macros(r"\newcommand{\x}{\x\x}\x")) < 2 * MAX_CHARACTERS
    assert len(expand_macros(r"\newcommand{\y}{yyyyyyyyyy\y}\y")) < 2 * MAX_CHARACTERS


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [r"\newcommand", r"\def", r"\x", "{", "}", "[1]", "#1", "a", " ", r"\begin{x}", "%", r"\newenvironment"]
        ),
        max_size=14,
    )
)
def test_macros_of_any_kind_are_read(pieces: list[str]) -> None:
    assert isinstance(expand_macros("".join(pieces)), str)


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
    assert "$3\\text{ cm}$ wide (Or so.) and costs $10^{5}$." in sections.statement
    assert "![drawing](tikzpicture)" in sections.statement
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
    assert "1. First\n\n  - inner\n\n2. Second" in text
    assert "| Name | Age |\n| --- | --- |\n| Anna | $\\vert S\\vert  = 3$ |\n| all |  |" in text
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
        (
            "\\begin{enumerate}\\item One.\\item Two.\\end{enumerate}But\n"
            "\\begin{enumerate}[resume, topsep=0pt]\\item Three.\\end{enumerate}",
            "1. One.\n2. Two.\n\nBut\n\n3. Three.",
        ),
    ],
)
def test_what_is_for_the_looks_alone_leaves_nothing_and_lists_resume(tex: str, text: str) -> None:
    assert text in clean(tex).text
