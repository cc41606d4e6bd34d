"""User-defined rewards, prompts, extractors and so on, named in a recipe.

A reference is one of

- a built-in name: `all_tests`;
- a function in a file: `my/rewards.py:brevity`;
- an attribute of an installed module: `my_package.rewards:brevity`.

Options are the function's keyword-only parameters, checked by their annotations. Built-ins are loaded the same way.
"""

import hashlib
import importlib
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from microcoder.judge.core.errors import ConfigError, explain_fault, suggest


@dataclass(frozen=True, slots=True)
class ExtensionSource:
    """The code of an extension, as recorded in the manifest."""

    noun: str
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

    def __call__(self, *arguments: Any, passing: tuple[type[Exception], ...] = ()) -> Any:
        """Call the function with its options; what a user's raises is a ConfigError, except the types `passing`."""
        try:
            return self.function(*arguments, **self.options)
        except passing:
            raise
        except Exception as error:
            if self.source is None:
                raise
            raise self.fault(
                f"raised {type(error).__name__}: {error}", line=_line_of(error, self.source.file)
            ) from error

    def fault(self, what: str, *, line: int | None = None) -> ConfigError:
        """Return a ConfigError about the extension, with its file and line."""
        place = (
            "" if self.source is None else f" ({self.source.file} line {line or self.source.line})"
        )
        return ConfigError(f"{self.noun} {self.reference}{place} {what}")


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
        ConfigError: nothing there, not importable or not a function; or an option is unknown or wrong.
    """
    function: Any
    if reference in builtins:
        label, function, module = reference, builtins[reference], None
    elif ":" in reference:
        where, _, label = reference.rpartition(":")
        if where.endswith(".py"):
            module = _import_file(noun, where)
        else:
            try:
                module = importlib.import_module(where)
            except Exception as error:  # it is the user's code: anything may go wrong in it
                raise ConfigError(
                    f"{noun} {reference}: module {where} cannot be imported: {type(error).__name__}: {error}; install "
                    "it, or name its file: path/to/file.py:function"
                ) from error
        if not hasattr(module, label):
            known = [
                key
                for key, value in vars(module).items()
                if callable(value) and not key.startswith("_")
            ]
            hint = suggest(label, known) or f"it has {', '.join(known) or 'no functions'}"
            raise ConfigError(f"{noun} {reference}: {module.__file__} has no {label!r}; {hint}")
        function = getattr(module, label)
    else:
        allowed = (
            f"use one of {', '.join(builtins)}, or your own function as path/to/file.py:function"
        )
        raise ConfigError(
            f"unknown {noun} {reference!r}; {f'{suggest(reference, builtins)} {allowed}'.lstrip()}"
        )
    if not callable(function):
        raise ConfigError(
            f"{noun} {reference} is of type {type(function).__name__}; name a function"
        )
    source = None if module is None else _source_of(noun, reference, function, module)
    found = Extension(noun, reference, label, function, {}, source)
    return Extension(noun, reference, label, function, _check_options(found, options or {}), source)


def describe_file(noun: str, path: str) -> ExtensionSource:
    """Return the manifest's record of a file other than Python, such as a language's."""
    code = Path(path).expanduser().read_bytes()
    return ExtensionSource(noun, path, path, 1, hashlib.sha256(code).hexdigest()[:16])


def _import_file(noun: str, where: str) -> ModuleType:
    path = Path(where).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"{noun}: file {where} does not exist; check the path, which is taken from {Path.cwd()}"
        )
    name = f"microcoder_{noun}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    try:
        # As it stands: to an importer, bytecode of an earlier text passes for it if size and second are the same.
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:  # it is the user's file: anything may go wrong in it
        del sys.modules[name]
        line = error.lineno if isinstance(error, SyntaxError) else _line_of(error, str(path))
        raise ConfigError(
            f"{noun}: {where} line {line or 1} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def _source_of(noun: str, reference: str, function: Any, module: ModuleType) -> ExtensionSource:
    try:
        file, line = (
            inspect.getsourcefile(function) or module.__file__,
            inspect.getsourcelines(function)[1],
        )
    except (OSError, TypeError):  # a callable object, or compiled
        file, line = module.__file__, 1
    code = Path(file).read_bytes() if file and Path(file).is_file() else b""
    return ExtensionSource(noun, reference, str(file), line, hashlib.sha256(code).hexdigest()[:16])


def _check_options(extension: Extension, options: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(extension.function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    annotations = (
        typing.get_type_hints(extension.function) if inspect.isfunction(extension.function) else {}
    )
    checked = {}
    for name, value in options.items():
        if name not in parameters:
            hint = suggest(name, parameters) or f"it has {', '.join(parameters) or 'none'}"
            raise extension.fault(f"has no option {name!r}; {hint}")
        try:
            checked[name] = TypeAdapter(annotations.get(name, Any)).validate_python(value)
        except ValidationError as error:
            raise extension.fault(
                f"option {name} = {value!r}: {explain_fault(error.errors()[0])}"
            ) from None
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in options]
    if missing:
        raise extension.fault(f"needs the option {missing[0]!r}; set it under options")
    return checked


def _line_of(error: BaseException, file: str) -> int | None:
    """Return the innermost line of a file in an error's traceback; None if the file is not in it."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next(
        (frame.lineno for frame in frames if Path(frame.filename).name == Path(file).name), None
    )
