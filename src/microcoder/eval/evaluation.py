"""An evaluation from start to finish: `run_evaluation` generates, judges and summarises.

Generating and judging are two passes: each resumes from what the folder holds, and the second needs no model.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from microcoder.data.benchmarks import ProblemFile, Question, digest_questions
from microcoder.data.completions import Completion
from microcoder.data.formats.rows import find_source
from microcoder.eval.config import (
    NEUTRAL_KEYS,
    EndpointGeneration,
    EvalConfig,
    GenerationFile,
    Transformers,
)
from microcoder.eval.generation import (
    ResponseRequest,
    ask_endpoint,
    build_asker,
    build_messages,
    load_questions,
    question_record,
    read_samples,
)
from microcoder.eval.report import EvaluationFolder, Sample, render_results, summarise
from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extensions import describe_file
from microcoder.judge.core.extract import Extractor
from microcoder.judge.core.files import (
    append_row,
    check_unchanged,
    write_json,
    write_rows,
    write_text,
)
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.prompts import PromptBuilder
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.run.submissions import digest_input, verdict_record
from microcoder.train.recipe.recipe import build_extractor
from microcoder.train.run.checkpoints import Observer, check_model_folder, model_folder
from microcoder.train.run.manifest import check_same_config, describe_start, digest_keys
from microcoder.train.run.preflight import check_answers

_TESTS_AT_ONCE_BYTES = 256 << 20
"""Most bytes of tests loaded at once for judging: those of a LiveCodeBench release do not fit in memory."""


def run_evaluation(
    config: EvalConfig, *, run_directory: Path, observer: Observer, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Start or resume an evaluation; return its results.

    Raises:
        ConfigError: the config contradicts itself or the machine, or an endpoint refuses.
        DataError: a file is broken, or the folder holds an evaluation under another config.
        EvaluatorFault: there is no sandbox on this machine.
        KeyboardInterrupt: stopped by the user; the same call resumes.
    """
    # Before there is a folder: a mistake in a file leaves none.
    run = plan_evaluation(config, run_directory=run_directory, observer=observer)
    folder = run.folder
    with folder.lock():
        run.open_folder(command)
        run.collect_samples()
        run.judge_samples()
        results = summarise(folder)
        write_json(folder.results, results)
        write_text(folder.report, f"# {results['name']}\n\n{render_results(results)}\n")
    return results


def plan_evaluation(config: EvalConfig, *, run_directory: Path, observer: Observer) -> Evaluation:
    """Return an evaluation with its inputs read and checked, nothing written; raises as `run_evaluation` does."""
    folder, generation = EvaluationFolder(run_directory), config.generation
    folder.check_ours()
    if folder.has_begun:
        check_same_config(folder, config, neutral=NEUTRAL_KEYS)
    observer.phase("reading the benchmark")
    ask, extract = build_asker(config), build_extractor(config.extractor)
    questions, saved = load_questions(config), []
    if isinstance(generation, GenerationFile):
        saved, num_ignored = read_samples(generation, questions, extract)
        if num_ignored:
            observer.note(f"{num_ignored} answers to problems outside the selection were ignored")
    elif isinstance(generation, Transformers):
        if find_spec("torch") is None or find_spec("transformers") is None:
            raise ConfigError(
                "generating with a local model needs torch and transformers, which are not installed; "
                f"type: {how_to_install('train')}, or use generation.kind endpoint or file"
            )
        if place := model_folder(generation.model):
            check_model_folder(place)
        check_answers(
            generation.model,
            generation.revision,
            [build_messages(question, config, ask) for question in questions],
            {"sampling.max_tokens": config.sampling.max_tokens},
            config.prompt.chat_template_options,
        )
    return Evaluation(folder, config, questions, saved, ask, extract, observer)


def _describe_device(config: EvalConfig) -> dict[str, str]:
    """Return the device and the number format by which a model in this process generates; empty without one."""
    if not isinstance(config.generation, Transformers):
        return {}
    # Pulls in torch.
    from microcoder.train.run.weights import describe_device

    return describe_device(config.generation.dtype)


def digest_config(config: EvalConfig) -> str:
    """Return a digest of every key that can change a result."""
    return digest_keys(config, neutral=NEUTRAL_KEYS)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation whose inputs are read; each method does one pass, or the rest of it when resumed."""

    folder: EvaluationFolder
    config: EvalConfig
    questions: list[Question]
    saved: list[Sample]
    """The answers of the config's file; empty if a model generates them."""
    ask: PromptBuilder
    extract: Extractor
    observer: Observer

    def open_folder(self, command: Sequence[str]) -> None:
        """Write a new evaluation's manifest; DataError if an old one has other problems, answers, prompt or code."""
        folder, config, ask = self.folder, self.config, self.ask
        source = ask.style.source
        generation = config.generation
        is_file = isinstance(generation, GenerationFile) and generation.path.is_file()
        origin = {
            "benchmark": {
                "num_problems": len(self.questions),
                "digest": digest_questions(self.questions),
            },
            "generations": digest_input(generation.path) if is_file else None,
            "prompt": {"digest": source.digest if source else None},
            **self._digest_extensions(),
        }
        if folder.has_begun:
            # Another process may have come first.
            check_same_config(folder, config, neutral=NEUTRAL_KEYS)
            check_unchanged(folder.root, folder.read_manifest(), origin, DataError)
        else:
            # Before a model is loaded: a machine without a sandbox cannot finish what it starts.
            with Judge(workers=1, **config.judging.judge_options()) as judge:
                isolation, environment = judge.isolation.as_record(), judge.environment.as_record()
            start = describe_start(config, name=folder.root.name, command=command)
            manifest = {
                **start,
                "machine": {**start["machine"], **_describe_device(config)},
                "kind": "evaluation",
                "digest": digest_config(config),
                **origin,
                "isolation": isolation,
                "environment": environment,
            }
            write_json(folder.manifest, manifest)
        write_rows(folder.questions, map(question_record, self.questions))

    def collect_samples(self) -> None:
        """Write the samples that the folder lacks: answers of the config's file, or generated now."""
        folder, config, sampling = self.folder, self.config, self.config.sampling
        done = folder.read_samples()
        if isinstance(config.generation, GenerationFile):
            if len(done) < len(self.saved):
                write_rows(folder.samples, (sample.as_row() for sample in self.saved))
            return
        requests = [
            ResponseRequest(
                question.id,
                index,
                build_messages(question, config, self.ask),
                _seed(sampling.seed, question.id, index),
            )
            for question in self.questions
            for index in range(sampling.num_samples)
            if (question.id, index) not in done
        ]
        if not requests:
            return
        options = config.prompt.chat_template_options
        texts: list[str] = []
        responses: Iterator[tuple[ResponseRequest, Completion, str | None]]
        if isinstance(config.generation, EndpointGeneration):
            answered = ask_endpoint(
                config.generation, requests, sampling, chat_template_options=options
            )
            # What a server makes of the chat is not known here.
            responses = ((request, response, None) for request, response in answered)
        else:
            # Pulls in torch.
            from microcoder.train.run.weights import respond

            # That of the first start holds, also on another machine.
            dtype = folder.read_manifest()["machine"].get("dtype") or config.generation.dtype
            self.observer.note(f"loading {config.generation.model} in {dtype}")
            answers = respond(
                config.generation.model,
                [request.messages for request in requests],
                seeds=[request.seed for request in requests],
                template_options=options,
                note=self.observer.note,
                report=self.observer.sampling,
                keep_prompts=texts.extend,
                dtype=dtype,
                **config.generation.model_dump(include={"batch_size", "revision"}),
                **sampling.model_dump(include={"temperature", "top_p", "max_tokens"}),
            )
            responses = (
                (requests[index], completion, texts[index]) for index, completion in answers
            )
        by_id = {question.id: question for question in self.questions}
        self.observer.phase("generating", done=len(done), total=len(done) + len(requests))
        for request, response, prompt in responses:
            sample = Sample.from_response(
                by_id[request.problem_id],
                request.sample_index,
                response,
                self.extract,
                prompt=prompt,
            )
            append_row(folder.samples, sample.as_row())
            self.observer.advance(sample.extraction)

    def judge_samples(self) -> None:
        """Judge the samples without a verdict, some problems at a time to bound memory."""
        samples, judged = self.folder.read_samples(), self.folder.judged()
        pending: dict[str, list[Sample]] = {}
        for key, sample in sorted(samples.items()):
            if key not in judged:
                pending.setdefault(sample.problem_id, []).append(sample)
        self.observer.phase("judging", done=len(judged), total=len(samples))
        if pending:
            judging = self.config.judging
            with Judge(workers=judging.workers, **judging.judge_options()) as judge:
                began, now = (
                    {"programs on Python": each["python"], "packages": each["packages"]["pins"]}
                    for each in (
                        self.folder.read_manifest()["environment"],
                        judge.environment.as_record(),
                    )
                )
                check_unchanged(self.folder.root, began, now, DataError)
                for group in self._cut_groups(pending):
                    self._judge_group(judge, group)
        counts = Counter(row["verdict"] for row in self.folder.read_verdicts().values())
        if num_faults := counts.get("sandbox_fault", 0):
            self.observer.note(
                f"{num_faults} samples have no verdict because the sandbox failed; they are in no result; "
                "type the same command again to judge only these"
            )

    def _cut_groups(
        self, pending: Mapping[str, Sequence[Sample]]
    ) -> Iterator[list[tuple[Problem, Sample]]]:
        group: list[tuple[Problem, Sample]] = []
        num_bytes = 0
        for question in (one for one in self.questions if one.id in pending):
            problem = question.load()
            num_bytes += sum(len(test.input) + len(test.output) for test in problem.tests)
            group += [(problem, sample) for sample in pending[question.id]]
            if num_bytes > _TESTS_AT_ONCE_BYTES:
                yield group
                group, num_bytes = [], 0
        if group:
            yield group

    def _judge_group(self, judge: Judge, group: Sequence[tuple[Problem, Sample]]) -> None:
        def keep(index: int, verdict: Verdict) -> None:
            sample = group[index][1]
            row = verdict_record("", verdict) | {
                "problem_id": sample.problem_id,
                "sample_index": sample.sample_index,
            }
            del row["id"]
            append_row(self.folder.verdicts, row)
            self.observer.advance(verdict.outcome.value)

        programs = [
            Program(sample.program, problem.language, sample.extraction)
            for problem, sample in group
        ]
        judge.judge(programs, [problem for problem, _ in group], on_verdict=keep)

    def _digest_extensions(self) -> dict[str, Any]:
        benchmark = self.config.benchmark
        named = benchmark.format if isinstance(benchmark, ProblemFile) else None
        brought = [
            *(describe_file("language", str(path)) for path in self.config.judging.languages),
            self.extract.extension.source,
            find_source(named) if named is not None else None,
        ]
        digests = {f"{one.noun} {one.reference}": one.digest for one in brought if one is not None}
        return {"extensions": digests} if digests else {}


def _seed(seed: int, problem_id: str, sample_index: int) -> int:
    digest = hashlib.sha256(f"{seed} {problem_id} {sample_index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
