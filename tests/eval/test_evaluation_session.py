"""Whole evaluations: from a file, from a server, from a tiny model; killed, resumed, compared,
refused.

Then the server alone: what is sent, borne and said; and the grid:
each sum is over the right problems.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from microcoder.cli import main
from microcoder.cli.display import StepDisplay
from microcoder.data import write_problems
from microcoder.data.benchmarks.questions import Question
from microcoder.data.micro import generate_problems
from microcoder.eval import EvalConfig, EvaluationFolder, compare, run_evaluation, summarise
from microcoder.eval.config import EndpointGeneration, ResponseSampling
from microcoder.eval.evaluation import plan_evaluation
from microcoder.eval.generation import (
    ResponseRequest,
    ask_endpoint,
    build_messages,
    build_prompt_builder,
    load_questions,
)
from microcoder.eval.report import Sample
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Problem, TestCase
from tests.data.published import make_call_row, make_row, write_rows
from tests.eval.completions_server import Reply, Server, completion, serve
from tests.train.published_sampling import SETTINGS, edit, publish

RIGHT = "a, b = map(int, input().split())\nprint(a + b)"
WRONG = "print(3)"
DOUBLE = "class Solution:\n    def double(self, a):\n        return [2 * x for x in a]"


@pytest.fixture
def bench_file(tmp_path: Path) -> Path:
    return write_rows(
        tmp_path / "test.jsonl",
        [make_row("a"), make_row("b", difficulty="hard"), make_call_row("c")],
    )


def file_config(
    tmp_path: Path, bench_file: Path, answers: dict[str, list[str]], **changes: str
) -> EvalConfig:
    path = tmp_path / f"answers{len(list(tmp_path.glob('answers*')))}.json"
    path.write_text(
        json.dumps([{"question_id": name, "code_list": codes} for name, codes in answers.items()])
    )
    overrides = {
        "benchmark.path": str(bench_file),
        "generation.kind": "file",
        "generation.path": str(path),
    }
    return load_config(EvalConfig, (), {"judging.workers": "1", **overrides, **changes})


def run(config: EvalConfig, folder: Path) -> dict[str, Any]:
    with StepDisplay() as display:
        return run_evaluation(config, run_directory=folder, observer=display)


def cell(
    results: dict[str, Any],
    platform: str = "all",
    difficulty: str = "all",
    k: int = 1,
) -> dict[str, Any]:
    wanted = (platform, difficulty, k)
    return next(c for c in results["cells"] if (c["platform"], c["difficulty"], c["k"]) == wanted)


def test_answers_from_a_file_become_a_grid_once_and_a_fault_is_in_no_figure_and_judged_again(
    tmp_path: Path, bench_file: Path
) -> None:
    answers = {"a": [RIGHT, WRONG], "b": [WRONG, WRONG], "c": [DOUBLE, DOUBLE]}
    config = file_config(tmp_path, bench_file, answers)
    results = run(config, tmp_path / "run")
    # Of two answers each a has one right, b none, c both: on average 1/2; two of three have one.
    assert cell(results)["value"] == pytest.approx(0.5)
    assert cell(results, k=2)["value"] == pytest.approx(2 / 3)
    assert cell(results, "atcoder")["value"] == pytest.approx(0.25)
    assert cell(results, "atcoder", "hard")["value"] == 0.0
    assert cell(results, "leetcode", "medium")["num_problems"] == 1
    assert results["outcomes"] == {"accepted": 3, "wrong_answer": 3}
    assert results["is_complete"]
    folder = EvaluationFolder(tmp_path / "run")
    assert folder.read_manifest()["benchmark"]["num_problems"] == 3
    assert json.loads(folder.results.read_text()) == json.loads(json.dumps(results))
    assert "| atcoder " in folder.report.read_text()
    written = folder.verdicts.read_bytes()
    assert run(config, tmp_path / "run") == results
    assert folder.verdicts.read_bytes() == written
    rows = [json.loads(line) for line in written.splitlines()]
    faulty = []
    for row in rows:
        faulty.append({**row, "verdict": "sandbox_fault"} if row["problem_id"] == "b" else row)
    folder.verdicts.write_text("".join(json.dumps(row) + "\n" for row in faulty))
    without = summarise(folder)
    # b is in no figure: the mean of 1/2 and 1.
    assert without["num_unscored"] == 2
    assert cell(without)["value"] == 0.75
    assert cell(without)["num_problems"] == 2
    again = run(config, tmp_path / "run")
    assert again["num_unscored"] == 0
    assert cell(again)["num_problems"] == 3
    # The six of before, and the two that were judged again.
    assert len(folder.verdicts.read_text().splitlines()) == 8


def test_a_changed_config_benchmark_or_file_or_another_place_is_refused(
    tmp_path: Path, bench_file: Path
) -> None:
    answers = {"a": [RIGHT], "b": [RIGHT], "c": [DOUBLE]}
    config = file_config(tmp_path, bench_file, answers)
    results = run(config, tmp_path / "run")
    path = {"generation.path": str(tmp_path / "answers0.json")}
    other = file_config(
        tmp_path,
        bench_file,
        answers,
        **path,
        **{"benchmark.dialect": "livecodebench"},
    )
    with pytest.raises(
        DataError, match=r'another config \(benchmark\.dialect: "plain" -> "livecodebench"\)'
    ):
        run(other, tmp_path / "run")
    # The number of workers changes no verdict, and so is no other config.
    run(
        file_config(tmp_path, bench_file, answers, **path, **{"judging.workers": "2"}),
        tmp_path / "run",
    )
    written = (tmp_path / "answers0.json").read_text()
    (tmp_path / "answers0.json").write_text(written.replace("print(a + b)", "print(b + a)"))
    with pytest.raises(DataError, match="began with generations"):
        run(config, tmp_path / "run")
    (tmp_path / "answers0.json").write_text(written)
    folder = EvaluationFolder(tmp_path / "run")
    for damaged, text, why in (
        (folder.questions, "", "was edited or damaged; type the evaluation's command again"),
        (folder.questions, "[]\n", "line 1 is list, not an object"),
        (folder.samples, '{"problem_id": 3}\n', "problem_id = 3: must be text"),
        (folder.samples, "", "holds no verdict yet"),
        (folder.verdicts, '{"problem_id": "a"}\n', "a line is no verdict on a sample"),
        (folder.manifest, '{"kind": "evaluation", "config": 3}', "is no evaluation's, or damaged"),
    ):
        kept = damaged.read_bytes()
        damaged.write_text(text)
        with pytest.raises(DataError, match=why):
            summarise(folder)
        if not text:
            assert run(config, folder.root) == results
        damaged.write_bytes(kept)
    write_rows(bench_file, [make_row("a"), make_row("b"), make_call_row("c")])
    with pytest.raises(DataError, match="began with benchmark"):
        run(config, tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(DataError, match="is not empty and holds no evaluation"):
        run(config, tmp_path / "other")
    with pytest.raises(DataError, match="is not a writable folder"):
        run(config, bench_file / "run")


def test_two_runs_are_compared_problem_by_problem_and_shown(
    tmp_path: Path,
    bench_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(
        file_config(tmp_path, bench_file, {"a": [WRONG], "b": [WRONG], "c": [DOUBLE]}),
        tmp_path / "old",
    )
    run(
        file_config(tmp_path, bench_file, {"a": [RIGHT], "b": [WRONG], "c": [DOUBLE]}),
        tmp_path / "new",
    )
    change = compare(EvaluationFolder(tmp_path / "old"), EvaluationFolder(tmp_path / "new"))
    assert change["num_problems"] == 3
    assert change["same_benchmark"] is True
    assert cell(change)["value"] == pytest.approx(1 / 3)
    assert cell(change, "atcoder", "easy")["value"] == 1.0
    assert cell(change, "leetcode")["value"] == 0.0
    main(["report", str(tmp_path / "old")])
    assert "33.3 [" in capsys.readouterr().out
    main(["report", str(tmp_path / "new"), "--against", str(tmp_path / "old")])
    shown = capsys.readouterr().out
    assert "old -> new: 3 problems of both, paired" in shown
    assert "+33.3" in shown
    with pytest.raises(SystemExit, match="2"):
        main(["report", str(tmp_path / "new"), "--pass-at", "0"])
    assert 'Invalid value "0" for --pass-at. Must be > 0.' in capsys.readouterr().err


def answer_right(body: dict[str, Any], number: int) -> Reply:
    asked = body["messages"][-1]["content"]
    code = DOUBLE if "class Solution" in asked else RIGHT
    return completion(f"Here:\n```python\n{code}\n```")


def endpoint_words(server: Server, bench_file: Path, folder: Path) -> list[str]:
    return [
        *("eval", "--benchmark.path", str(bench_file), "--generation.kind", "endpoint"),
        *(
            "--generation.base_url",
            server.url,
            "--generation.model",
            "m",
            "--sampling.num_samples",
            "3",
        ),
        *("--generation.concurrency", "1", "--run-dir", str(folder)),
    ]


def test_a_killed_run_resumes_where_it_stopped(tmp_path: Path, bench_file: Path) -> None:
    folder = EvaluationFolder(tmp_path / "run")
    with serve(answer_right, seconds=0.3) as server:
        words = endpoint_words(server, bench_file, folder.root)
        process = subprocess.Popen([sys.executable, "-m", "microcoder", *words], env={**os.environ})
        deadline = time.monotonic() + 60
        while not (folder.samples.exists() and len(folder.samples.read_bytes().splitlines()) >= 3):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = folder.samples.read_bytes().rpartition(b"\n")[0] + b"\n"
    folder.samples.write_bytes(kept + '{"problem_id": "a", "comple…'.encode()[:-1])
    num_kept = len(kept.splitlines())
    assert 3 <= num_kept < 9
    with serve(answer_right) as server:
        recorded = json.loads(folder.manifest.read_text())
        recorded["config"]["generation"]["base_url"] = server.url
        folder.manifest.write_text(json.dumps(recorded))
        main(endpoint_words(server, bench_file, folder.root))
        assert len(server.requests) == 9 - num_kept
        results = json.loads(folder.results.read_text())
    assert folder.samples.read_bytes().startswith(kept)
    assert len(folder.read_samples()) == len(folder.samples.read_text().splitlines()) == 9
    assert results["num_samples"] == 9
    assert cell(results)["value"] == 1.0
    assert results["is_complete"] is True


def test_prompts_are_livecodebenchs_to_the_letter(tmp_path: Path, bench_file: Path) -> None:
    config = file_config(tmp_path, bench_file, {})
    stdin, _, call = load_questions(config)
    system, user = build_messages(stdin, config, build_prompt_builder(config))
    assert system["content"].startswith(
        "You are an expert Python programmer. You will be given a question"
    )
    assert user["content"] == (
        "### Question:\n"
        "Print the sum of two numbers.\n\n"
        "### Format: Read the inputs from stdin solve the problem and "
        "write the answer to stdout (do not directly test on the sample inputs). Enclose "
        "your code within delimiters "
        "as follows. Ensure that when the python program runs, it reads the inputs, runs "
        "the algorithm and writes "
        "output to STDOUT.\n"
        "```python\n"
        "# YOUR CODE HERE\n"
        "```\n\n"
        "### Answer: (use the provided format with backticks)\n\n"
    )
    asked = build_messages(call, config, build_prompt_builder(config))
    assert f"```python\n{call.problem.starter_code}\n```\n\n### Answer" in asked[1]["content"]


def test_questions_are_asked_in_the_words_of_training_each_with_a_seed_of_its_own(
    tmp_path: Path, bench_file: Path
) -> None:
    with serve(answer_right) as server:
        words = (
            "--prompt.style template --prompt.options.text 'Q: {statement}' --prompt.system "
            "'Be brief.'"
        )
        words += " --prompt.chat_template_options.enable_thinking false"
        main([*endpoint_words(server, bench_file, tmp_path / "one"), *shlex.split(words)])
        asked = list(server.requests)
        main(endpoint_words(server, bench_file, tmp_path / "two"))
        again = server.requests[9:]
    assert asked[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert asked[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert asked[0]["messages"][1]["content"].startswith("Q: ")
    assert len({body["seed"] for body in asked}) == 9
    assert {body["seed"] for body in again} == {body["seed"] for body in asked}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"generation.kind": "file", "generation.path": "a.json", "prompt.system": "s"},
            "asks nothing; leave out prompt",
        ),
        ({"benchmark.kind": "mbpp", "prompt.style": "instruct"}, "mbpp does not support"),
        (
            {"benchmark.start_date": "soon"},
            "benchmark.start_date = 'soon': must be a date, such as 2025-01-31",
        ),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(changes: dict[str, str], message: str) -> None:
    keys = {"benchmark.path": "b.jsonl", **changes}
    if "generation.kind" not in changes:
        keys["generation.model"] = "m"
    with pytest.raises(ConfigError, match=message):
        load_config(EvalConfig, (), keys)


def model_config(folder: Path, model: Path, problems: list[Problem], **changes: str) -> EvalConfig:
    write_problems(folder / "problems.jsonl", problems)
    keys = {"benchmark.kind": "problems", "benchmark.path": str(folder / "problems.jsonl")}
    given = {
        "generation.model": str(model),
        "generation.dtype": "float32",
        "generation.batch_size": "24",
    }
    return load_config(EvalConfig, (), {**keys, **given, **changes})


EASY = generate_problems(
    split="heldout",
    num_problems=12,
    seed=0,
    tiers=("easy",),
    styles=("stdin",),
)


@pytest.mark.slow
def test_a_tiny_model_is_evaluated_with_transformers(tmp_path: Path, tiny_checkpoint: Path) -> None:
    sampling = {
        "sampling.num_samples": "4",
        "sampling.max_tokens": "96",
        "sampling.temperature": "0.5",
    }
    config = model_config(tmp_path, tiny_checkpoint, EASY, **sampling, **{"prompt.style": "bare"})
    results = run(config, tmp_path / "run")
    assert results["num_samples"] == 48
    assert results["is_complete"] is True
    assert results["outcomes"].get("accepted", 0) > 0
    samples = EvaluationFolder(tmp_path / "run").read_samples().values()
    for sample in samples:
        assert sample.num_tokens
        assert sample.num_tokens <= 96
    for sample in samples:
        if sample.is_truncated:
            assert sample.num_tokens == 96
    assert run(config, tmp_path / "again")["outcomes"] == results["outcomes"]


def test_a_base_model_is_asked_in_plain_text(
    tmp_path: Path,
    tiny_checkpoint: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_checkpoint, base)
    (base / "chat_template.jinja").unlink()
    few = {"sampling.num_samples": "1", "sampling.max_tokens": "24", "sampling.temperature": "0"}
    config = model_config(tmp_path, base, EASY[:2], **few)
    assert run(config, tmp_path / "run")["is_complete"]
    assert "has no chat template: prompts are plain text" in capsys.readouterr().err


def test_no_setting_of_a_checkpoint_changes_an_evaluation_and_the_manifest_names_the_number_format(
    tmp_path: Path, tiny_checkpoint: Path
) -> None:
    few = {"sampling.num_samples": "2", "sampling.max_tokens": "24", "sampling.temperature": "0.8"}
    shown: list[set[tuple[Any, ...]]] = []
    names = ("repetition_penalty", "no_repeat_ngram_size", "min_p", "num_beams", "suppress_tokens")
    model = publish(tiny_checkpoint, tmp_path / "model", **{name: SETTINGS[name] for name in names})
    for number, source in enumerate((tiny_checkpoint, model)):
        config = model_config(tmp_path, source, EASY[:4], **few)
        run(config, tmp_path / f"run{number}")
        samples = EvaluationFolder(tmp_path / f"run{number}").read_samples().values()
        shown.append({(one.problem_id, one.sample_index, one.completion) for one in samples})
    assert shown[0] == shown[1]
    texts = []
    for one in samples:
        texts.append(one.prompt or "")
    for text in texts:
        assert text.endswith("<|sep|>")
    machine = EvaluationFolder(tmp_path / "run0").read_manifest()["machine"]
    assert machine["dtype"] == "float32"


def test_a_resumed_evaluation_gives_the_same_answers_in_the_number_format_of_the_first_start(
    tmp_path: Path, tiny_checkpoint: Path
) -> None:
    few = {"sampling.num_samples": "2", "sampling.max_tokens": "24", "generation.dtype": "auto"}
    config = model_config(tmp_path, tiny_checkpoint, EASY[:4], **few)
    run(config, tmp_path / "run")
    folder = EvaluationFolder(tmp_path / "run")
    whole = folder.read_samples()
    # As a kill leaves it, on a machine that had another number format.
    lines = folder.samples.read_text().splitlines(keepends=True)
    folder.samples.write_text("".join(lines[:3]))
    other = {"float32": "bfloat16", "bfloat16": "float32"}[
        folder.read_manifest()["machine"]["dtype"]
    ]
    edit(folder.manifest, machine={**folder.read_manifest()["machine"], "dtype": other})
    run(config, tmp_path / "run")
    assert folder.read_manifest()["machine"]["dtype"] == other
    assert set(folder.read_samples()) == set(whole)


def test_answers_beyond_the_context_of_a_model_are_refused(
    tmp_path: Path, tiny_checkpoint: Path
) -> None:
    config = model_config(tmp_path, tiny_checkpoint, EASY[:2], **{"sampling.max_tokens": "1025"})
    with pytest.raises(ConfigError, match=r"sampling\.max_tokens = 1,025 make .* 1,024"):
        plan_evaluation(config, run_directory=tmp_path / "plan", observer=StepDisplay())
    config = model_config(tmp_path, tiny_checkpoint, EASY[:2], **{"sampling.max_tokens": "1024"})
    # With the prompt it does not fit, which the dry run counts, too.
    with pytest.raises(ConfigError, match=r"the longest prompt .* pass --sampling\.max_tokens"):
        plan_evaluation(config, run_directory=tmp_path / "plan", observer=StepDisplay())
    with pytest.raises(ConfigError, match=r"the longest prompt .* pass --sampling\.max_tokens"):
        run(config, tmp_path / "run")


FILTERED: Reply = (200, {}, b'{"choices": []}')
BUSY: Reply = (503, {"Retry-After": "0"}, b"warming up")


SAMPLING = ResponseSampling(num_samples=2, temperature=0.5, top_p=0.9, max_tokens=77)


def config(url: str, **changes: Any) -> EndpointGeneration:
    return EndpointGeneration(kind="endpoint", base_url=url, model="m", **changes)


def requests(number: int) -> list[ResponseRequest]:
    asked = []
    for index in range(number):
        asked.append(
            ResponseRequest(
                f"p{index}",
                0,
                [{"role": "user", "content": f"ask {index}"}],
                100 + index,
            )
        )
    return asked


def echo(body: dict[str, Any], number: int) -> Reply:
    return completion(body["messages"][0]["content"].upper())


def test_every_request_is_answered_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")
    with serve(echo, seconds=0.02) as server:
        asked = config(server.url, concurrency=3, api_key_env="SOME_KEY")
        answers = {}
        for request, response in ask_endpoint(asked, requests(12), SAMPLING):
            answers[request.problem_id] = response
    assert {name: response.text for name, response in answers.items()} == {
        f"p{i}": f"ASK {i}" for i in range(12)
    }
    assert answers["p0"].num_tokens == 2
    assert not answers["p0"].is_truncated
    assert 1 < server.most_at_once <= 3
    assert set(server.keys) == {"Bearer secret"}
    sent = next(body for body in server.requests if body["seed"] == 103)
    assert sent == {
        "path": "/v1/chat/completions",
        "model": "m",
        "messages": [{"role": "user", "content": "ask 3"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 77,
        "seed": 103,
    }


def test_what_a_server_refuses_can_be_left_out_and_a_response_at_its_length_limit_is_cut_off() -> (
    None
):
    with serve(lambda body, number: completion("```", finish="length")) as server:
        changes = {
            "send_seed": False,
            "max_tokens_key": "max_completion_tokens",
            "extra": {"top_k": 20},
        }
        ((_, response),) = ask_endpoint(config(server.url, **changes), requests(1), SAMPLING)
    assert response.is_truncated
    assert "seed" not in server.requests[0]
    assert server.requests[0]["max_completion_tokens"] == 77
    assert server.requests[0]["top_k"] == 20
    assert server.keys == [None]


def test_what_a_server_parsed_as_thinking_is_part_of_the_response() -> None:
    replies = [
        completion("```python\nprint(2)\n```", reasoning_content="```python\nprint(1)\n```"),
        completion(
            None,
            finish="length",
            reasoning="```python\nprint(1)\n```",
            reasoning_details=[{}],
        ),
        completion("```python\nprint(3)\n```", reasoning=None, reasoning_content=["odd"]),
    ]
    problem = Problem(id="p0", tests=(TestCase(input="", output="2"),))
    question = Question(problem, "", lambda: problem)
    with serve(lambda body, number: replies[number - 1]) as server:
        answers = ask_endpoint(config(server.url, concurrency=1), requests(3), SAMPLING)
        samples = [Sample.from_response(question, 0, response) for _, response in answers]
    assert [sample.program for sample in samples] == ["print(2)\n", None, "print(3)\n"]
    assert [str(sample.completion).count("print(1)") for sample in samples] == [1, 1, 0]
    assert samples[1].extraction == "no_answer_after_thinking"


def test_a_busy_server_is_asked_again_and_one_whose_reply_cannot_be_unpacked() -> None:
    late = (524, {"Retry-After": "0"}, b"a proxy gave up")
    first = {
        1: BUSY,
        2: late,
        4: (200, {"Content-Encoding": "gzip"}, b"no gzip"),
        6: completion("\ud800"),
        7: FILTERED,
    }
    with serve(lambda body, number: first.get(number) or echo(body, number)) as server:
        answers = list(
            ask_endpoint(config(server.url, concurrency=1, max_retries=2), requests(4), SAMPLING)
        )
    assert len(server.requests) == 7
    assert [answer.text for _, answer in answers] == ["ASK 0", "ASK 1", "?", ""]


def test_a_server_that_stays_busy_or_is_not_there_or_has_no_address_ends_it_with_what_to_do() -> (
    None
):
    with (
        serve(lambda body, number: BUSY) as server,
        pytest.raises(
            ConfigError, match=r"failed 2 times, last: status 503: warming up; check that it is up"
        ),
    ):
        list(ask_endpoint(config(server.url, concurrency=1, max_retries=1), requests(3), SAMPLING))
    with pytest.raises(ConfigError, match=r"ConnectError.*type the same command again to resume"):
        list(ask_endpoint(config(server.url, max_retries=0), requests(1), SAMPLING))
    with pytest.raises(
        ConfigError,
        match=r"is not an address \(.*port.*; write one such as http://localhost:8000/v1",
    ):
        list(ask_endpoint(config("http://localhost:80a0/v1"), requests(1), SAMPLING))


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            (401, {}, b"no key"),
            r"status 401: no key; check the address .*, and set the key in OPENAI_API_KEY",
        ),
        (
            (400, {}, b"bad top_p"),
            r"status 400: bad top_p; .* the name of the model and the sampling options",
        ),
        ((200, {}, b"<html>"), r"something else than a chat completion .*<html>"),
        ((200, {}, b'{"choices": [1]}'), r"something else than a chat completion \(TypeError"),
        ((200, {}, b'{"choices": [{"message": {"content": [1]}}]}'), r"content is list"),
    ],
)
def test_what_no_retry_helps_is_said_at_once(reply: Reply, why: str) -> None:
    with serve(lambda body, number: reply) as server, pytest.raises(ConfigError, match=why):
        list(ask_endpoint(config(server.url, concurrency=1), requests(2), SAMPLING))
    assert len(server.requests) == 1


def test_what_came_before_an_error_is_kept() -> None:
    with serve(
        lambda body, number: echo(body, number) if number <= 3 else (401, {}, b"")
    ) as server:
        answers = ask_endpoint(config(server.url, concurrency=1), requests(9), SAMPLING)
        assert len([next(answers) for _ in range(3)]) == 3
        with pytest.raises(ConfigError, match="status 401"):
            next(answers)
