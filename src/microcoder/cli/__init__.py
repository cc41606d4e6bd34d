"""The command line: a module for each verb, or for two related ones.

Each is a thin layer over the library. A verb's module is imported when that verb is called, so
that `microcoder --help` imports none of them. The verbs' lines of help are therefore repeated
here; a test compares them with the verbs' own.

`main` runs a command line and turns errors into messages; `build_app` lists the verbs. What verbs
share is in `display` (progress, keys as flags) and `judge_options`. Read `judge` first.
"""

import errno
import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from cyclopts import App, CycloptsError

import microcoder
from microcoder.judge.core.errors import MicroCoderError

VERBS = {
    "judge": "Judge the programs of a file; the same command resumes an interrupted run.",
    "init": (
        "Write a recipe for your own model and problems, with the default settings and what fits "
        "your GPU."
    ),
    "train": "Train a model by a recipe; the same command resumes an interrupted run.",
    "report": (
        "Report on a training run, by the viewer's page on disk, or on an evaluation, by tables; "
        "or compare two."
    ),
    "view": (
        "Show runs in a browser: overlaid curves, and every rollout with its tests; search, "
        "compare, follow."
    ),
    "replay": (
        "Say what another mask, filter, reward or test set would have made of recorded rollouts."
    ),
    "doctor": (
        "Show this machine's sandbox isolation, speed and languages, and run the sandbox's "
        "self-test."
    ),
    "audit-judge": (
        "Benchmark any code judge: reward hacking, false rejections, isolation, speed. See "
        "docs/judges.md."
    ),
    "eval": "Evaluate a model, or answers from a file, on LiveCodeBench, HumanEval or MBPP.",
    "distill": (
        "Fine-tune a model on answers of a run or an evaluation: baselines without reinforcement "
        "learning."
    ),
    "data": "Build a corpus from raw problem sets, or audit one; export and publish it.",
    "packages": "Install and list the third-party packages that programs may import.",
    "study": "Run controlled experiments and test the paper's claims with them.",
    "serve": "Judge programs over HTTP. See docs/serving.md.",
}
"""Verb -> its line of help."""

_FUNCTIONS = {
    "data": "data:app",
    "eval": "eval:evaluate",
    "init": "train:init",
    "report": "view:report",
}
"""Verb -> module and function, for those that do not have the verb's name."""

CONFIGS = {
    "train": "microcoder.train.recipe.recipe:TrainConfig",
    "eval": "microcoder.eval.config:EvalConfig",
    "distill": "microcoder.eval.config:DistillConfig",
    "data build": "microcoder.data.corpus.settings:BuildConfig",
    "replay": "microcoder.replay.settings:ReplayConfig",
}
"""Command -> the configuration class whose keys it takes as flags."""

USUAL_KEYS = {
    "train": (
        "engine",
        "num_steps",
        "seed",
        "model.path",
        "model.lora.rank",
        "problems.train",
        "problems.heldout",
        "rollout.num_samples",
        "rollout.max_response_tokens",
        "rollout.temperature.value",
        "rollout.backend",
        "batch.train_batch_size",
        "batch.ppo_mini_batch_size",
        "batch.micro_batch_rollouts",
        "algorithm.advantage",
        "algorithm.masking.rho",
        "optimizer.learning_rate",
        "evaluation.every_steps",
        "evaluator.workers",
        "checkpoint.every_steps",
    ),
    "eval": (
        'benchmark.kind = "livecodebench"',
        'benchmark.kind = "humaneval"',
        'benchmark.kind = "mbpp"',
        'benchmark.kind = "problems"',
        "benchmark.path",
        "benchmark.release",
        "benchmark.start_date",
        'generation.kind = "endpoint"',
        'generation.kind = "file"',
        'generation.kind = "transformers"',
        "generation.base_url",
        "generation.model",
        "generation.path",
        "generation.concurrency",
        "sampling.num_samples",
        "sampling.temperature",
        "sampling.max_tokens",
        "prompt.style",
        "extractor.name",
        "judging.workers",
    ),
    "distill": (
        "keep",
        "model",
        "learning_rate",
        "num_epochs",
        "batch_size",
        "micro_batch_size",
        "max_tokens",
        "heldout.benchmark.path",
        "heldout.sampling.num_samples",
        "heldout.sampling.max_tokens",
    ),
    "replay": (
        "algorithm.advantage",
        'algorithm.masking.kind = "conditional"',
        'algorithm.masking.kind = "all"',
        'algorithm.masking.kind = "none"',
        "algorithm.masking.rho",
        "algorithm.masking.leave_out_of",
        "algorithm.group_filtering",
        "rewards.name",
        "rollout.temperature.converged_diversity",
    ),
    "data build": (
        "name",
        "output",
        "sources.path",
        "sources.format",
        "sources.inside",
        "sources.licence",
        "benchmarks.path",
        "benchmarks.format",
        "workers",
        "runner",
        "packages",
        "licence.unknown",
        "difficulty.responses",
        "difficulty.selection.by",
        "generate.mode",
        "generate.endpoint.base_url",
        "generate.endpoint.model",
        "verify.max_tests",
    ),
}
"""Command -> the keys that `--help` lists; `--help-all` lists all."""

_EXTRAS = {"data": "data", "distill": "train", "serve": "serve", "train": "train"}
"""Verb -> the extra to install if one of its packages is missing; `insights` for all other
verbs."""

_UNUSABLE = {
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
}
"""Error numbers of a path that cannot be written, which are reported as the user's mistake."""

USER_ERROR = 2
"""Exit code of the user's mistake."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell."""

CLOSED_PIPE = 141
"""Exit code where nobody reads the output any more, as of a shell."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    It exits with code 0 if all is done, 2 for the user's mistake, 130 if it was interrupted; there
    is no traceback for either.

    Args:
        arguments: the words after `microcoder`; None: those of this process.
    """
    typed = sys.argv[1:] if arguments is None else arguments
    # Looking for plugins reads the metadata of every package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _replace_closed_streams()
    # The parser knows one help; which was typed, `_print_keys` looks up.
    words = ["--help" if word == "--help-all" else word for word in typed]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        # Errors come back to us, so that all of them are printed in one form.
        build_app(words)(
            words, exit_on_error=False, print_error=False, result_action="return_value"
        )
        if {"--help", "-h"} & set(words):
            _print_keys(typed)
        # A pipe that nobody reads is noticed here, and not while Python ends.
        sys.stdout.flush()
    except MicroCoderError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        _fail(_name_extra(error, words))
    except CycloptsError as error:
        command = " ".join(["microcoder", *(error.command_chain or ())])
        _fail(f"{_explain(error)} Type `{command} --help` for the commands and options.")
    except (BrokenPipeError, SystemExit) as end:
        # What reads our output has seen enough (`| head`): rich then ends the program by an exit
        # of its own.
        cause = end if isinstance(end, BrokenPipeError) else end.__context__
        if not isinstance(cause, BrokenPipeError):
            raise
        # Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except OSError as error:
        _fail(_explain_file(error))
    except KeyboardInterrupt:
        print("microcoder: interrupted; type the same command again to resume", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _replace_closed_streams() -> None:
    """Open the null device for each standard stream that the shell has closed (`2>&-`)."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def build_app(arguments: Sequence[str] = ()) -> App:
    """Return the application; a verb that the arguments name brings its own, longer help text."""
    named = VERBS.keys() & set(arguments)
    app = App(
        name="microcoder",
        help="Reinforcement learning of coding models.",
        version=microcoder.__version__,
        version_flags=["--version", "-V"],
        # The list of verbs has no markup, and what renders it is slow to import.
        help_format="markdown" if named else "plaintext",
        # It would end the program without a word.
        suppress_keyboard_interrupt=False,
    )
    for verb, summary in VERBS.items():
        name = verb.replace("-", "_")
        function = _FUNCTIONS.get(verb, f"{name}:{name}")
        app.command(
            f"microcoder.cli.{function}", name=verb, help=None if verb in named else summary
        )
    # For the shell that types it: bash, zsh or fish.
    app.register_install_completion_command(add_to_startup=True)
    return app


def _print_keys(typed: Sequence[str]) -> None:
    """Print the keys of the configuration that a command takes as flags, if it takes one."""
    command = " ".join(takewhile(lambda word: not word.startswith("-"), typed))
    reference = CONFIGS.get(command)
    if reference is None:
        return
    from microcoder.judge.core.config import describe_keys

    module, _, name = reference.partition(":")
    try:
        config = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        # No error: the help itself needs no extra, and is on the screen already.
        print(f"To list its keys {_name_extra(error, typed)}")
        return
    usual = () if "--help-all" in typed else USUAL_KEYS.get(command, ())
    print(describe_keys(config, width=shutil.get_terminal_size().columns, usual=usual))
    if usual:
        print(f"\nEvery key: microcoder {command} --help-all, docs/reference.md")


# ----- Messages.


def _name_extra(error: ModuleNotFoundError, words: Sequence[str]) -> str:
    """Return what to install for a missing package.

    The error is raised again if the missing module is ours.
    """
    from microcoder.judge.core.machine import how_to_install

    # A module of ours that is missing is a bug, which no installation mends.
    if (error.name or "microcoder").partition(".")[0] == "microcoder":
        raise error
    return f"this needs {error.name}; type: {how_to_install(_EXTRAS.get(words[0], 'insights'))}"


def _explain_file(error: OSError) -> str:
    """Return what to do about a path that cannot be written.

    Other errors are raised again: they are no mistake of the user's.
    """
    from microcoder.judge.core.machine import is_disk_full

    fault = str(error.strerror)
    if error.filename:
        fault += f" ({error.filename})"
    if is_disk_full(error):
        return f"{fault}; free some space and type the same command again to resume"
    if error.errno not in _UNUSABLE:
        raise error
    return f"{fault}; make it writable or choose another place, and type the command again"


def _explain(error: CycloptsError) -> str:
    """Return an error in the command line's words as a sentence."""
    # By name, so that pydantic is imported only where it raised.
    if type(error.__cause__).__module__.startswith("pydantic"):
        from microcoder.judge.core.errors import explain_fault

        cause: Any = error.__cause__
        faults = []
        for fault in cause.errors():
            option = ".".join(map(str, fault["loc"])).replace("_", "-")
            faults.append(f"--{option} {fault['input']}: {explain_fault(fault)}")
        return f"{'; '.join(faults)}."
    text = str(error)
    return text if text.endswith(("?", "...")) else f"{text.rstrip('?.')}."


def _fail(message: str) -> NoReturn:
    print(f"microcoder: error: {message}", file=sys.stderr)
    sys.exit(USER_ERROR)
