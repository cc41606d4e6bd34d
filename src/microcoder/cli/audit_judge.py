"""`microcoder audit-judge`: a benchmark of judges of programs."""

import json as json_module
import re
import sys
from pathlib import Path

from cyclopts.types import PositiveInt

from microcoder.cli.display import Flag, Json, StepDisplay
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import require_linux
from microcoder.lab.yardstick.cases import Suite

_MOST = 40


def audit_judge(
    *,
    judge: tuple[str, ...] = ("microcoder",),
    out: Path = Path("judge-audit"),
    seed: int = 0,
    most: PositiveInt = _MOST,
    all: Flag = False,
    suite: tuple[Suite, ...] = (),
    python: Path | None = None,
    lanes: PositiveInt = 2,
    uncontained: Flag = False,
    json: Json = False,
) -> None:
    """Benchmark any code judge: reward hacking, false rejections, isolation, speed. See
    docs/judges.md.

    Each judge runs in disposable processes without network access and with a read-only file system.

    Parameters
    ----------
    judge
        A judge, repeatable: NAME, or NAME=WHERE; docs/judges.md lists the names. Your own:
        reward=file.py:function or reward=module:attribute, with the signature of TRL, verl,
        verifiers or f(code, tests); command="python my_judge.py"; lcb=module:check_correctness,
        http-v1=URL. Adapters, such as those of other projects:
        examples/judges/peers.py:livecodebench=CHECKOUT.
    out
        Folder for audit.json, audit.md and a badge (SVG) of each judge.
    seed
        Seed of the generated cases and of the sample of stored ones.
    most
        Maximum number of cases per stored suite.
    all
        Use all cases of each suite.
    suite
        Run only these suites.
    python
        The interpreter that has the judges' packages; by default this one.
    lanes
        Processes per judge.
    uncontained
        Run judges even if they cannot be contained. Unsafe: only in a container made for this.
    """
    require_linux()
    from microcoder.lab.yardstick.audits import ask_judge, make_plan
    from microcoder.lab.yardstick.named_judges import number_repeated, read_judge
    from microcoder.lab.yardstick.results import summarise, write_badge, write_json, write_page

    if python is not None and not python.is_file():
        raise ConfigError(
            f"--python {python} does not exist; pass an interpreter, such as .venv/bin/python"
        )
    # Not resolved: the link to the interpreter is what makes a virtual environment.
    interpreter = str(python.absolute()) if python else sys.executable
    judges = number_repeated([read_judge(text, python=interpreter) for text in judge])
    plan = make_plan(seed=seed, most=None if all else most, suites=suite)
    out.mkdir(parents=True, exist_ok=True)
    audits = []
    for judged in judges:
        with StepDisplay(unit="cases") as display:
            audit = ask_judge(
                judged,
                plan,
                lanes=lanes,
                contain=not uncontained,
                note=display.note,
                on_progress=display.show,
            )
        audits.append(audit)
        # After each, so that the results are kept if a later judge takes too long.
        (out / "audit.json").write_text(write_json(audits, plan))
        (out / "audit.md").write_text(write_page(audits, plan))
        if audits[-1].results:
            name = re.sub(r"[^A-Za-z0-9.-]+", "-", judged.label).strip("-")
            (out / f"{name}.svg").write_text(write_badge(audits[-1]))
    if json:
        print(json_module.dumps({"output": str(out), "judges": summarise(audits)}))
    else:
        print(f"{out / 'audit.md'}")
    # A script must not take an audit that asked no judge for a success.
    if not any(audit.results for audit in audits):
        raise SystemExit(1)
