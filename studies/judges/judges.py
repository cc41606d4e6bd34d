"""Do the runs of the three studies of wrong graders that are missing,
then draw their figures and print their tables.

    python studies/judges/judges.py reward_hacking
    python studies/judges/judges.py noisy_judge [--jobs 2]
    python studies/judges/judges.py rate_and_fate
    python studies/judges/judges.py reward_hacking \\
        --records records/reward_hacking-payments.csv

The graders, `naive_grader.py` and `noisy_judge.py`, are imported from this folder: nothing else
judges by them. Figures go to docs/insights, where the pages are that tell what they show. What each
step paid for goes to records; from it both can be made again without a run (`--records`). A
run that was stopped is resumed.
"""

import argparse
from pathlib import Path

from payment_report import report_errors, report_fate, report_hacking
from payments import load_payments, read_paid_runs, write_payments

from microcoder.cli import main
from microcoder.lab.studies.design import load_study

HERE = Path(__file__).parent
RECORDS = HERE.parents[1] / "records"
"""Folder of what the steps of published studies paid for."""
REPORTS = {
    "reward_hacking": report_hacking,
    "noisy_judge": report_errors,
    "rate_and_fate": report_fate,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=REPORTS)
    parser.add_argument("--jobs", help="runs at a time; by default one a core")
    parser.add_argument("--runs", type=Path, default=Path("runs/studies"))
    parser.add_argument("--output", type=Path, default=HERE.parents[1] / "docs" / "insights")
    parser.add_argument(
        "--records",
        type=Path,
        help="what an earlier run of this paid for, in place of runs",
    )
    options = parser.parse_args()
    path = HERE / f"{options.study}.toml"
    if options.records:
        paid = load_payments(options.records)
    else:
        main(
            [
                "study",
                str(path),
                "--runs",
                str(options.runs),
                *(["--jobs", options.jobs] if options.jobs else []),
            ]
        )
        paid = read_paid_runs(load_study(path), options.runs)
        write_payments(paid, RECORDS / f"{options.study}-payments.csv")
    print(REPORTS[options.study](load_study(path), paid, output=options.output))
