"""Texts and statements: noise, pages, TeX, languages, parts, powers, what is missing,
and what was made to be slow.
"""

import re
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.clean.bounds import parse_bounds
from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.flags import find_flags
from microcoder.data.clean.languages import identify
from microcoder.data.clean.markdown import prose
from microcoder.data.clean.powers import restore_powers
from microcoder.data.clean.sections import find_starter_code, normalise, render, split
from microcoder.data.clean.shown import count_hidden, find_shown
from microcoder.data.clean.tex import find_pandoc
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import Assertions, Checker, TestCase
from tests.data.clean.real_texts import ALL

PIECES = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<pre>",
        "</pre>",
        "<b>",
        "</b>",
        "<br/>",
        "<code>",
        "</code>",
        "<sup>5</sup>",
        "&lt;",
        "&amp;",
        "&amp;lt;p&amp;gt;",
        "a < b",
        "vector<int>",
        "`",
        "```\n",
        "```",
        "$",
        "$$",
        "$$$",
        "\\begin{itemize}",
        "\\item x",
        "\\end{itemize}",
        "\\textbf{x}",
        "\\section*{Input}",
        "%",
        "\\(",
        "\\)",
        "\\<p>",
        "\n",
        "\n\n\n",
        " ",
        "\t",
        "Input: 3",
        "Copyright 2020 LeetCode",
        "---\n",
        "title: x\n",
        "<!-- c -->",
        "<img src='a.png'>",
        "Ã©",
        "\u200b",
        "\r\n",
        "- ",
        "# ",
        "|",
        "<table><tr><td>1</td></tr></table>",
        "\\verb!.!",
        "\\includegraphics{a}",
        "{",
        "}",
        "\\",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES | st.text(max_size=6), max_size=12).map("".join))
def test_cleaning_what_is_clean_changes_nothing(text: str) -> None:
    once = clean(text).text
    assert clean(once) == (once, ())


@pytest.mark.parametrize(
    "text",
    [
        "For a<b and b>c use vector<int> or `<p>`; 1 <= n.\n",
        "Replace the HTML entity `&quot;` and &amp; by its character.\n",
        # A macro that names itself twice would grow for ever; pandoc refuses both of these.
        r"\section{A} \newcommand{\x}{\x\x}\x",
        r"\section{A} \begin{itemize} \item one",
    ],
)
def test_what_is_talked_of_and_what_does_not_end_stays(text: str) -> None:
    found = clean(text)
    assert found.text.strip() == text.strip()
    assert (found.steps == ()) == (not text.startswith("\\section"))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>2<sup>S<sub>1</sub></sup> and <b>S</b></p>", "2^(S_1) and **S**"),
        # Pictures in the page do not count and leave their place.
        (
            (
                f'<p>At <img src="data:image/png;base64,{"QUJD" * 50_000}"/> and '
                f"<svg>{'<path d=x></path>' * 9}</svg></p>"
            ),
            "At ![](embedded) and ![](drawn)",
        ),
        # An empty power is none: only a space without width is in it.
        ("<code><sup>\u200b</sup>1 &lt;= v<sub>i</sub></code><p></p>", "`1 <= v_i`"),
    ],
    ids=lambda value: value[:40],
)
def test_a_page_reads_like_this(page: str, text: str) -> None:
    assert clean(page).text.strip() == text


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        (r"\newcommand{\maxn}{10^5}$n \le \maxn$", r"$n \le 10^5$"),
        (r"\newcommand{\pair}[2][a]{(#1, #2)}\pair{b} \pair[c]{d}", "(a, b) (c, d)"),
        (r"\newenvironment{task}[1]{Task #1:}{.}\begin{task}{A}Sum\end{task}", "Task A:Sum."),
        # No file of this machine is read into a statement.
        (r"\input{/etc/passwd}\include{/etc/x}Two \ref{fig:b}, \label{fig:b} lines", "Two , lines"),
        (r"\illustration{0.3}{a.png}{By \href{http://a.b}{Ina}} Go", "![image](a.png) Go"),
        (
            r"``Yes'' or `no' \ldots{} \texttt{''} \url{http://a.b}",
            '"Yes" or \'no\' ... `"` http://a.b',
        ),
    ],
)
def test_macros_stand_for_what_they_are(text: str, expanded: str) -> None:
    found = clean(f"\\section{{A}}\n\n{text}").text
    assert " ".join(found.removeprefix("## A").split()) == expanded


def test_without_pandoc_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pypandoc", raising=False)
    find_pandoc.cache_clear()
    with pytest.raises(
        ConfigError, match=r"pandoc, which is not installed; type: pip install .*\[data\]"
    ):
        clean(r"\section{A}")


def test_an_icpc_statement_reads_as_it_is_printed() -> None:
    text = clean(
        "\\newcommand{\\maxn}{2\\cdot 10^5}\n"
        "\\problemname{\\problemyamlname}\n"
        "Each socket is $\\SI{3}{\\cm}$ wide\\footnote{Or so.}. % not printed\n"
        "\\begin{Input}\n"
        "\\begin{itemize}\n"
        "  \\item One line with $n$ ($1 \\leq n \\leq \\maxn$).\n"
        "\\end{itemize}\n"
        "\\end{Input}\n"
        "\\begin{Output}\n"
        "Print ``yes'' or \\enquote{no}, Fr\\'ed\\'eric.\n"
        "\\end{Output}\n"
    ).text
    sections = split(text)
    assert sections.input == "- One line with $n$ ($1 \\leq n \\leq 2\\cdot 10^5$)."
    assert sections.output == 'Print "yes" or "no", Frédéric.'
    assert "$\\SI{3}{\\cm}$ wide (Or so.)." in sections.statement
    assert not {"not", "printed"} & set(sections.statement.replace("(", " ").split())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("N 個の整数が与えられます。その合計を出力してください。", "ja"),
        ("f(x) = 3", "en"),
        ('def f(x):\n    """Верните сумму всех чисел из списка."""\n', "ru"),
        ("Selvita, kuinka monta eri lukua listassa on.", "fi"),
        ("Skrifið út eina heiltölu: fæsta fjölda leikja sem þarf til þess að vinna.", "is"),
        ("Print the minimum number of moves. $O(n \\log n)$ is enough.", "en"),
        (
            "カラオケ has n songs. "
            + "Print how many of these songs are longer than those that are left. " * 4,
            "en",
        ),
    ],
)
def test_code_and_formulae_do_not_decide(text: str, code: str) -> None:
    assert identify(text).code == code


LENGTH = 50_000
"""Half of the longest statement that is read."""
UNITS = (
    "9",
    " ",
    "\t",
    "`",
    "```",
    "~",
    "[",
    "![",
    "f(",
    "[a](",
    "-",
    "a",
    "a[",
    "1.",
    "100 ",
    "10^",
    "<!--",
)
UNITS += (
    "<svg>",
    "<li>",
    "\\begin{verbatim}",
    "\\iffalse ",
    "\\newcommand{\\a}{",
    "\\item ",
    "10-5 ",
    "![](a)",
    "**",
)


def candidate(text: str, **fields: Any) -> Candidate:
    return Candidate(id="a/1", dataset="a", statement=text, **fields)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", UNITS)
def test_a_long_run_ends(unit: str) -> None:
    text = "1 <= " + unit * (LENGTH // len(unit)) + " a"
    for read in (clean, parse_bounds, prose):
        read(text)
    find_flags(candidate(text))


@pytest.mark.parametrize(
    "text",
    [
        "<div>" * 9000 + "one two" + "</div>" * 9000,
        "<p>one" + "<ul><li>" * 9000 + "two",
        "<p>one" * 9000 + "<i>two",
    ],
    ids=["closed", "lists", "paragraphs"],
)
def test_html_that_is_nested_without_end_keeps_its_words(text: str) -> None:
    cleaned = clean(text).text
    assert cleaned.count("one") == text.count("one")
    assert cleaned.rstrip(" *\n").endswith("two")


APPS = (
    "Add two numbers.\n\n"
    "-----Input-----\n\n"
    "Two numbers.\n\n"
    "-----Output-----\n\n"
    "Their sum.\n\n"
    "-----Examples-----\n"
    "Input\n"
    "1 2\n\n"
    "Output\n"
    "3\n\n"
    "Input\n"
    "0 0\n\n"
    "Output\n"
    "0\n\n"
    "-----Note-----\n"
    "Easy.\n"
)


def test_examples_of_one_heading_are_told_apart() -> None:
    assert [(one.input, one.output) for one in split(APPS).examples] == [("1 2", "3"), ("0 0", "0")]
    assert "## Example 1\n\nInput:\n\n```\n" in normalise(APPS)
    assert normalise(normalise(APPS)) == normalise(APPS)


@pytest.mark.parametrize("name", ALL)
def test_real_statements_keep_their_words_and_have_one_layout(name: str) -> None:
    problems = ALL[name]()
    num_examples = 0
    for problem in problems[::4]:
        sections = split(problem.statement)
        normal = render(sections)
        num_examples += bool(sections.examples)
        assert render(split(normal)) == normal
        before = Counter(re.findall(r"\w{4,}|\d+", problem.statement))
        after = Counter(re.findall(r"\w{4,}|\d+", normal))
        labels = {
            "Example",
            "Examples",
            "Sample",
            "Input",
            "Output",
            "Explanation",
            "Constraints",
            "Note",
            "Format",
        }
        lost = set()
        for word in before - after:
            if word.title() not in labels and word.isascii() and not word.isdigit():
                lost.add(word)
        assert len(lost) <= 6, (problem.id, lost)
    if name not in ("kodsport", "codecontests"):  # whose statements show none
        assert num_examples >= 0.98 * len(problems[::4])


WHOLE = (
    "1 <= n <= 105 and 1 <= m <= 10^9",
    "There are 105 trees.",
    "1 <= k <= 20 - 1, in O(2n)",
    "x <= 105.5",
    "0 <= hour < 24, 0 <= part <= 255",
)
"""What lost nothing stays."""


@pytest.mark.parametrize(
    ("lost", "restored"),
    [
        ("1 <= n <= 104, modulo 109 + 7", "1 <= n <= 10^4, modulo 10^9 + 7"),
        ("`-231 <= x <= 231 - 1`", "`-2^31 <= x <= 2^31 - 1`"),
        ("in the range [-231, 231 - 1]", "in the range [-2^31, 2^31 - 1]"),
        ("Answers within 10-5 of it are accepted.", "Answers within 10^-5 of it are accepted."),
        *((whole, whole) for whole in WHOLE),
    ],
)
def test_powers_come_back_where_the_text_shows_them(lost: str, restored: str) -> None:
    found = restore_powers(lost)
    assert found.text == restored
    assert bool(found.why) == (lost != restored)


def test_without_evidence_nothing_is_guessed() -> None:
    assert restore_powers("1 <= n <= 105") == ("1 <= n <= 105", ())
    assert restore_powers("1 <= n <= 105", has_lost_all=True).text == "1 <= n <= 10^5"


def test_real_statements_that_lost_their_powers_get_the_same_ones_back() -> None:
    """LeetCode's own pages as doocs keeps them, their superscripts taken away."""
    wrong = right = 0
    for problem in ALL["doocs_en"]():
        text = split(problem.statement).constraints
        whole = re.sub(r"\^\(?(-?\d+)\)?", r"^\1", text)
        lost = re.sub(r"(?<=\d)\^(?=-?\d)", "", whole)
        found = restore_powers(lost, has_lost_all=True)
        assert restore_powers(whole).text == whole
        changed = zip(lost.split("\n"), found.text.split("\n"), whole.split("\n"), strict=True)
        wrong += any(mended not in (old, true) for old, mended, true in changed)
        right += found.text == whole != lost
    assert wrong == 0
    assert right > 30


CHECKED = Checker(type="program", code="exit(42)", protocol="kattis")


@pytest.mark.parametrize(
    ("text", "fields", "flags"),
    [
        (
            "This is an interactive problem. Flush the output after each query.",
            {},
            ("interactive",),
        ),
        ("If there are multiple solutions, print any of them.", {}, ("many_answers",)),
        # A checker decides on many answers.
        ("If there are several solutions, print any of them.", {"checker": CHECKED}, ()),
        (
            "![a squirrel](squirrel.png)\n" + "A squirrel lives in a tree and collects nuts. " * 5,
            {},
            ("has_image",),
        ),
        (
            (
                "If there are multiple rectangles with the longest diagonal, return the area "
                "of the largest."
            ),
            {},
            (),
        ),
        ("Choose any index i and increase nums[i]. Print the sum of the file sizes.", {}, ()),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_stands_in_the_way_is_flagged(
    text: str,
    fields: dict[str, Any],
    flags: tuple[str, ...],
) -> None:
    assert find_flags(candidate(text, **fields)) == flags


def test_samples_are_looked_for_in_the_tests() -> None:
    text = "Add.\n\nExample 1:\n\nInput: a = [1, 2]\nOutput: 3\n"
    assert find_flags(candidate(text, tests=(TestCase(input="[1,2]", output="3"),))) == ()
    assert find_flags(candidate(text, tests=(TestCase(input="[2,2]", output="4"),))) == (
        "samples_missing",
    )
    assert find_flags(candidate(text, tests=(TestCase(input="[1,2]", output="4"),))) == (
        "samples_differ",
    )
    # Brackets are values where there is nothing else, in quotes, and as a word of their own.
    for shown, *others in (
        ("(())", "()", "()()"),
        ('s = "[]{}"', '"{}[]"'),
        ("4\n(())", "4\n()()"),
        ("[]", "[[]]"),
    ):
        text = f"Depth.\n\nExample 1:\n\nInput:\n{shown}\nOutput:\n1\n"
        tests = tuple(
            TestCase(input=one.removeprefix("s = "), output="1") for one in (shown, *others)
        )
        assert find_shown(candidate(text, tests=tests)) == (True, *[False] * len(others))


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (
            (
                "$1 \\leq n, m \\leq 2 \\cdot 10^5$, `-10^9 <= a_i <= 10^9`, 0 ≤ |s| < 1000, "
                "$1 \\le k \\le n$, "
                "1 <= q <= 200 000"
            ),
            {"n": (1, 2e5), "m": (1, 2e5), "a_i": (-1e9, 1e9), "s": (0, 1000), "q": (1, 200000)},
        ),
        ("1 ≤ **N** ≤ 100, 2 ≤ **K_i** < 2**20", {"N": (1, 100), "K_i": (2, 2**20)}),
        # A bound beyond every number is ignored.
        (f"1 <= n <= 10^{'9' * 5000}\n1 <= k <= 10^5\n", {"k": (1, 1e5)}),
        ("1 <= K<= N <= 2\\times 10 ^ 5", {"K": (1, 2e5), "N": (1, 2e5)}),
        ("2 <= n == possible.length <= 10^5", {"n": (2, 1e5), "possible.length": (2, 1e5)}),
        ("1 <= n <= 2 * 105, 1 <= m <= 3 * 100", {"n": (1, 2e5), "m": (1, 300)}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bounds_are_read_as_they_are_written(
    text: str, bounds: dict[str, tuple[float, float]]
) -> None:
    assert {bound.name: (bound.low, bound.high) for bound in parse_bounds(text)} == bounds


def test_a_signature_is_found_in_an_accepted_solution() -> None:
    wrong = Solution(code="def add(x): return 1", known="wrong_answer")
    right = Solution(
        code="class Solution:\n    def add(self, a: int, b=2) -> int:\n        return a + b\n"
    )
    named = candidate("", fn_name="add", solutions=(wrong, right))
    assert (
        find_starter_code(named)
        == "class Solution:\n    def add(self, a: int, b=2) -> int:\n        "
    )
    assert find_starter_code(named.model_copy(update={"solutions": (wrong,)})) is None


def test_a_call_in_a_statement_shows_its_test() -> None:
    text = "Add them up.\n\n>>> add(1, 2)\n3\nWith add(5, b=6) it is 11, and add(n, 7) is no call."
    function = {"fn_name": "add", "starter_code": "def add(a, b):\n    "}
    tests = [{"input": given, "output": "0"} for given in ("1\n2", "5\n6", "3\n7")]
    shown = Candidate.model_validate(
        {"id": "a", "dataset": "d", "statement": text, "tests": tests, **function}
    )
    assert find_shown(shown) == (True, True, False)
    # A definition is no call.
    alone = {"fn_name": "now", "starter_code": "def now():\n    ", "assertions": {}}
    tests = [{"input": "", "output": "assert now() == 3"}]
    said = {"id": "a", "dataset": "d", "statement": "Say what time it is."}
    assert find_shown(Candidate.model_validate({**said, **alone, "tests": tests})) == (False,)
    # Of programs each assertion counts.
    asserted = "assert add(1, 2) == 3\nassert candidate(5, 6) == 11\nassert add(3, 7) == 10"
    programs = shown.model_copy(
        update={
            "assertions": Assertions(),
            "tests": (
                TestCase(input="", output=asserted),
                TestCase(input="", output="assert add(1, 2) == 3"),
            ),
        }
    )
    assert find_shown(programs) == (False, True)
    assert count_hidden(programs) == 1


def test_a_function_whose_docstring_is_the_statement_stays_as_it_is() -> None:
    text = (
        'from typing import List\n\ndef f(n: int):\n    """Write n in binary.\n'
        '    Examples:\n    For n = 5 it is "101".\n\n    Output:\n        a string\n'
        '    Note:\n    * n is positive\n    """\n'
    )
    assert normalise(text).strip() == text.strip()
