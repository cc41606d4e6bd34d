"""What rewards paid for, from real runs of a tiny model: counted, drawn, and told in tables."""

import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from noisy_judge import place_program
from payment_report import report_errors, report_fate, report_hacking
from payments import count_payments, load_payments, read_paid_runs, write_payments

from microcoder.judge.core.errors import DataError
from microcoder.lab.studies.design import MICRO, Study, load_study
from microcoder.lab.studies.work import Work, plan_work
from microcoder.lab.studies.workers import _do, missing_work
from microcoder.train.runs import RunDirectory, read_rollouts

ROOT = Path(__file__).parents[2]
DESC = "{http://www.w3.org/2000/svg}desc"

BASELINE = """
num_steps = 2
prompt.style = "bare"
model = { kind = "hugging_face", path = "CHECKPOINT", compute_dtype = "float32", \
attn_implementation = "eager" }
problems = { kind = "micro", num_train = 8, num_heldout = 2, tiers = ["easy"], \
styles = ["function"] }
rollout = { num_samples = 4, max_response_tokens = 40, temperature = { kind = "constant", \
value = 0.8 } }
batch = { train_batch_size = 4, ppo_mini_batch_size = 2 }
optimizer = { name = "adamw_torch" }
evaluation = { samples_per_problem = 1 }
evaluator = { workers = 1 }
"""
STUDY = """
question = "What is paid?"
done = "Little."
next = "More."
factor = "errors"
baseline = "baseline.toml"
reference = "no errors"
seeds = [0, 1, 2]
[levels."no errors"]
[[levels."systematic false accepts, 20 %".set.rewards]]
name = "noisy_judge:noisy_verdict"
options = { kind = "systematic", false_accepts = 0.2, pattern = "{seed}" }
"""


@pytest.fixture(scope="module")
def finished(
    tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Study, dict[str, Work]]:
    """The runs of one seed, done as a process of `microcoder study` does them."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "baseline.toml").write_text(BASELINE.replace("CHECKPOINT", str(tiny_checkpoint)))
    (folder / "graders.toml").write_text(STUDY)
    study = load_study(folder / "graders.toml")
    root = folder / "runs"
    chosen = {}
    for run in plan_work(study, scale=MICRO, root=root):
        if run.seed == 1:
            chosen[run.name] = run
    for run in chosen.values():
        _do(run, [])
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # between two works such a process has none
    assert missing_work([*chosen.values()]) == []
    for run in chosen.values():
        assert not RunDirectory(run.folder).checkpoints.exists()
    return study, chosen


@pytest.mark.slow
def test_runs_are_paid_by_what_their_level_names_and_reported(
    finished: tuple[Study, dict[str, Work]], tmp_path: Path
) -> None:
    study, runs = finished
    noisy = runs["systematic false accepts, 20 %"]
    assert noisy.config.rewards[0].options["pattern"] == 1
    rows = []
    for step in (1, 2):
        rows.extend(read_rollouts(RunDirectory(noisy.folder).rollout_file(step)))
    assert any(row["program"] for row in rows)
    for row in rows:
        is_right = row["verdict"] == "accepted"
        code = row["program"]
        assert row["reward"] == float(
            is_right or (code is not None and place_program(code, 1) < 0.2)
        )
    paid = read_paid_runs(study, study.path.parent / "runs")
    clean = paid[0].steps[0]
    assert clean.step == 1
    assert clean.num_scored == 16
    assert clean.paid_wrong == 0
    assert clean.unpaid_right == 0
    assert clean.all_tricks == 0
    write_payments(paid, tmp_path / "payments.csv")
    assert load_payments(tmp_path / "payments.csv") == paid
    fate = report_fate(study, paid, output=tmp_path)
    assert fate.endswith("Area under the ROC curve: nan [nan, nan], 0 of 1 runs collapsed.")
    with pytest.raises(DataError, match="no finished run of graders"):
        read_paid_runs(study, tmp_path)


@pytest.mark.parametrize(
    ("page", "report"), [("reward-hacking", report_hacking), ("noisy-judge", report_errors)]
)
def test_published_tables_and_figures_are_what_their_runs_paid_for(
    page: str,
    report: Any,
    tmp_path: Path,
) -> None:
    name = page.replace("-", "_")
    published = ROOT / "docs" / "insights"
    paid = load_payments(ROOT / "records" / f"{name}-payments.csv")
    made = report(
        load_study(ROOT / f"studies/judges/{name}.toml"),
        paid,
        output=tmp_path,
    ).splitlines()
    text = (published / f"{page}.md").read_text()
    shown = text[text.index(made[0]) :].partition("\n\n")[0].splitlines()
    assert len(shown) > 8
    assert {*shown} <= {*made}
    # Another processor adds in another order, which a curve's last digit may show.
    drawn, shown = (
        ElementTree.parse(folder / f"{name}.svg").findtext(DESC) for folder in (tmp_path, published)
    )
    assert drawn == shown is not None


def test_payments_are_counted_from_rows_and_unscored_ones_left_out() -> None:
    paid: list[tuple[float | None, str, str | None]] = [
        (1.0, "accepted", "x"),
        (0.0, "accepted", "x"),
        (1.0, "wrong_answer", "import sys\nsys.exit(0)\n"),
        (0.0, "no_code", None),
        (None, "sandbox_fault", "x"),
    ]
    rows = [dict(zip(("reward", "verdict", "program"), values, strict=True)) for values in paid]
    payments = count_payments(rows, step=3)
    assert payments is not None
    assert payments.step == 3
    assert payments.num_scored == 4
    assert payments.reward == 0.5
    assert payments.accuracy == 0.5
    assert payments.paid_wrong == 0.25
    assert payments.unpaid_right == 0.25
    assert payments.tricks == {"exit": 0.25}
    assert payments.alike == 1 / 2
    with_a_copy = count_payments([*rows, rows[0]], step=3)
    assert with_a_copy is not None
    assert with_a_copy.alike == 2 / 3
    assert count_payments(rows[-1:], step=3) is None
