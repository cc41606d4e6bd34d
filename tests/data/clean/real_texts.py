"""Real public problems for tests: read from the archives where they are, from nowhere else."""

import gzip
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from microcoder.data.clean.cleaning import clean
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import TestCase
from tests.data.published import find_archive

LEETCODE_END = re.compile(r"\n\n(?:Please complete the code|请完成下面)")


@cache
def members(archive: str, wanted: str) -> dict[str, bytes]:
    """The files of an archive whose whole name matches."""
    pattern = re.compile(wanted)
    with tarfile.open(find_archive(archive)) as files:
        found = {}
        for m in files:
            if m.isfile() and pattern.fullmatch(m.name):
                found[m.name] = files.extractfile(m)
        contents = {}
        for name, file in found.items():
            if file is not None:
                contents[name] = file.read()
        return contents


def rows(content: bytes) -> Iterator[Any]:
    for line in content.decode().splitlines():
        if line.strip():
            yield json.loads(line)


@cache
def livecodebench() -> tuple[Candidate, ...]:
    (content,) = members("lcb_eval", r".*O1-Mini.*").values()
    return tuple(
        make(
            f"livecodebench/{row['question_id']}",
            row["question_content"],
            platform=row["platform"],
            title=row["question_title"],
            starter_code=row["starter_code"] or None,
            date=row["contest_date"][:10],
        )
        for row in json.loads(gzip.decompress(content))
    )


def read_starter(prompt: str) -> str:
    """Return the code that a prompt begins with."""
    found = re.search(r"```python\n(.*?)```", prompt, re.DOTALL)
    assert found is not None
    return found[1]


@cache
def deepseek(language: str) -> tuple[Candidate, ...]:
    """180 LeetCode contest problems, without tests."""
    (content,) = members(
        "deepseek_leetcode", rf".*Jul{'-zh' if language == 'zh' else ''}\.jsonl"
    ).values()
    return tuple(
        make(
            f"deepseek_{language}/{row['task_id']}",
            LEETCODE_END.split(row["prompt_sft"])[0],
            platform="leetcode",
            title=row["title"],
            url=row["url"],
            starter_code=read_starter(row["prompt_sft"]),
            natural_language=language,
        )
        for row in rows(content)
    )


@cache
def kodsport(every: int = 14) -> tuple[Candidate, ...]:
    """One candidate a statement, in Swedish and English, with its samples as tests;
    of every fourteenth statement.

    A process of pandoc reads each: all of them took half a minute of CPU time.
    Collecting reads every package.
    """
    found = members(
        "kodsport", r".*(?:problem_statement/problem\.\w+\.tex|data/sample/.*\.(?:in|ans))"
    )
    problems = []
    statements = []
    for name in found:
        if name.endswith(".tex"):
            statements.append(name)
    for name in statements[::every]:
        folder = name.rpartition("/problem_statement/")[0]
        samples = []
        for other in found:
            if other.startswith(f"{folder}/data/sample/") and other.endswith(".in"):
                samples.append(other)
        examples = []
        for one in sorted(samples):
            if one.removesuffix(".in") + ".ans" in found:
                examples.append(
                    TestCase(
                        input=found[one].decode(),
                        output=found[one.removesuffix(".in") + ".ans"].decode(),
                    )
                )
        tests = tuple(examples)
        language = {"se": "sv"}.get(name.split(".")[-2], name.split(".")[-2])
        text = found[name].decode(errors="replace")
        problems.append(
            make(
                f"kodsport/{name}",
                text,
                platform="kattis",
                tests=tests,
                natural_language=language,
            )
        )
    return tuple(problems)


@cache
def doocs(language: str, every: int = 6) -> tuple[Candidate, ...]:
    """Every sixth problem: cleaning all of them takes a minute."""
    found = members("doocs", rf".*/README{'_EN' if language == 'en' else ''}\.md")
    problems = []
    for name, content in sorted(found.items())[::every]:
        text = content.decode()
        url = re.search(r"https://leetcode\.(?:com|cn)/problems/[\w-]+", text)
        body = re.search(r"description:start -->(.*?)<!-- description:end", text, re.DOTALL)
        if url and body:
            problems.append(
                make(f"doocs_{language}/{name}", body[1], url=url[0], platform="leetcode")
            )
    return tuple(problems)


@cache
def codecontests() -> tuple[Candidate, ...]:
    (content,) = members("codecontests_test", r".*\.jsonl").values()
    return tuple(make(f"codecontests/{n}", row["prompt"]) for n, row in enumerate(rows(content)))


@cache
def mbpp() -> tuple[Candidate, ...]:
    (content,) = members("mbpp", r".*\.jsonl").values()
    return tuple(
        make(f"mbpp/{row['task_id']}", "\n".join([row["text"], *row["test_list"]]))
        for row in rows(content)
    )


def make(name: str, text: str, **fields: Any) -> Candidate:
    return Candidate(
        id=name,
        dataset=name.partition("/")[0],
        statement_found=text,
        statement=clean(text).text,
        **fields,
    )


ALL: dict[str, Callable[[], tuple[Candidate, ...]]] = {
    "livecodebench": livecodebench,
    "deepseek_en": lambda: deepseek("en"),
    "deepseek_zh": lambda: deepseek("zh"),
    "kodsport": kodsport,
    "doocs_en": lambda: doocs("en"),
    "doocs_zh": lambda: doocs("zh"),
    "codecontests": codecontests,
}
