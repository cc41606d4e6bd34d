"""Files of answers: each format by itself and by guessing, and what is wrong with a broken one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.benchmarks import LiveCodeBench, Question
from microcoder.eval.answers import read_samples
from microcoder.eval.config import GenerationFile
from microcoder.eval.report import Sample
from microcoder.judge.core.errors import DataError
from microcoder.train.runs import write_rollouts
from tests.data.published import make_call_row, make_row, write_rows

CODE = "print(1)"


@pytest.fixture
def questions(tmp_path: Path) -> list[Question]:
    return LiveCodeBench(
        path=write_rows(tmp_path / "test.jsonl", [make_row("a"), make_call_row("b")])
    ).read()


def read(
    path: Path, content: object, questions: list[Question], *, num_ignored: int = 0, **keys: Any
) -> list[Sample]:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    samples, others = read_samples(GenerationFile(kind="file", path=path, **keys), questions)
    assert others == num_ignored
    return samples


def test_livecodebench_lists_are_taken(tmp_path: Path, questions: list[Question]) -> None:
    fenced = "```python\nprint(2)\n```"
    content: list[dict[str, Any]] = [{"question_id": "b", "code_list": [CODE, ""]}]
    content += [
        {"question_id": "a", "code_list": [fenced]},
        {"question_id": "other", "code_list": [CODE, CODE]},
    ]
    found = read(tmp_path / "out.json", content, questions, num_ignored=2)
    assert [(s.problem_id, s.sample_index, s.program, s.extraction) for s in found] == [
        ("b", 0, CODE, "given_as_code"),
        ("b", 1, None, "empty_code"),
        ("a", 0, "print(2)\n", "last_closed_code_block"),
    ]
    chat = [{"role": "user", "content": "Write it."}, {"role": "assistant", "content": fenced}]
    forms = {
        "response": chat,
        "completions": [chat],
        "messages": chat,
        "output": fenced,
        "generation": fenced,
    }
    for field, said in forms.items():
        rows = [{"id": "a", "language": "Python3", field: said}]
        (one,) = read(tmp_path / "out.json", rows, questions, allow_missing=True)
        assert one.program == "print(2)\n"
        assert one.completion == fenced


def test_evalplus_solutions_and_completions_are_taken(
    tmp_path: Path, questions: list[Question]
) -> None:
    lines = [{"task_id": "a", "solution": CODE}, {"task_id": "b", "completion": "    return a"}]
    lines.append({"task_id": "a", "solution": "print(2)", "completion": "thoughts"})
    found = read(
        tmp_path / "samples.jsonl",
        "".join(json.dumps(line) + "\n" for line in lines),
        questions,
    )
    assert [(s.problem_id, s.sample_index) for s in found] == [("a", 0), ("b", 0), ("a", 1)]
    assert [s.program for s in found[1:]] == [
        f"{questions[1].problem.starter_code}    return a",
        "print(2)",
    ]


BLOCK_CODE = "n = int(input())\nprint(n)\n"
BARE_OF_A = {
    "a program": (f"{CODE}\n", f"{CODE}\n"),
    "a program, and the fence that the prompt opened": (
        f"{CODE}\n```\nIt prints 1.\n",
        f"{CODE}\n",
    ),
    "a token behind it": (f"{CODE}<|im_end|>", CODE),
    "a turn behind it": (f"{CODE}\n\nHuman: And two?\n\nAssistant: print(2)\n", f"{CODE}\n\n"),
    "the end of a document": (f"{CODE}\n<|endoftext|>import os\n", f"{CODE}\n"),
    "prose behind it": (f"{CODE}\n\nIt prints the number 1.\n", f"{CODE}\n\n"),
    "thinking before it": (f"<think>\nHm.\n</think>\n{CODE}", f"\n{CODE}"),
    "DeepSeek's token behind it": (f"{CODE}<\uff5cend\u2581of\u2581sentence\uff5c>", CODE),
    "a byte order mark before it": (f"\ufeff{CODE}", CODE),
    "CodeLlama's marks": (f"[PYTHON]\n{BLOCK_CODE}[/PYTHON]", BLOCK_CODE),
    "an element of HTML": (f"<pre><code>{BLOCK_CODE}</code></pre>", BLOCK_CODE),
    "an error in it": ("n = int(input()\nprint(n)\n", "n = int(input()\nprint(n)\n"),
    "words": ("I do not know.", None),
}
"""Answers without a fenced block to a problem that reads stdin, and their programs."""


@pytest.mark.parametrize("name", BARE_OF_A)
@pytest.mark.parametrize("id_key", ["problem_id", "task_id"])
@pytest.mark.parametrize("key", ["response", "completion", "generation", "output"])
def test_plain_code_is_the_same_under_every_key(
    name: str,
    id_key: str,
    key: str,
    tmp_path: Path,
    questions: list[Question],
) -> None:
    text, code = BARE_OF_A[name]
    rows = [{id_key: "a", key: text}]
    (sample,) = read(tmp_path / "out.json", rows, questions, allow_missing=True)
    assert sample.program == code


_HEAD = "from typing import List\n\n\ndef double(a: List[int]) -> List[int]:\n"
_PROMPT = f'{_HEAD}    """Double every number.\n\n    >>> double([1])\n    [2]\n    """\n'
_BODY = "    return [2 * one for one in a]\n"
_FUNCTION = f"def double(a: List[int]) -> List[int]:\n{_BODY}"
BARE_OF_A_PROMPT = {
    "the body": (_BODY, f"{_PROMPT}{_BODY}"),
    "the body without its indentation": (_BODY[4:], f"{_PROMPT}{_BODY}"),
    "the body, and the fence that the prompt opened": (f"{_BODY}```\nDone.", f"{_PROMPT}{_BODY}"),
    "the body and a token": (f"{_BODY[:-1]}<|endoftext|>x", f"{_PROMPT}{_BODY[:-1]}"),
    "the body and prose": (f"{_BODY}\nThis is it.\n", f"{_PROMPT}{_BODY}\n"),
    "the body, a test that is cut off": (f"{_BODY}\ndef test(", f"{_PROMPT}{_BODY}\n"),
    "the whole function": (_FUNCTION, f"{_PROMPT.rstrip()}\n\n{_FUNCTION}"),
}
"""Answers without a fenced block to a prompt that is code, as HumanEval's, and their programs."""


@pytest.mark.parametrize("name", BARE_OF_A_PROMPT)
@pytest.mark.parametrize("key", ["response", "completion"])
def test_plain_code_goes_on_where_the_prompt_ends(
    name: str,
    key: str,
    tmp_path: Path,
    questions: list[Question],
) -> None:
    changes = {"statement": _PROMPT, "starter_code": "", "fn_name": "double"}
    question = replace(questions[1], problem=questions[1].problem.model_copy(update=changes))
    text, code = BARE_OF_A_PROMPT[name]
    (sample,) = read(tmp_path / "out.json", [{"task_id": "b", key: text}], [question])
    assert sample.program == code


def test_a_token_behind_code_is_left_out_under_the_key_of_code(
    tmp_path: Path, questions: list[Question]
) -> None:
    rows = [{"task_id": "a", "solution": f"{CODE}<|endoftext|>"}]
    (sample,) = read(tmp_path / "out.json", rows, questions, allow_missing=True)
    assert sample.program == CODE


def test_our_rollouts_are_taken_from_parquet_and_jsonl(
    tmp_path: Path, questions: list[Question]
) -> None:
    text = f"thinking\n```python\n{CODE}\n```"
    rows = [
        {"step": 1, "problem_id": "a", "completion": text, "num_tokens": 7, "is_truncated": False},
        {
            "step": 1,
            "problem_id": "b",
            "completion": "```python\nx",
            "num_tokens": 9,
            "is_truncated": True,
        },
    ]
    write_rollouts(tmp_path / "step.parquet", rows)
    found, _ = read_samples(GenerationFile(kind="file", path=tmp_path / "step.parquet"), questions)
    assert [(s.problem_id, s.program, s.is_truncated, s.num_tokens) for s in found] == [
        ("a", f"{CODE}\n", False, 7),
        ("b", None, True, 9),
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert read(tmp_path / "step.jsonl", lines, questions) == found


def test_a_response_is_read_in_the_problem_s_language(
    tmp_path: Path, questions: list[Question]
) -> None:
    text = "```python\nprint(1)\n```\n```cpp\nint main() {}\n```\n"
    row = {"step": 1, "problem_id": "a", "completion": text}
    asked = [
        replace(questions[0], problem=questions[0].problem.model_copy(update={"language": "cpp"}))
    ]
    assert read(tmp_path / "step.jsonl", json.dumps(row), asked)[0].program == "int main() {}\n"
    assert (
        read(tmp_path / "a.jsonl", '{"problem_id": "a", "response": null}', asked)[0].program
        is None
    )


def test_a_problem_is_known_by_the_id_that_its_own_row_has(
    tmp_path: Path, questions: list[Question]
) -> None:
    """A row with a column that our records lack is read as another format's,
    whose name then stands before its id.
    """

    def rename(question: Question, name: str) -> Question:
        return replace(question, problem=question.problem.model_copy(update={"id": name}))

    named = [rename(question, f"deepcoder/{question.id}") for question in questions]
    content = [
        {"problem_id": name, "code": CODE, "language": "en"} for name in ("a", "deepcoder/a", "b")
    ]
    found = read(tmp_path / "out.json", content, named)
    ids = [f"{one.problem_id} {one.sample_index}" for one in found]
    assert ids == ["deepcoder/a 0", "deepcoder/a 1", "deepcoder/b 0"]
    with pytest.raises(
        DataError, match="line 1: 2 problems have the id 'a' in their rows; name one whole"
    ):
        read(tmp_path / "out.json", content, [named[0], rename(named[0], "apps/a")])


def test_a_problem_without_an_answer_is_an_error_unless_allowed(
    tmp_path: Path, questions: list[Question]
) -> None:
    content = [{"question_id": "a", "code_list": [CODE]}]
    with pytest.raises(DataError, match=r"no answer to 1 of 2 problems \(first: 'b'\)"):
        read(tmp_path / "out.json", content, questions)
    assert len(read(tmp_path / "out.json", content, questions, allow_missing=True)) == 1
    with pytest.raises(
        DataError,
        match="none of the 2 problems; check the ids: its first is 'c', that of the problems 'a'",
    ):
        read(
            tmp_path / "out.json",
            [{"question_id": "c", "code_list": [CODE]}],
            questions,
            allow_missing=True,
        )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "line 1 is not JSON"),
        ("", r"is empty; it needs lines of \{problem_id, response\}"),
        ('{"x": 1}', "line 1: problem_id is missing"),
        ([["a", CODE]], "line 1: .*list, not an object"),
        ([{"question_id": "a", "code_list": [1]}], "line 1: an item of code_list is int, not text"),
        (
            [{"id": "a", "messages": [{"role": "user", "content": "x"}]}],
            "an item of messages is dict, not text",
        ),
        (
            [{"id": "a", "code": "x", "language": "c++"}],
            "line 1: its answer is in 'c\\+\\+', problem a wants",
        ),
        ('{"task_id": "a", "solution": 1}', "line 1: solution is int, not text"),
        (
            [{"id": "a", "code": "x", "is_truncated": "false"}],
            "line 1: is_truncated is str, not true or false",
        ),
        ([{"id": "a", "responses": []}], "holds no answer: the lists of its rows are empty"),
        (
            '{"problem_id": "a", "reply": "x"}',
            r"line 1: response \(or code; it has problem_id, reply\) is missing",
        ),
    ],
)
def test_a_broken_file_is_refused_by_line(
    tmp_path: Path,
    questions: list[Question],
    content: object,
    why: str,
) -> None:
    with pytest.raises(DataError, match=why):
        read(tmp_path / "out.json", content, questions)


def test_a_file_that_is_not_there_is_said(tmp_path: Path, questions: list[Question]) -> None:
    (tmp_path / "a.csv").touch()
    for name, why in {
        "none.json": "does not exist",
        "none.parquet": "does not exist",
        "a.csv": "are not read",
    }.items():
        with pytest.raises(DataError, match=why):
            read_samples(GenerationFile(kind="file", path=tmp_path / name), questions)
