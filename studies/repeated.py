"""Which effects keep their sign with other seeds and another warm start:
`python studies/repeated.py`.

The repeat's runs were `microcoder study --all --quick --seeds-from 100`, when all seeds of a study
had one warm start; `--records FOLDER` writes their records anew from a folder of runs. The repeat
is one start, which concludes nothing by itself: what it can show is whether an effect points the
other way.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from microcoder.judge.core.files import write_text
from microcoder.lab.studies.claims import ClaimFinding, ClaimResult, JudgedStudy, judge_studies
from microcoder.lab.studies.design import INSIGHTS, QUICK, Study, find_studies
from microcoder.lab.studies.sentences import format_check, format_effect
from microcoder.lab.studies.work import name_seeds, pack_records, plan_work, unpacked

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE.parent / "records" / "all-records.tar.xz"
RECORDS = HERE.parent / "records" / "repeated-records.tar.xz"
PAGE = HERE.parent / "docs" / "insights" / "repeated.md"
SEEDS_FROM = 100
"""The first of the other seeds."""
NUM_SEEDS = 5
"""All of one start."""


def write_records(runs: Path) -> None:
    """Pack what the finished runs of the repeat recorded, of all studies in one file."""
    studies = find_studies(None)
    (catalogue,) = runs.glob("*/runs.json")
    code = catalogue.parent.name
    planned = []
    for study in studies:
        planned.append(plan_work(study, scale=QUICK, root=runs, code=code, seeds_from=SEEDS_FROM))
    works = [work for works in planned for work in works if work.seed < SEEDS_FROM + NUM_SEEDS]
    pack_records(works, RECORDS)


def judge_both() -> tuple[list[JudgedStudy], list[JudgedStudy]]:
    """Return the studies judged by the published records, and by those of the repeat."""
    studies = find_studies(None)
    with unpacked(PUBLISHED) as runs:
        published = judge_studies(studies, scale=QUICK, root=runs.parent, code=runs.name)
    with unpacked(RECORDS) as runs:
        repeated = judge_studies(
            studies,
            scale=QUICK,
            root=runs.parent,
            code=runs.name,
            seeds_from=SEEDS_FROM,
        )
    return published, repeated


def describe(published: Sequence[JudgedStudy], repeated: Sequence[JudgedStudy]) -> str:
    """Return the page: how many effects kept their sign, and each claim's two effects."""
    before = _by_claim(published)
    after = _by_claim(repeated)
    rows = []
    signs = []
    for name in [*INSIGHTS, *(name for name in before if name not in INSIGHTS)]:
        study, old = before[name]
        new = after[name][1]
        first = old.primary.effect if old.primary else None
        second = new.primary.effect if new.primary else None
        if not (old.primary and new.primary and first and second):
            continue
        has_sign = first.value * second.value > 0
        signs.append(has_sign)
        rows.append(
            f"| {name} | {old.claim.short} | {old.verdict} | {format_effect(old.primary, study)} | "
            f"{format_effect(new.primary, study)} | {'yes' if has_sign else '**no**'} |"
        )
    missed = [
        f"- {name}: {format_check(check, study)}."
        for name, (study, result) in after.items()
        if result.verdict is ClaimFinding.CANNOT_APPEAR
        for check in result.checks
        if not check.is_reached
    ]
    made = next(study.made for study in repeated)
    seeds = [name_seeds(studies[0].seeds) for studies in (published, repeated)]
    return "\n".join(
        [
            "# The claims repeated",
            "",
            (
                f"All studies were run again with other seeds ({seeds[1]} in place of "
                f"{seeds[0]}), by earlier code."
            ),
            (
                "They had one other warm-started model. One start concludes nothing by itself; "
                "it can show that an effect"
            ),
            (
                f"points the other way. **{sum(signs)} of {len(signs)} effects have the sign "
                "of the published ones.**"
            ),
            "",
            "| | claim | published | effect, 95 % interval | repeated, one start | same sign |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            "What could not be asked of the repeat:",
            "",
            *missed,
            "",
            (
                f"Every number comes from the [records](../../records/{PUBLISHED.name}) "
                f"and [those of the repeat](../../records/{RECORDS.name}):"
            ),
            "",
            "```console",
            f"microcoder study --all --quick --seeds-from {SEEDS_FROM}",
            "python studies/repeated.py  # this page, from these records",
            "```",
            "",
            f"The first study's work. {made}",
            "",
        ]
    )


def _by_claim(judged: Sequence[JudgedStudy]) -> Mapping[str, tuple[Study, ClaimResult]]:
    results = {}
    for one in judged:
        for result in one.claims:
            results[result.claim.id] = (one.study, result)
    return results


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            write_text(PAGE, describe(*judge_both()))
        case ["--records", runs]:
            write_records(Path(runs))
        case _:
            sys.exit("type: python studies/repeated.py [--records FOLDER_OF_RUNS]")
