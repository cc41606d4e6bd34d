"""Steps over shards: what is done again and what is not; decisions over all rows."""

import time
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.pipeline.engine import StepCounts, run_steps
from microcoder.data.pipeline.parts import KeptRows, Part, read_rejected
from microcoder.data.pipeline.runner import Runner
from microcoder.data.pipeline.steps import Step
from microcoder.judge.core.errors import DataError, EvaluatorFault
from tests.data import pipeline_steps as steps

ALONE = Runner(workers=1)
REST: list[Step] = [
    steps.step("thin"),
    steps.barrier_step(),
    steps.step("thin", 5, called="thin_again"),
]


def build(
    work: Path, num_shards: int, rest: list[Step] = REST, *, runner: Runner = ALONE, **more: Any
) -> tuple[list[list[Part]], list[StepCounts]]:
    return run_steps(
        steps.shards(num_shards),
        steps.collect_step(),
        rest,
        work=work,
        runner=runner,
        **more,
    )


def contents(work: Path) -> dict[str, bytes]:
    files = {}
    for path in sorted(work.rglob("*.parquet")):
        files[str(path.relative_to(work))] = path.read_bytes()
    return files


def test_every_row_is_kept_or_rejected_with_its_reason(tmp_path: Path) -> None:
    parts, step_counts = build(tmp_path, 8)
    counts = [(p.num_in, p.num_kept, p.num_rejected) for p in step_counts]
    assert counts == [(40, 40, 0), (40, 26, 14), (26, 7, 19), (7, 5, 2)]
    assert [dict(p.reasons) for p in step_counts] == [
        {},
        {"divisible": 14},
        {"duplicate_of": 19},
        {"divisible": 2},
    ]
    reasons = []
    for of_step in parts:
        for part in of_step:
            for row in read_rejected(part.path):
                reasons.append(row.reason)
    assert {reason: reasons.count(reason) for reason in reasons} == {
        "divisible": 16,
        "duplicate_of": 19,
    }
    kept = []
    for part in parts[-1]:
        kept.extend(KeptRows(part.path))
    for row in kept:
        assert row.lineage[-1].step == "double"
    merged = []
    for part in parts[2]:
        merged.extend(KeptRows(part.path))
    for row in merged:
        assert len(row.merged) == len(row.tags)
    assert sum(len(row.merged) for row in merged) == 19


def test_progress_is_told_in_rows_after_each_shard_and_processes_write_the_same_bytes(
    tmp_path: Path,
) -> None:
    told: list[tuple[str, int, int]] = []
    # Few steps, each of which starts processes of its own.
    for workers in (1, 2):
        given = {"runner": Runner(workers=workers), "on_progress": lambda *said: told.append(said)}
        build(tmp_path / str(workers), 3, REST[1:2], **given)
        expected = []
        for name in ("collect", "unique"):
            for done in range(0, 16, 5):
                expected.append((name, done, 15))
        assert told == expected
        told.clear()
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_no_row_at_all_is_no_error(tmp_path: Path) -> None:
    assert [counts.num_in for counts in build(tmp_path, 0, runner=Runner(workers=2))[1]] == [0] * 4


def test_what_is_there_is_not_done_again(tmp_path: Path) -> None:
    build(tmp_path, 4)
    _, step_counts = build(tmp_path, 4)
    assert [step_count.num_redone for step_count in step_counts] == [0, 0, 0, 0]
    changed: list[Step] = [
        steps.step("thin"),
        steps.barrier_step(),
        steps.step("thin", 2, called="thin_again"),
    ]
    _, step_counts = build(tmp_path, 4, changed)
    assert [step_count.num_redone for step_count in step_counts] == [0, 0, 0, 4]
    changed[0] = steps.step("thin", 4)
    _, step_counts = build(tmp_path, 4, changed)
    assert [step_count.num_redone for step_count in step_counts] == [0, 4, 4, 4]
    _, step_counts = build(tmp_path, 5, changed)
    assert [step_count.num_redone for step_count in step_counts] == [1, 1, 5, 5]


@pytest.mark.parametrize("length", [3, -1])
def test_a_part_that_was_cut_off_is_made_again(tmp_path: Path, length: int) -> None:
    build(tmp_path, 2)
    whole = contents(tmp_path)
    for damaged in (*([name] for name in whole), list(whole)):
        for name in damaged:
            (tmp_path / name).write_bytes(whole[name][:length])
        build(tmp_path, 2)
        assert contents(tmp_path) == whole


def test_a_part_damaged_in_its_middle_is_named_wherever_it_is_read(tmp_path: Path) -> None:
    parts, _ = build(tmp_path, 1)
    for part in (parts[0][0], parts[-1][0]):
        content = part.path.read_bytes()
        part.path.write_bytes(b"PAR1" + bytes(len(content) - 8) + b"PAR1")
        said = f"{part.path.name} is damaged .*; delete it and type the same command again"
        with pytest.raises(DataError, match=said):
            build(tmp_path, 1)
        part.path.write_bytes(content)


def test_an_error_of_ours_comes_out_of_a_worker_as_itself_and_one_that_is_killed_is_named(
    tmp_path: Path,
) -> None:
    build(tmp_path, 2, [])
    with pytest.raises(DataError, match=r"^n/\d+ is refused; type something else$"):
        build(tmp_path, 2, [steps.step("refuse")], runner=Runner(workers=2))
    with pytest.raises(EvaluatorFault, match=r"was killed.*--workers"):
        build(tmp_path, 2, [steps.step("refuse", 0)], runner=Runner(workers=2))


def test_a_step_that_loses_a_row_is_named_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lose lost, added or reordered rows"):
        build(tmp_path, 1, [steps.step("lose", runs="alone")])
    for path in (tmp_path / "lose").iterdir():
        assert "parquet" not in path.name


@pytest.mark.timeout(600)
def test_steps_that_run_alone_are_spread_over_nodes_and_outlive_all_but_one(
    two_nodes: Any, tmp_path: Path
) -> None:
    work = [tmp_path / name for name in ("native", "ray")]
    folders = [tmp_path / name for name in ("here", "there")]
    for folder in folders:
        folder.mkdir()
    build(work[0], 12, [steps.alone_step(folders[0])])
    killed: list[str] = []
    find_nodes = pytest.importorskip("microcoder.judge.fleet.ray").find_nodes

    def kill_two(step: str, done: int, total: int) -> None:
        if step == "alone" and done >= 4 and not killed:
            for node in [*two_nodes.worker_nodes]:
                killed.append("node")
                two_nodes.remove_node(node, allow_graceful=False)
            # More shards run then than there are nodes, as Ray has them.
            while len(find_nodes()) > 1:
                time.sleep(0.1)

    # Collected here already, so that only what runs alone is left to Ray.
    build(work[1], 12, [])
    two_nodes.add_node(num_cpus=1)
    build(
        work[1],
        12,
        [steps.alone_step(folders[1], num_processes=3)],
        runner=Runner(kind="ray"),
        on_progress=kill_two,
    )
    assert len(killed) == 2
    assert contents(work[0]) == contents(work[1])
    here, there = ([path.read_text().split() for path in folder.iterdir()] for folder in folders)
    assert len(here) == 1
    # All nodes had a share.
    assert len(there) >= 3
    rows_there = set()
    for of_process in there:
        rows_there.update(of_process)
    assert rows_there == set(here[0])
    # An error of a step comes out of a node as itself.
    refusing = steps.step("refuse", runs="alone")
    with pytest.raises(DataError, match=r"n/0 is refused; type something else|n/5 is refused"):
        build(work[1], 2, [refusing], runner=Runner(kind="ray"))


def test_rows_of_a_step_that_runs_alone_are_not_held_and_go_to_their_file_as_they_come(
    tmp_path: Path,
) -> None:
    parts, _ = build(tmp_path, 2, [steps.step("hold", runs="alone")])
    row_ids = []
    for part in parts[1]:
        for row in KeptRows(part.path):
            row_ids.append(row.id)
    assert row_ids == [f"n/{n}" for n in range(10)]
