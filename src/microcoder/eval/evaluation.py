"""An evaluation from start to finish: `run_evaluation` generates, judges and summarises.

Generating and judging are two passes: each resumes from what the folder holds, and the second
needs no model.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from microcoder.data.benchmarks import ProblemFile, Question, digest_questions
from microcoder.data.completions import Completion
from microcoder.data.formats.rows import find_source
from microcoder.eval.answers import read_samples
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
    build_messages,
    build_prompt_builder,
    load_questions,
    question_record,
)
from microcoder.eval.report import EvaluationFolder, Key, Sample, render_results, summarise
from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extensions import ExtensionSource, describe_file
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
from microcoder.train.run.preflight import check_answer_lengths

_TESTS_AT_ONCE_BYTES = 256 << 20
"""Most bytes of tests loaded at once for judging.

Those of a LiveCodeBench release do not fit in memory.
"""

_Response = tuple[ResponseRequest, Completion, str | None]
"""A request, the model's response, and the text of the prompt as the model was given it, if known.
"""


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
    """Return an evaluation with its inputs read and checked, nothing written.

    Raises as `run_evaluation` does.
    """
    folder = EvaluationFolder(run_directory)
    generation = config.generation
    folder.check_ours()
    if folder.has_begun:
        check_same_config(folder, config, neutral=NEUTRAL_KEYS)
    observer.phase("reading the benchmark")
    ask = build_prompt_builder(config)
    extract = build_extractor(config.extractor)
    questions = load_questions(config)
    saved: list[Sample] = []
    if isinstance(generation, GenerationFile):
        saved, num_ignored = read_samples(generation, questions, extract)
        if num_ignored:
            observer.note(f"{num_ignored} answers to problems outside the selection were ignored")
    elif isinstance(generation, Transformers):
        _check_model(generation, config, questions, ask)
    return Evaluation(folder, config, questions, saved, ask, extract, observer)


def _check_model(
    generation: Transformers, config: EvalConfig, questions: Sequence[Question], ask: PromptBuilder
) -> None:
    """Raise ConfigError unless a model can generate in this process, and its prompts fit."""
    # Looked up and not imported: that takes long, and the config may still be wrong.
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise ConfigError(
            "generating with a local model needs torch and transformers, which are not installed; "
            f"type: {how_to_install('train')}, or use generation.kind endpoint or file"
        )
    folder = model_folder(generation.model)
    if folder:
        check_model_folder(folder)
    check_answer_lengths(
        generation.model,
        generation.revision,
        [build_messages(question, config, ask) for question in questions],
        {"sampling.max_tokens": config.sampling.max_tokens},
        config.prompt.chat_template_options,
    )


def _describe_device(config: EvalConfig) -> dict[str, str]:
    """Return the device and the number format by which a model in this process generates.

    It is empty without such a model.
    """
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
    """An evaluation whose inputs are read.

    Each method does one pass, or the rest of it when resumed.
    """

    folder: EvaluationFolder
    config: EvalConfig
    questions: list[Question]
    saved: list[Sample]
    """The answers of the config's file; empty if a model generates them."""
    ask: PromptBuilder
    extract: Extractor
    observer: Observer

    def open_folder(self, command: Sequence[str]) -> None:
        """Write a new evaluation's manifest.

        Raises:
            DataError: an old one has other problems, answers, prompt or code.
        """
        folder = self.folder
        config = self.config
        origin = self._describe_origin()
        if folder.has_begun:
            # Another process may have come first.
            check_same_config(folder, config, neutral=NEUTRAL_KEYS)
            check_unchanged(folder.root, folder.read_manifest(), origin, DataError)
        else:
            # Before a model is loaded: a machine without a sandbox cannot finish what it starts.
            with Judge(workers=1, **config.judging.judge_options()) as judge:
                isolation = judge.isolation.as_record()
                environment = judge.environment.as_record()
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
        # Also for an old one: it may have been written by another version, or damaged.
        write_rows(folder.questions, map(question_record, self.questions))

    def _describe_origin(self) -> dict[str, Any]:
        """Return digests of the problems, the answers and the code that the results hang on."""
        generation = self.config.generation
        answers = None
        if isinstance(generation, GenerationFile) and generation.path.is_file():
            answers = digest_input(generation.path)
        prompt = self.ask.style.source
        return {
            "benchmark": {
                "num_problems": len(self.questions),
                "digest": digest_questions(self.questions),
            },
            "generations": answers,
            "prompt": {"digest": prompt.digest if prompt else None},
            **self._digest_extensions(),
        }

    def collect_samples(self) -> None:
        """Write the samples that the folder lacks: the config's answers, or generated now."""
        folder = self.folder
        generation = self.config.generation
        done = folder.read_samples()
        if isinstance(generation, GenerationFile):
            # Answers of a file cost nothing: half of them are written again, not continued.
            if len(done) < len(self.saved):
                write_rows(folder.samples, (sample.as_row() for sample in self.saved))
            return
        requests = self._missing_requests(done)
        if not requests:
            return
        if isinstance(generation, EndpointGeneration):
            responses = self._ask_server(generation, requests)
        else:
            responses = self._ask_model(generation, requests)
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

    def _missing_requests(self, done: Collection[Key]) -> list[ResponseRequest]:
        """Return requests for the samples that are not done."""
        sampling = self.config.sampling
        requests = []
        for question in self.questions:
            for index in range(sampling.num_samples):
                if (question.id, index) not in done:
                    messages = build_messages(question, self.config, self.ask)
                    seed = _seed(sampling.seed, question.id, index)
                    requests.append(ResponseRequest(question.id, index, messages, seed))
        return requests

    def _ask_server(
        self, generation: EndpointGeneration, requests: Sequence[ResponseRequest]
    ) -> Iterator[_Response]:
        answered = ask_endpoint(
            generation,
            requests,
            self.config.sampling,
            chat_template_options=self.config.prompt.chat_template_options,
        )
        for request, response in answered:
            # What a server makes of the chat is not known here.
            yield request, response, None

    def _ask_model(
        self, generation: Transformers, requests: Sequence[ResponseRequest]
    ) -> Iterator[_Response]:
        # Pulls in torch.
        from microcoder.train.run.weights import GenerationSettings, respond

        # That of the first start holds, also on another machine.
        dtype = self.folder.read_manifest()["machine"].get("dtype") or generation.dtype
        self.observer.note(f"loading {generation.model} in {dtype}")
        prompts: list[str] = []
        sampling = self.config.sampling
        settings = GenerationSettings(
            batch_size=generation.batch_size,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            top_k=sampling.top_k,
            revision=generation.revision,
            dtype=dtype,
            template_options=self.config.prompt.chat_template_options,
        )
        responses = respond(
            generation.model,
            [request.messages for request in requests],
            settings,
            seeds=[request.seed for request in requests],
            note=self.observer.note,
            report=self.observer.sampling,
            keep_prompts=prompts.extend,
        )
        # Lazily, so that each response is kept as soon as it is there.
        return ((requests[index], response, prompts[index]) for index, response in responses)

    def judge_samples(self) -> None:
        """Judge the samples without a verdict, some problems at a time to bound memory."""
        samples = self.folder.read_samples()
        judged = self.folder.find_judged()
        pending: dict[str, list[Sample]] = {}
        for key, sample in sorted(samples.items()):
            if key not in judged:
                pending.setdefault(sample.problem_id, []).append(sample)
        self.observer.phase("judging", done=len(judged), total=len(samples))
        # Where all is judged no judge is started, which takes a while.
        if pending:
            judging = self.config.judging
            with Judge(workers=judging.workers, **judging.judge_options()) as judge:
                # Verdicts of one evaluation are not to hang on when it was resumed.
                at_first = _name_environment(self.folder.read_manifest()["environment"])
                now = _name_environment(judge.environment.as_record())
                check_unchanged(self.folder.root, at_first, now, DataError)
                for group in self._cut_groups(pending):
                    self._judge_group(judge, group)
        counts = Counter(row["verdict"] for row in self.folder.read_verdicts().values())
        num_faults = counts.get("sandbox_fault", 0)
        if num_faults:
            self.observer.note(
                f"{num_faults} samples have no verdict because the sandbox failed; they are in no "
                "result; type the same command again to judge only these"
            )

    def _cut_groups(
        self, pending: Mapping[str, Sequence[Sample]]
    ) -> Iterator[list[tuple[Problem, Sample]]]:
        """Yield groups of samples whose problems' tests fit in memory."""
        group: list[tuple[Problem, Sample]] = []
        num_bytes = 0
        for question in self.questions:
            if question.id not in pending:
                continue
            problem = question.load()
            num_bytes += sum(len(test.input) + len(test.output) for test in problem.tests)
            group += [(problem, sample) for sample in pending[question.id]]
            if num_bytes > _TESTS_AT_ONCE_BYTES:
                yield group
                group = []
                num_bytes = 0
        if group:
            yield group

    def _judge_group(self, judge: Judge, group: Sequence[tuple[Problem, Sample]]) -> None:
        def keep(index: int, verdict: Verdict) -> None:
            _, sample = group[index]
            row = verdict_record("", verdict)
            del row["id"]
            row["problem_id"] = sample.problem_id
            row["sample_index"] = sample.sample_index
            # Each as it comes, so that a kill loses none.
            append_row(self.folder.verdicts, row)
            self.observer.advance(verdict.outcome.value)

        problems = []
        programs = []
        for problem, sample in group:
            problems.append(problem)
            programs.append(Program(sample.program, problem.language, sample.extraction))
        judge.judge(programs, problems, on_verdict=keep)

    def _digest_extensions(self) -> dict[str, Any]:
        """Return the digests of the user's own files; empty without any."""
        sources: list[ExtensionSource | None] = []
        sources += [describe_file("language", str(path)) for path in self.config.judging.languages]
        sources.append(self.extract.extension.source)
        benchmark = self.config.benchmark
        if isinstance(benchmark, ProblemFile) and benchmark.format is not None:
            sources.append(find_source(benchmark.format))
        digests = {}
        for source in sources:
            if source is not None:
                digests[f"{source.noun} {source.reference}"] = source.digest
        return {"extensions": digests} if digests else {}


def _name_environment(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a judge's environment that verdicts depend on, as messages name them."""
    return {"programs on Python": record["python"], "packages": record["packages"]["pins"]}


def _seed(seed: int, problem_id: str, sample_index: int) -> int:
    """Return the seed of a sample; it does not depend on which samples came before."""
    # By name and not by position: a selection of the problems samples the same responses.
    digest = hashlib.sha256(f"{seed} {problem_id} {sample_index}".encode()).digest()
    # 31 bits, which fit a signed integer.
    return int.from_bytes(digest[:4], "big") >> 1
