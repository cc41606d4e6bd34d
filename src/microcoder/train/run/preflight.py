"""What would stop a run at its start or later, found without weights.

The dry run, `init` and `train` all use it. Files are read, no model is loaded and nothing is
downloaded. Some faults are found only as the run starts: missing or broken weights, and prompts of
a data set that is not on this machine.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from microcoder.data.benchmarks import LiveCodeBench, is_livecodebench
from microcoder.data.release.problems import read_problems
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.types import Problem
from microcoder.judge.languages.packages import load_profile
from microcoder.train.recipe.judge import make_prompt_builder
from microcoder.train.recipe.recipe import (
    HubProblems,
    HuggingFaceModel,
    MicroModel,
    MicroProblems,
    ProblemFiles,
    TrainConfig,
)
from microcoder.train.rollouts import Chat
from microcoder.train.run.checkpoints import model_folder
from microcoder.train.run.context import (
    Context,
    check_fit,
    evaluation_limits,
    find_context,
    find_misfit,
    read_context,
    training_limits,
)
from microcoder.train.run.estimate import find_architecture, find_file, read_file
from microcoder.train.run.gguf_header import find_gguf, read_header
from microcoder.train.run.manifest import find_missing
from microcoder.train.run.model_files import find_position_fault
from microcoder.train.run.tasks import Tasks, check_problems, generate_splits, read_splits
from microcoder.train.run.trl_options import find_missing_loggers, find_option_faults

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BYTES_PER_TOKEN = 2
"""Fewer than those of any text that is likely here.

So a prompt has no more tokens than this says.
"""
_TEMPLATE_TOKENS = 512
"""More tokens than a chat template adds, its system turn included.

The longest in use have some hundred.
"""
_PROMPTS_COUNTED = 256
"""Prompts whose tokens are counted exactly: those of the most bytes."""
_ATTENTIONS = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")
"""Kinds of attention that transformers has."""


def find_faults(config: TrainConfig) -> list[str]:
    """Return what keeps a run from starting or ending well, one sentence each with what to type."""
    faults = find_missing(config)
    if faults:
        # Most others would follow from these.
        return faults
    return list(_find_plan_faults(config))


def check_settings(config: TrainConfig) -> None:
    """Raise ConfigError for settings that name something missing, in the words of the dry run."""
    # The same words as in the dry run, so that one page explains both.
    faults = list(_find_setting_faults(config))
    if faults:
        raise ConfigError(f"this cannot start: {'; '.join(faults)}")


def _find_plan_faults(config: TrainConfig) -> Iterator[str]:
    """Yield what would keep a run from going well although all its files are there."""
    yield from _find_setting_faults(config)
    if isinstance(config.model, HuggingFaceModel):
        # Only what is here: a model of the Hub may not have been fetched.
        described = read_file(config.model.path, "config.json", revision=config.model.revision)
        fault = find_position_fault(described, config.model.path)
        if fault is not None:
            yield fault
        yield from _find_option_faults(config, config.model)
    try:
        train, heldout = read_statements(config)
    except (DataError, ConfigError) as error:
        yield str(error)
        return
    try:
        check_problems(config, train, heldout)
    except (DataError, ConfigError) as error:
        yield str(error)
    try:
        # A prompt of each set tells whether the template takes system turns.
        _check_template(config, [*train[:1], *heldout[:1]])
        yield from _find_context_faults(config, train, heldout)
    except (DataError, ConfigError) as error:
        yield str(error)


def _find_setting_faults(config: TrainConfig) -> Iterator[str]:
    """Yield settings that name something missing.

    They are packages of programs, kinds of attention, and options of TRL.
    """
    try:
        load_profile(config.evaluator.packages)
    except ConfigError as error:
        yield f"evaluator.{error}"
    attention = config.weights.attn_implementation
    # With a slash it is a kernel of the Hub's.
    is_kernel = attention is not None and "/" in attention
    if not is_kernel and attention not in (None, *_ATTENTIONS):
        known = ", ".join(_ATTENTIONS)
        yield (
            f"model.attn_implementation = {attention!r} is unknown; use one of {known}, or leave "
            "it out"
        )
    if config.engine == "trl":
        yield from find_option_faults(config.trl)


def _find_option_faults(config: TrainConfig, model: HuggingFaceModel) -> Iterator[str]:
    """Yield options that a chat template does not name.

    Whether an option changes anything is tried as the run starts.
    """
    template = read_template(model.path, model.revision)
    if template is None:
        return
    # A template names the options that it looks at.
    for name in config.prompt.chat_template_options:
        if name not in template:
            yield (
                f"prompt.chat_template_options.{name} would change nothing: the model's chat "
                "template does not look at it; check its name, or leave it out"
            )


def _check_template(config: TrainConfig, problems: Sequence[Problem]) -> None:
    """Raise DataError if a model's chat template is broken or refuses these prompts.

    A template without system turns refuses prompts that have one.
    """
    if not isinstance(config.model, HuggingFaceModel) or find_spec("jinja2") is None:
        return
    template = read_template(config.model.path, config.model.revision)
    ask = make_prompt_builder(config.prompt)
    chats = [ask(problem).as_chat() for problem in problems]
    if not template or not chats:
        return
    if _renders(template, chats):
        return
    # A template may use what transformers alone has: its word counts.
    count_longest(config, chats)


def _renders(template: str, chats: Sequence[Chat]) -> bool:
    """Return whether plain Jinja makes prompts by a template.

    To import transformers would take seconds.
    """
    from jinja2.exceptions import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # As transformers sets it up: a template is somebody else's program.
    environment = ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    try:
        compiled = environment.from_string(template)
        for chat in chats:
            compiled.render(messages=chat, add_generation_prompt=True, raise_exception=refuse)
    except Exception:  # templates fail in many ways
        return False
    return True


def read_template(model: str, revision: str | None = None) -> str | None:
    """Return the text of a model's chat templates; empty without any.

    None if the model's files are not here.
    """
    folder = model_folder(model)
    gguf = None if folder is None else find_gguf(folder)
    if gguf is not None:
        return read_header(gguf).chat_template
    file = find_file(model, "chat_template.jinja", revision=revision)
    if file is not None:
        return file.read_text(encoding="utf-8")
    settings = read_file(model, "tokenizer_config.json", revision=revision)
    if not settings:
        return None
    template = settings.get("chat_template")
    if isinstance(template, str):
        return template
    # Some have several, by name.
    return json.dumps(template) if template else ""


def read_statements(config: TrainConfig) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Return training and held-out problems, as far as their files are on this machine.

    Problems of a benchmark are without tests.
    """
    problems = config.problems
    if isinstance(problems, ProblemFiles):
        # Its problems are what models are measured by.
        if is_livecodebench(problems.train):
            raise DataError(
                f"{problems.train} is LiveCodeBench, a benchmark: training would contaminate it; "
                "use it as heldout"
            )
        return _read_file(problems.train), _read_file(problems.heldout)
    if isinstance(problems, HubProblems):
        return _read_published(problems)
    if isinstance(problems, MicroProblems) and isinstance(config.model, HuggingFaceModel):
        train, heldout = generate_splits(problems)
        return train, heldout
    return (), ()


@cache
def _read_published(problems: HubProblems) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Return the splits of a data set in a local folder.

    Of a data set on the Hub, only a local held-out file is read.
    """
    if not Path(problems.id).expanduser().is_dir():
        heldout = () if problems.heldout is None else _read_file(problems.heldout)
        return (), heldout
    train, heldout, _ = read_splits(problems)
    return train, heldout


@cache
def _read_file(path: Path) -> Sequence[Problem]:
    if is_livecodebench(path):
        return [question.problem for question in LiveCodeBench(path=path).read()]
    return read_problems(path)


def _find_context_faults(
    config: TrainConfig, train: Sequence[Problem], heldout: Sequence[Problem]
) -> Iterator[str]:
    """Yield why a prompt and its response do not fit into the model's context."""
    context = model_context(config)
    if context is None:
        return
    ask = make_prompt_builder(config.prompt)
    for split, problems, limits in (
        ("", train, training_limits(config)),
        ("held-out ", heldout, evaluation_limits(config)),
    ):
        chats = [ask(problem).as_chat() for problem in problems]
        # To count exactly takes seconds, so only prompts that may not fit are counted.
        if find_misfit(context, _bound_longest(chats), limits) is None:
            continue
        fault = find_misfit(context, count_longest(config, chats), limits, split=split)
        if fault is not None:
            yield fault
            return


def describe_machine_faults(config: TrainConfig) -> list[str]:
    """Return what this machine lacks for a run; the plan may be meant for another machine."""
    missing = []
    # verl starts its servers itself, on whatever machine.
    is_vllm_ours = config.rollout.backend == "vllm" and config.engine == "trl"
    if is_vllm_ours and _is_missing("vllm"):
        missing.append(
            f'rollout.backend = "vllm" needs vLLM (type: {how_to_install("vllm")}) and a GPU'
        )
    if config.engine == "verl" and _is_missing("verl"):
        missing.append(f'engine = "verl" needs verl (type: {how_to_install("train,verl")})')
    if config.optimizer.name == "adamw_8bit" and _is_missing("bitsandbytes"):
        missing.append(
            'optimizer.name = "adamw_8bit" needs bitsandbytes (type: pip install bitsandbytes)'
        )
    attention = config.weights.attn_implementation
    if attention == "flash_attention_2" and _is_missing("flash_attn"):
        missing.append(
            'model.attn_implementation = "flash_attention_2" needs flash-attn and a GPU (type: pip '
            "install flash-attn)"
        )
    if config.engine == "trl":
        missing += find_missing_loggers(config.trl)
    return missing


def _is_missing(package: str) -> bool:
    return find_spec(package) is None


def model_context(config: TrainConfig) -> Context | None:
    """Return the context of a recipe's model; None if its files are not here, or do not say."""
    if isinstance(config.model, MicroModel):
        return read_context(find_architecture(config.model) or {})
    return find_context(config.model.path, config.model.revision)


def find_longest_response(config: TrainConfig) -> int | None:
    """Return the tokens that a model's context leaves for a response to the longest prompt.

    None if not known.
    """
    context = model_context(config)
    if context is None:
        return None
    train, heldout = read_statements(config)
    ask = make_prompt_builder(config.prompt)
    chats = [ask(problem).as_chat() for problem in (*train, *heldout)]
    most = _bound_longest(chats)
    if 2 * most > context.tokens:
        # Too coarse a bound for a context that is this short.
        most = count_longest(config, chats)
    return context.tokens - most


def _count_bytes(chat: Chat) -> int:
    return sum(len(turn["content"].encode("utf-8")) for turn in chat)


def count_longest(config: TrainConfig, chats: Sequence[Chat]) -> int:
    """Return the tokens of the longest prompt, by the model's own tokenizer.

    0 if the tokenizer is not on this machine.
    """
    if not isinstance(config.model, HuggingFaceModel):
        return 0
    return count_longest_of(config.model.path, chats, config.prompt.chat_template_options)


def count_longest_of(model: str, chats: Sequence[Chat], options: Mapping[str, Any]) -> int:
    """Return the tokens of the longest prompt, by the tokenizer in a model's folder.

    0 if the tokenizer is not on this machine, or in a GGUF file, where it takes a minute. DataError
    if it cannot be loaded. Call this only for prompts that may not fit: to import transformers
    takes seconds.
    """
    folder = model_folder(model)
    if not chats or folder is None or find_gguf(folder) is not None:
        return 0
    if find_spec("transformers") is None or find_spec("torch") is None:
        return 0
    from microcoder.train.run.weights import encode_chats

    prompts = encode_chats(_load_tokenizer(model), _longest(chats), options)
    return max(map(len, prompts))


def check_answer_lengths(
    model: str,
    revision: str | None,
    chats: Sequence[Chat],
    limits: Mapping[str, int],
    options: Mapping[str, Any],
) -> None:
    """Raise ConfigError if a chat and a response do not fit into a model's context.

    Files here tell how far this is known.

    Args:
        model: a folder, or an id of the Hub.
        revision: of the Hub's.
        chats: that are asked.
        limits: key of a config -> length limit that it sets for responses.
        options: of the chat template.
    """
    context = find_context(model, revision)
    if find_misfit(context, _bound_longest(chats), limits) is not None:
        check_fit(context, count_longest_of(model, chats, options), limits)


def _bound_longest(chats: Sequence[Chat]) -> int:
    """Return more tokens than the longest prompt can have, by its bytes."""
    most_bytes = max(map(_count_bytes, chats), default=0)
    return most_bytes // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS


@cache
def _load_tokenizer(path: str) -> "PreTrainedTokenizerBase":
    """Return a model's tokenizer, which is kept; DataError if it cannot be loaded."""
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(Path(path).expanduser()))
    except Exception as error:  # foreign files fail in many ways
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"the tokenizer of {path} cannot be loaded: {type(error).__name__}: {reason}; save it "
            "anew with save_pretrained()"
        ) from None
    return tokenizer


def _longest(chats: Sequence[Chat]) -> list[Chat]:
    """Return the chats of the most bytes: almost surely the one of most tokens is among them."""
    return sorted(chats, key=_count_bytes)[-_PROMPTS_COUNTED:]


def check_context(
    config: TrainConfig, tasks: Tasks, encode: Callable[[Sequence[Chat]], list[list[int]]]
) -> None:
    """Raise ConfigError if a prompt with its response does not fit.

    `encode` makes token ids of chats.
    """
    context = model_context(config)
    if context is None:
        return
    for split, split_tasks, limits in (
        ("", tasks.train, training_limits(config)),
        ("held-out ", tasks.heldout, evaluation_limits(config)),
    ):
        prompts = encode(_longest([task.prompt.as_chat() for task in split_tasks]))
        check_fit(context, max(map(len, prompts), default=0), limits, split=split)
