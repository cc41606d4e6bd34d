"""`microcoder replay`: what other decisions would have made of recorded rollouts."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from cyclopts import Parameter
from cyclopts.types import PositiveInt

from microcoder.cli.display import Json, parse_overrides, printable
from microcoder.judge.core.config import name_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.files import new_file, to_line, write_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from microcoder.judge.core.types import Problem
    from microcoder.replay.answers import DifferingRollout
    from microcoder.replay.recordings import Recording
    from microcoder.replay.rejudging import Rejudging
    from microcoder.replay.replaying import OnDiffering, Replay
    from microcoder.replay.saving import Places

Repeated = Parameter(negative="")


def replay(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    against: Annotated[tuple[Path, ...], Repeated] = (),
    judge: str | None = None,
    tests: Path | None = None,
    problems: Path | None = None,
    format: str | None = None,
    limit: PositiveInt | None = None,
    rows: Path | None = None,
    weak: Path | None = None,
    workers: PositiveInt | None = None,
    save: Annotated[bool, Repeated] = False,
    json: Json = False,
) -> None:
    """Say what another mask, filter, reward or test set would have made of recorded rollouts.

    `microcoder replay RUN --algorithm.masking.kind all`: RUN is a folder of `microcoder train`, or
    files of rollouts of TRL, verl and others (docs/replay.md). Keys of `seed`, `rewards`,
    `algorithm` and `rollout` as flags are one alternative; each `--against` is one more. It is not
    the other run: it says what the same rollouts would have taught.

    Parameters
    ----------
    against
        A recipe to compare with: a TOML file, or a name of the package's such as dapo. Repeat it
        for several.
    judge
        Judge every program again, by another comparison of outputs: default, exact, tokens, float
        or unordered; strict=exact also gives it a name.
    tests
        Judge every program again by the tests of this problem file, which has the problems' ids.
    problems
        The problems that were trained on: a problem file. Needed where the run's own are not found,
        and for rollouts whose rows have no problem id.
    format
        Format of the files: trl, verl, verifiers, verifiers_results, prime_rl, nemo_gym, slime,
        skyrl or rows; by default that which the first row is recognised by.
    limit
        Limit of response tokens, where the files do not say it.
    rows
        Write every rollout that an alternative decides otherwise to this file, as JSON lines.
    weak
        With --tests: write the problems whose tests were too weak to this file, as JSON lines: two
        programs that were paid, and the test that refuses one of them.
    workers
        Programs judged in parallel; by default one per processor.
    save
        Keep the answer in the run's folder as replay.json, in place of the one before: `microcoder
        view RUN` shows it on its page Replay.
    """
    paths, flags = _split(words)
    if not paths:
        raise ConfigError("nothing to replay; type: microcoder replay RUN --against dapo")
    # Pulls in what reads runs, which `--help` does without.
    from microcoder.replay.foreign import open_recording
    from microcoder.replay.replaying import replay as replay_recording
    from microcoder.replay.saving import Places, check_can_save, save_replay
    from microcoder.replay.settings import Alternative, name_changes

    if weak and not tests:
        raise ConfigError("--weak needs better tests; add --tests PROBLEMS.jsonl, or leave it out")
    changes = parse_overrides(tuple(flags))
    alternatives = [Alternative(name_recipe(recipe), recipe=recipe) for recipe in against]
    if changes:
        alternatives.insert(0, Alternative(name_changes(changes), changes))
    known = _read_problems(problems)
    recording = open_recording(paths, format=format, problems=known, limit=limit)
    run = check_can_save(recording) if save else None
    places = Places()
    with ExitStack() as stack:
        rejudging = None
        if judge or tests:
            rejudging = _open_judge(stack, recording, judge, tests, known, workers)
        found = replay_recording(
            recording,
            alternatives,
            problems=known,
            rejudging=rejudging,
            on_differing=_listen(stack, rows, places if save else None),
        )
    if weak:
        write_rows(weak, [asdict(problem) for problem in found.weak_problems])
    if run is not None:
        save_replay(run, found, places)
    if json:
        print(to_line(asdict(found)), end="")
        return
    _print(found, rejudging)
    if run is not None:
        print()
        print(printable(f"kept in {run.replay}; to see it, type: microcoder view {run.root}"))


def _print(found: Replay, rejudging: Rejudging | None) -> None:
    from microcoder.replay.sentences import describe_replay

    for line in describe_replay(found):
        print(printable(line))
    if rejudging is not None:
        print(f"\n{rejudging.num_judged:,} distinct programs judged")
        if rejudging.num_unknown:
            print(f"{rejudging.num_unknown:,} rollouts of other problems keep their verdict")


def _split(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the paths in front, and the flags behind them."""
    for number, word in enumerate(words):
        if word.startswith("-"):
            return list(words[:number]), list(words[number:])
    return list(words), []


def _read_problems(path: Path | None) -> dict[str, Problem] | None:
    if path is None:
        return None
    from microcoder.data.release.problems import read_problems

    return {problem.id: problem for problem in read_problems(path)}


def _open_judge(
    stack: ExitStack,
    recording: Recording,
    judge: str | None,
    tests: Path | None,
    problems: dict[str, Problem] | None,
    workers: int | None,
) -> Rejudging:
    """Return what judges the programs again, by other tests, another comparison or both."""
    from microcoder.judge import Judge, StopRule
    from microcoder.replay.recordings import read_own_problems
    from microcoder.replay.rejudging import Rejudging, compare_by
    from microcoder.train.recipe.recipe import build_rewards

    judged_by = _read_problems(tests) or problems or read_own_problems(recording)
    name = "re-judged" if tests is None else tests.name.partition(".")[0]
    if judge:
        label, _, comparison = judge.rpartition("=")
        judged_by = compare_by(judged_by, comparison)
        name = label or comparison
    # A reward that reads all tests, such as `fraction`, has all of them run.
    config = recording.config
    reads_all = not config.has_own_rewards and build_rewards(config.rewards).needs_all_tests
    stop: StopRule = "never" if reads_all else "first_failure"
    judging = stack.enter_context(Judge(workers=workers, stop=stop))
    return Rejudging(judging, judged_by, name=name)


def _listen(stack: ExitStack, rows: Path | None, places: Places | None) -> OnDiffering | None:
    """Return what keeps the rollouts that differ: whole in a file, their places for the page."""
    listeners: list[OnDiffering] = []
    if rows:
        partial_path = stack.enter_context(new_file(rows))
        file = stack.enter_context(partial_path.open("w", encoding="utf-8"))
        listeners.append(partial(_write, file))
    if places is not None:
        listeners.append(places.add)
    if not listeners:
        return None
    return partial(_tell, listeners)


def _tell(listeners: Sequence[OnDiffering], some: Sequence[DifferingRollout]) -> None:
    for listener in listeners:
        listener(some)


def _write(file: TextIO, some: Sequence[DifferingRollout]) -> None:
    for row in some:
        file.write(to_line(asdict(row)))
