"""User-defined rewards, prompts, extractors and so on, named in a recipe.

A reference is one of

- a built-in name: `all_tests`;
- a function in a file: `my/rewards.py:brevity`;
- an attribute of an installed module: `my_package.rewards:brevity`.

Options are the function's keyword-only parameters, checked by their annotations. Built-ins are
loaded the same way.
"""

import hashlib
import importlib
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from microcoder.judge.core.errors import ConfigError, explain_fault, suggest


@dataclass(frozen=True, slots=True)
class ExtensionSource:
    """The code of an extension, as recorded in the manifest."""

    noun: str
    """`reward`, `prompt`, ...: the word in messages."""
    reference: str
    """The reference as the recipe writes it."""
    file: str
    line: int
    digest: str
    """Digest of that file only, not of the modules that it imports."""

    def as_record(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Extension:
    """A function that a recipe names, with its options."""

    noun: str
    reference: str
    label: str
    """Name in metrics: that of the built-in, or of the function."""
    function: Callable[..., Any]
    """The function, to be called with `options`; may have attributes such as `needs_all_tests`."""
    options: Mapping[str, Any]
    source: ExtensionSource | None
    """The file that defines it; None for a built-in, whose version is this package's."""

    def __call__(self, *arguments: object, passing: tuple[type[Exception], ...] = ()) -> object:
        """Call the function with its options.

        What a user's function raises becomes a ConfigError, except the types `passing`.
        """
        try:
            return self.function(*arguments, **self.options)
        except passing:
            raise
        except Exception as error:
            # A built-in that raises is a bug of ours, which needs its traceback.
            if self.source is None:
                raise
            raise self.fault(
                f"raised {type(error).__name__}: {error}", line=_line_of(error, self.source.file)
            ) from error

    def fault(self, what: str, *, line: int | None = None) -> ConfigError:
        """Return a ConfigError about the extension, with its file and line."""
        location = ""
        if self.source is not None:
            location = f" ({self.source.file} line {line or self.source.line})"
        return ConfigError(f"{self.noun} {self.reference}{location} {what}")


def load_extension(
    noun: str,
    reference: str,
    *,
    builtins: Mapping[str, Callable[..., Any]],
    options: Mapping[str, Any] | None = None,
) -> Extension:
    """Load the function that a reference names.

    Args:
        noun: `reward`, `prompt`, ...: the word in messages.
        reference: see the module.
        builtins: the package's own functions, by name.
        options: values of the function's keyword-only parameters.

    Raises:
        ConfigError: nothing there, not importable or not a function; or an option is unknown or
            wrong.
    """
    source = None
    if reference in builtins:
        label = reference
        function = _check_callable(noun, reference, builtins[reference])
    elif ":" in reference:
        # From the right: a path may hold a colon, too.
        where, _, label = reference.rpartition(":")
        module = _import_module(noun, reference, where)
        found = _find_attribute(noun, reference, module, label)
        function = _check_callable(noun, reference, found)
        source = _source_of(noun, reference, function, module)
    else:
        hint = suggest(reference, builtins)
        allowed = (
            f"use one of {', '.join(builtins)}, or your own function as path/to/file.py:function"
        )
        raise ConfigError(f"unknown {noun} {reference!r}; {f'{hint} {allowed}'.lstrip()}")
    bare = Extension(noun, reference, label, function, {}, source)
    return replace(bare, options=_check_options(bare, options or {}))


def _check_callable(noun: str, reference: str, function: object) -> Callable[..., Any]:
    if not callable(function):
        raise ConfigError(
            f"{noun} {reference} is of type {type(function).__name__}; name a function"
        )
    return function


def _import_module(noun: str, reference: str, where: str) -> ModuleType:
    """Return the module that a reference names by its file or its dotted name."""
    if where.endswith(".py"):
        return _import_file(noun, where)
    try:
        return importlib.import_module(where)
    except Exception as error:  # it is the user's code: anything may go wrong in it
        raise ConfigError(
            f"{noun} {reference}: module {where} cannot be imported: "
            f"{type(error).__name__}: {error}; install it, or name its file: "
            "path/to/file.py:function"
        ) from error


def _find_attribute(
    noun: str,
    reference: str,
    module: ModuleType,
    name: str,
) -> object:
    if hasattr(module, name):
        return getattr(module, name)
    known = []
    for key, value in vars(module).items():
        if callable(value) and not key.startswith("_"):
            known.append(key)
    hint = suggest(name, known) or f"it has {', '.join(known) or 'no functions'}"
    raise ConfigError(f"{noun} {reference}: {module.__file__} has no {name!r}; {hint}")


def describe_file(noun: str, path: str) -> ExtensionSource:
    """Return the manifest's record of a file other than Python, such as a language's."""
    code = Path(path).expanduser().read_bytes()
    return ExtensionSource(noun, path, path, 1, _digest(code))


def _digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()[:16]


def _import_file(noun: str, where: str) -> ModuleType:
    path = Path(where).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"{noun}: file {where} does not exist; check the path, which is taken from {Path.cwd()}"
        )
    # Named by its path: of two files called rewards.py neither may replace the other.
    name = f"microcoder_{noun}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    # Before its code runs: dataclasses, for one, look up their module while they are made.
    sys.modules[name] = module
    module.__file__ = str(path)
    try:
        # Not by an importer: bytecode of an earlier text passes for it there if size and second are
        # the same.
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, vars(module))
    except (Exception, SystemExit) as error:  # it is the user's file: anything may go wrong in it
        # Half a module must not be there for a later import.
        del sys.modules[name]
        if isinstance(error, SyntaxError):
            line = error.lineno
        else:
            line = _line_of(error, str(path))
        raise ConfigError(
            f"{noun}: {where} line {line or 1} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def _source_of(
    noun: str,
    reference: str,
    function: Callable[..., Any],
    module: ModuleType,
) -> ExtensionSource:
    try:
        file = inspect.getsourcefile(function) or module.__file__
        line = inspect.getsourcelines(function)[1]
    except (OSError, TypeError):  # a callable object, or compiled
        file = module.__file__
        line = 1
    # Compiled code has no source to digest, but is no mistake.
    code = b""
    if file and Path(file).is_file():
        code = Path(file).read_bytes()
    return ExtensionSource(noun, reference, str(file), line, _digest(code))


def _check_options(extension: Extension, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with values of the types that the function's annotations say."""
    function = extension.function
    # Those without a name belong to us: the package fills them at each call.
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    annotations: dict[str, Any] = {}
    if inspect.isfunction(function):
        annotations = typing.get_type_hints(function)
    checked = {}
    for name, value in options.items():
        if name not in parameters:
            hint = suggest(name, parameters) or f"it has {', '.join(parameters) or 'none'}"
            raise extension.fault(f"has no option {name!r}; {hint}")
        try:
            adapter = TypeAdapter(annotations.get(name, Any))
            checked[name] = adapter.validate_python(value)
        except ValidationError as error:
            raise extension.fault(
                f"option {name} = {value!r}: {explain_fault(error.errors()[0])}"
            ) from None
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in options:
            raise extension.fault(f"needs the option {name!r}; set it under options")
    return checked


def _line_of(error: BaseException, file: str) -> int | None:
    """Return the line of a file that is innermost in an error's traceback; None if the file is
    not in it."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).name == Path(file).name:
            return frame.lineno
    return None
