"""Statements in other languages: what goes to a translator, and which answers are believed."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from microcoder.data.clean.bounds import parse_bounds
from microcoder.data.clean.samples import samples_of
from microcoder.data.clean.sections import split
from microcoder.data.clean.stage import arrange, process
from microcoder.data.completions import AnswerCache, Endpoint
from microcoder.data.corpus.build import plan_build, run_build
from microcoder.data.corpus.settings import BuildConfig
from microcoder.data.corpus.translation import (
    FunctionTranslator,
    ModelTranslator,
    find_faults,
    mask,
    restore,
    translate,
)
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.release.problems import read_problems
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extensions import load_extension
from tests.data.clean.local_endpoint import Reply, endpoint_of
from tests.data.clean.real_texts import ALL
from tests.data.published import write_rows

SWEDISH = """\
Anna har N kakor och vill dela dem lika mellan sina 3 vänner. Skriv ett program som räknar ut hur \
många kakor som blir över när alla har fått lika många.

## Input

En rad med ett heltal $N$ där 1 <= N <= 100 000, antalet kakor som Anna har från början.

## Output

Skriv ut "JA" om ingen kaka blir över, annars ett heltal: antalet kakor som blir över.

## Example 1

Input:

```
7
```

Output:

```
1
```
"""
ENGLISH = """\
Anna has N cookies and wants to share them equally among her 3 friends. Write a program that \
computes how many cookies are left over when everybody has got equally many.

## Input

A line with an integer $N$ where 1 <= N <= 100 000, the number of cookies that Anna has at first.

## Output

Print "JA" if no cookie is left over, otherwise an integer: the number of cookies left over.

## Example 1

Input:

```
7
```

Output:

```
1
```
"""
CAKES = Candidate(
    id="made/cakes",
    dataset="made",
    title="Kakor",
    statement_found=SWEDISH,
    statement=SWEDISH,
    natural_language="sv",
)
PLAIN_ENGLISH = (
    "the",
    "number",
    "of",
    "integers",
    "that",
    "should",
    "be",
    "printed",
    "separately",
    "on",
    "different",
    "lines",
    "following",
    "exactly",
    "which",
    "statement",
    "describes",
)
"""Words of which a stand-in makes English."""


def in_marks(english: str) -> str:
    """Return a translation of the cakes as a model gives it: with the marks of the original."""
    kept = mask(f"Kakor\n\n{SWEDISH.strip()}").kept
    text = f"Cookies\n\n{english.strip()}"
    end = 0
    for number, piece in enumerate(kept):
        start = text.index(piece, end)
        mark = f"[[P{number}]]"
        text = text[:start] + mark + text[start + len(piece) :]
        end = start + len(mark)
    return text


GOOD = in_marks(ENGLISH)


def as_reply(translation: str) -> str:
    return json.dumps({"translation": translation})


@contextmanager
def model_of(
    reply: Reply, *, second_reading: bool = False
) -> Iterator[tuple[ModelTranslator, list[dict[str, object]]]]:
    """A translator whose model answers as a test wants, and the requests that came."""
    with (
        endpoint_of(reply, max_retries=0) as (settings, requests),
        closing(Endpoint(settings)) as endpoint,
    ):
        yield ModelTranslator(endpoint, second_reading=second_reading), requests


def write_plain_english(text: str, language: str) -> str:
    """Translate as a stand-in: each word becomes an English one, and all else stays."""
    pieces = re.split(r"(\[\[P+\d+\]\])", text)
    for place in range(0, len(pieces), 2):
        number = 0

        def choose(found: re.Match[str]) -> str:
            nonlocal number
            number += 1
            # A Chinese run of signs is several words.
            num_signs = len(re.findall(r"[一-鿿]", found[0]))
            length = max(1, num_signs)
            return " ".join(PLAIN_ENGLISH[(number + word) % 17] for word in range(length))

        pieces[place] = re.sub(r"[^\W\d_]+", choose, pieces[place])
    return "".join(pieces)


def test_a_good_translation_is_taken_with_everything_that_must_not_change() -> None:
    with model_of(lambda number, messages: as_reply(GOOD)) as (translator, requests):
        done = translate(CAKES, translator)
    assert isinstance(done, Candidate)
    assert done.statement == ENGLISH
    assert done.title == "Cookies"
    assert done.natural_language == "en"
    assert done.statement_found == SWEDISH
    assert len(requests) == 1
    lines = [line for line in done.lineage if line.step == "translate/1"]
    assert {line.field for line in lines} == {"statement", "title", "natural_language"}
    assert re.fullmatch(r"sv to en by tiny, prompt [0-9a-f]{12}", lines[0].detail)


def test_numbers_code_and_samples_are_not_sent() -> None:
    sent: list[str] = []

    def listen(number: int, messages: list[dict[str, str]]) -> str:
        sent.append(messages[0]["content"].partition("Kakor")[2])
        return as_reply(GOOD)

    with model_of(listen) as (translator, _):
        translate(CAKES, translator)
    (text,) = sent
    unmarked = re.sub(r"\[\[P\d+\]\]", "", text)
    assert not re.search(r"\d", unmarked)
    for piece in ("```", "$", "<=", "JA"):
        assert piece not in unmarked


def drop_paragraph(text: str) -> str:
    paragraphs = text.split("\n\n")
    return "\n\n".join(paragraphs[:1] + paragraphs[2:])


BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "a mark is lost": (lambda text: text.replace("[[P1]]", "three"), "[[P1]] (3) is missing"),
    "a mark is made up": (lambda text: text + " [[P99]]", "[[P99]] is made up"),
    "a mark is repeated": (lambda text: text + " [[P1]]" * 5, "[[P1]] stands there 6 times"),
    "a number is added": (lambda text: text.replace("equally", "1000", 1), "the number 1000"),
    "a paragraph is lost": (drop_paragraph, "paragraphs"),
    "a paragraph is cut": (
        lambda text: re.sub(r"Write a program.*many\.", "", text).replace("wants to share ", ""),
        "paragraph 2 is far shorter",
    ),
    "a paragraph stays": (
        lambda text: text.replace(
            "the number of cookies that Anna has at first",
            "antalet kakor som Anna har från början när hon går hemifrån",
        ).replace("A line with an integer", "En rad med ett heltal"),
        "is still in sv",
    ),
    "a Russian word stays": (
        lambda text: text.replace("integer", "число", 1),
        "has 'число' in it",
    ),
    "nothing is translated": (lambda text: mask(f"Kakor\n\n{SWEDISH}").text, "still in sv"),
    "nothing comes": (lambda text: "", "empty"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_translation_is_refused_and_the_model_is_told_why(kind: str) -> None:
    spoil, told = BAD[kind]
    asked: list[str] = []

    def answer(number: int, messages: list[dict[str, str]]) -> str:
        asked.append(messages[0]["content"])
        return as_reply(spoil(GOOD))

    with model_of(answer) as (translator, _):
        done = translate(CAKES, translator)
    assert isinstance(done, Rejection)
    assert done.reason == "translation_failed"
    assert told in done.detail
    assert len(asked) == 3
    assert told in asked[1]
    # Nothing was lost: the row is there as it came.
    assert done.candidate == CAKES


def test_a_model_that_does_better_when_told_is_believed() -> None:
    def answer(number: int, messages: list[dict[str, str]]) -> str:
        if number == 1:
            return "Here is your translation!"
        if number == 2:
            return as_reply(GOOD.replace("[[P2]]", ""))
        return as_reply(GOOD)

    with model_of(answer) as (translator, requests):
        done = translate(CAKES, translator)
    assert isinstance(done, Candidate)
    assert done.statement == ENGLISH
    assert len(requests) == 3


def test_a_server_that_never_answers_ends_the_build_and_no_row() -> None:
    with (
        model_of(lambda number, messages: "HTTP503") as (translator, _),
        pytest.raises(ConfigError, match="failed 1 times"),
    ):
        translate(CAKES, translator)


def test_a_second_reading_may_refuse_what_the_marks_cannot_show() -> None:
    negated = GOOD.replace("if no cookie is left over", "if some cookie is left over")

    def answer(number: int, messages: list[dict[str, str]]) -> str:
        content = messages[0]["content"]
        if not content.startswith("Here is the statement"):
            return as_reply(negated)
        differences = ["JA is printed where cookies are left"] if "some cookie" in content else []
        return json.dumps({"differences": differences})

    with model_of(answer) as (translator, _):
        assert isinstance(translate(CAKES, translator), Candidate)
    with model_of(answer, second_reading=True) as (translator, _):
        done = translate(CAKES, translator)
    assert isinstance(done, Rejection)
    assert "JA is printed" in done.detail


def test_masking_and_restoring_gives_the_text_back() -> None:
    for text in (SWEDISH, "[[P0]] och [[PP1]] samt 5", "第N个数有5个因子", "", "x_1 <= 7^2"):
        masked = mask(text)
        assert restore(masked.text, masked) == text
        assert masked.mark not in text


def test_marks_hold_what_a_program_needs_in_chinese_too() -> None:
    masked = mask('给你一个长度为5的数组 nums[i] ，返回第N个数，或 "YES"。范围 1 <= n <= 10^5 。')
    assert masked.kept == ("5", "nums[i]", "N", '"YES"', "1 <= n <= 10^5")


def list_foreign(name: str) -> list[Candidate]:
    arranged = []
    for candidate in ALL[name]():
        done = arrange(candidate)
        if isinstance(done, Candidate) and done.natural_language != "en":
            arranged.append(done)
    return arranged


@pytest.mark.parametrize(("name", "least"), [("kodsport", 15), ("deepseek_zh", 100)])
def test_real_statements_come_back_whole(name: str, least: int) -> None:
    foreign = list_foreign(name)
    assert len(foreign) >= least
    for candidate in foreign:
        original = f"{candidate.title}\n\n{candidate.statement.strip()}".strip()
        masked = mask(original)
        english = write_plain_english(masked.text, candidate.natural_language)
        found = find_faults(english, masked, original=original, language=candidate.natural_language)
        assert found == (), candidate.id
        restored = restore(english, masked)
        assert samples_of(split(restored)) == samples_of(split(original))
        assert set(parse_bounds(original)) <= set(parse_bounds(restored))


def test_a_paragraph_may_stand_elsewhere_and_may_not_be_lost() -> None:
    long = "Den här raden säger i ord vad som händer med kakorna i det första exemplet"
    original = f"Rader\n\n{long}, som har 7 kakor.\n\n```\n12\n```"
    masked = mask(original)
    told = "This line says in words what becomes of the cookies in the first of the examples"
    moved = f"Lines\n\n[[P1]]\n\n{told}, of [[P0]] cookies."
    short = "Lines\n\n[[P1]]\n\nOf [[P0]] cookies."
    assert find_faults(moved, masked, original=original, language="sv") == ()
    faults = find_faults(short, masked, original=original, language="sv")
    assert faults[0] == "paragraph 2 is far shorter than it was"


FUNCTION = """
def translate(text, language):
    with open({calls!r}, "a") as file:
        file.write(language + "\\n")
    return {answer}
"""


def write_function(folder: Path, answer: str) -> str:
    path = folder / "own.py"
    path.write_text(FUNCTION.format(calls=str(folder / "calls"), answer=answer))
    return f"{path}:translate"


def test_a_function_of_ones_own_translates_and_is_not_asked_twice(tmp_path: Path) -> None:
    reference = write_function(tmp_path, repr(GOOD))
    for _ in range(2):
        extension = load_extension("translator", reference, builtins={})
        done = translate(CAKES, FunctionTranslator(extension, AnswerCache(tmp_path / "answers")))
        assert isinstance(done, Candidate)
        assert done.statement == ENGLISH
    assert (tmp_path / "calls").read_text() == "sv\n"


def test_a_function_that_returns_something_else_is_told_so(tmp_path: Path) -> None:
    extension = load_extension("translator", write_function(tmp_path, "None"), builtins={})
    translator = FunctionTranslator(extension, AnswerCache(tmp_path / "answers"))
    with pytest.raises(ConfigError, match="returned None; return the text in English, as a str"):
        translate(CAKES, translator)


def test_a_statement_that_a_reader_has_translated_stays() -> None:
    done = process(CAKES.model_copy(update={"statement": ENGLISH, "natural_language": ""}))
    assert isinstance(done, Candidate)
    assert done.statement == ENGLISH
    assert done.statement_found == SWEDISH
    assert done.natural_language == "en"


ROW = {
    "id": 1,
    "title": "Kakor",
    "question": SWEDISH,
    "input_output": json.dumps(
        {
            "inputs": [f"{number}\n" for number in range(1, 31)],
            "outputs": [f"{number % 3 or 'JA'}\n" for number in range(1, 31)],
        }
    ),
    "solutions": json.dumps(["n = int(input())\nprint(n % 3 or 'JA')"]),
}


def configure(folder: Path, translation: str) -> BuildConfig:
    write_rows(folder / "raw.jsonl", [ROW])
    path = folder / "corpus.toml"
    path.write_text(
        f"""name = "cakes"
output = "{folder / "corpus"}"
workers = 1
[[sources]]
path = "{folder / "raw.jsonl"}"
format = "apps"
{translation}
"""
    )
    return load_config(BuildConfig, (path,))


@pytest.mark.slow
def test_a_build_translates_and_says_by_whom(tmp_path: Path) -> None:
    english = GOOD.partition("\n\n")[2]
    with endpoint_of(lambda number, messages: as_reply(english)) as (settings, requests):
        config = configure(
            tmp_path,
            f'[process.translation.endpoint]\nbase_url = "{settings.base_url}"\nmodel = "tiny"',
        )
        built = run_build(config, plan_build(config))
        assert built.corpus is not None
        again = run_build(config, plan_build(config))
        assert len(requests) == 1
    assert again.was_finished
    (problem,) = read_problems(built.corpus)
    assert problem.statement.startswith("Anna has N cookies")
    counts = {step.step: (step.num_in, step.num_kept) for step in built.step_counts}
    assert counts["translate"] == (1, 1)


@pytest.mark.slow
def test_a_build_without_a_translator_turns_it_away(tmp_path: Path) -> None:
    config = configure(tmp_path, "")
    plan = plan_build(config, last="process")
    built = run_build(config, plan)
    assert built.step_counts[-1].num_kept == 0


@pytest.mark.parametrize(
    ("translation", "said"),
    [
        ("[process.translation]\nsecond_reading = true", "needs one translator"),
        ('[process.translation]\nfunction = "a.py:f"\nsecond_reading = true', "asks a model"),
    ],
)
def test_settings_that_name_nobody_are_refused(tmp_path: Path, translation: str, said: str) -> None:
    with pytest.raises((ConfigError, DataError), match=said):
        configure(tmp_path, translation)
