"""The command line: one file per verb, each a thin edge over the library."""

from __future__ import annotations

import errno
import sys

from cyclopts import App, CycloptsError

import microcoder
from microcoder.cli import data, doctor, judge, packages, probe, report, serve, study, train, view
from microcoder.cli import eval as evaluation
from microcoder.errors import MicroCoderError

app = App(name="microcoder", help="Reinforcement learning of coding models.", version=microcoder.__version__)
app.command(judge.judge)
app.command(train.train)
app.command(probe.probe)
app.command(report.report)
app.command(view.view)
app.command(doctor.doctor)
app.command(evaluation.app)
app.command(data.app)
app.command(packages.app)
app.command(study.app)
app.command(serve.serve)

USER_ERROR = 2
INTERRUPTED = 130
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line: exit code 0 done, 2 the user's mistake, 130 interrupted; no traceback for either."""
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except MicroCoderError as error:
        sys.exit(_fail(str(error)))
    except CycloptsError as error:
        sys.exit(_fail(f"{str(error).rstrip('.')}. Type `microcoder --help` for the commands and options."))
    except OSError as error:
        if error.errno not in _DISK_IS_FULL:
            raise
        sys.exit(_fail(f"{error.strerror}; make room, and type the same command again: it continues where it stopped"))
    except KeyboardInterrupt:
        print("microcoder: interrupted; the same command continues where it stopped", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _fail(message: str) -> int:
    print(f"microcoder: error: {message}", file=sys.stderr)
    return USER_ERROR
