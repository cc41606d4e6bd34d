"""The two steps that run programs: a model's attempts, and the verification.

What the steps of a build use and what decides nothing: folders, files of benchmarks, workers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from microcoder.data.build.config import BuildConfig, DifficultySettings, SourceSettings
from microcoder.data.completions import Endpoint, EndpointSettings
from microcoder.data.difficulty.selection import judge_attempts
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.row import Malformed
from microcoder.data.pipeline.parts import KeptRows, Part
from microcoder.data.pipeline.steps import Row, Work, digest
from microcoder.data.rowfiles import placed, read_file
from microcoder.data.verify import (
    Evidence,
    VerdictStore,
    VerifySettings,
    combine_counts,
    conclude,
    count_right,
    gather,
)
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json

_TESTS_MIB = 128
"""Memory for tests that a judge keeps ready: a build is done with a problem before it comes to the next."""


class Resources(Config):
    """Judge, endpoint and folders that all steps share; what decides a result is in the step's key by its content."""

    work: Path
    """Folder of answers, verdicts and counts."""
    benchmarks: tuple[SourceSettings, ...] = ()
    """Archives unpacked."""
    responses: Path | None = None
    """A model's attempts."""
    judge: JudgeOptions = JudgeOptions()

    def open_judge(self, **rules: Any) -> Judge:
        """Start a judge under further rules."""
        return Judge(self.judge, tests_mib=_TESTS_MIB, **rules)

    def open_endpoint(self, settings: EndpointSettings | None, opened: ExitStack) -> Endpoint | None:
        """Return a client that is closed with `opened`; None without settings."""
        if settings is None:
            return None
        endpoint = Endpoint(settings, cache=self.work / "answers")
        opened.callback(endpoint.close)
        return endpoint


_LEAST_AT_ONCE, _AT_ONCE_A_WORKER = 8, 4
"""Problems that are verified together, unless their tests are large."""
_BYTES_AT_ONCE = 16 << 20
"""Bytes of tests from which on fewer problems are verified together: each byte is held several times."""


@contextmanager
def open_attempts(settings: DifficultySettings, resources: Resources) -> Iterator[Work]:
    """Judge a model's attempts at each problem; its pass rate goes with the problem."""
    assert resources.responses is not None
    responses, model = read_responses(resources.responses), settings.pass_rates_of
    with resources.open_judge() as judge:

        def work(candidates: Collection[Candidate]) -> Iterable[Row]:
            candidates = list(candidates)
            rates = {
                name: f"{model}={passed}/{attempts}"
                for name, (passed, attempts) in judge_attempts(candidates, responses, judge).items()
            }
            return [_with_rate(candidate, rates.get(candidate.id), model) for candidate in candidates]

        yield work


def open_verdicts(settings: VerifySettings, resources: Resources) -> VerdictStore:
    """Open what was judged before: on one machine, since a file of SQLite is not for several."""
    return VerdictStore(resources.work / "verification" / "verdicts.sqlite")


@contextmanager
def open_verify(settings: VerifySettings, store: VerdictStore, resources: Resources) -> Iterator[Work]:
    """Verify problems by execution; what the rates of the card are made of is kept on the way."""
    # Time limits follow from what references take in a process of their own.
    with resources.open_judge(stop="first_limit", cache_size=0, batch_tests=False) as judge:

        def work(candidates: Collection[Candidate]) -> Iterable[Row]:
            counts = []
            # So many that all workers are busy, and few enough that progress is shown by rows.
            for some in _cut_pieces(candidates, max(_LEAST_AT_ONCE, _AT_ONCE_A_WORKER * judge.workers)):
                for item in gather(some, judge, settings, store=store):
                    if isinstance(item, Evidence):
                        counts.append(count_right(item, settings))
                        yield conclude(item, settings)
                    else:
                        yield item
            write_json(_counts_file(resources.work, settings, candidates), {"counts": counts})

        yield work


def read_rates(config: BuildConfig, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the verifier's own rates over all shards, for the card."""
    counts: list[Mapping[str, tuple[int, int]]] = []
    for part in parts:
        path = _counts_file(config.work_folder, config.verify, KeptRows(part.path))
        if not path.exists():
            raise DataError(f"{path} is gone; remove {config.work_folder / 'parts' / 'verify'} to verify again")
        counts += json.loads(path.read_text(encoding="utf-8"))["counts"]
    return {name: rate and rate.model_dump(mode="json") for name, rate in combine_counts(counts).items()}


def read_responses(path: Path) -> dict[str, list[str]]:
    """Read a model's attempts: JSON lines with `id` and `responses`."""
    responses: dict[str, list[str]] = {}
    for row in read_file(path, "responses"):
        with placed(row.where, 'write {"id": "...", "responses": ["...", ...]}'):
            if not row.fields.has("responses"):
                raise Malformed("missing_field", "responses")
            responses.setdefault(row.fields.text("id"), []).extend(row.fields.texts("responses"))
    return responses


def _cut_pieces(candidates: Iterable[Candidate], size: int) -> Iterator[list[Candidate]]:
    """Return the candidates in order, `size` at a time, or fewer whose tests are large."""
    piece: list[Candidate] = []
    num_bytes = 0
    for candidate in candidates:
        piece.append(candidate)
        num_bytes += sum(len(test.input) + len(test.output) for test in candidate.tests)
        if len(piece) == size or num_bytes >= _BYTES_AT_ONCE:
            yield piece
            piece, num_bytes = [], 0
    if piece:
        yield piece


def _with_rate(candidate: Candidate, rate: str | None, model: str) -> Candidate:
    if rate is None:
        return candidate
    others = tuple(entry for entry in candidate.pass_rates if entry.rpartition("=")[0] != model)
    return candidate.change("filter", "attempts/1", "judged here", pass_rates=(*others, rate))


def _counts_file(work: Path, settings: VerifySettings, candidates: Iterable[Candidate]) -> Path:
    """Return the file of a shard's counts, by everything that decides them but the evaluator and its packages."""
    # One digest for each, so that no more than one of their texts is in memory.
    digests = (digest(one.model_dump_json(exclude_defaults=True)) for one in candidates)
    return work / "verification" / "counts" / f"{digest(settings.model_dump_json(), *digests)}.json"
