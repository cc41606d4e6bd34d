"""Configuration: frozen pydantic models, TOML recipes, dotted overrides.

Precedence: defaults < recipe files from left to right < `--dotted.key value` flags. An unknown key
is an error that names the nearest known one. `list_keys` and `describe_keys` list the keys with
their docstrings, for `--help` and the reference.
"""

import difflib
import inspect
import json
import textwrap
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from microcoder.judge.core.errors import ConfigError, explain_fault, own_faults, suggest
from microcoder.judge.core.records import nested_models
from microcoder.judge.core.syntax import attribute_docstrings
from microcoder.judge.core.types import Record

_SHORT_FORM_KEYS = ("kind", "name")
"""Keys of a table that may be written as a text in its place."""
_DEFAULT_TEXTS = ("", "required", "none")
"""Texts in place of a default, for keys that have none to show."""
_LEAST_SIMILAR = 0.6
"""Similarity, from 0 to 1, from which a known key is offered for a misspelt one."""
_MOST_OFFERED = 3
"""Most known keys that are offered for a misspelt one."""
_LEAST_WIDTH = 20
"""Fewest columns that a key's meaning is cut to."""
_MEANING_INDENT = " " * 6
"""Indentation of a key's meaning below it."""


class Config(Record):
    """Base of every configuration model: frozen, and refuses unknown keys.

    A key that takes a list also takes a single value: `--problems.tiers easy`. A table of which
    only `kind` or `name` is given may be written as that text: `loss = "cispo"`.
    """

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, values: object) -> object:
        fields = cls.model_fields
        if isinstance(values, str):
            for key in _SHORT_FORM_KEYS:
                if key in fields:
                    return {key: values}
            # Left as it is, so that pydantic says what it should be.
            return values
        if not isinstance(values, Mapping):
            return values
        table: dict[object, object] = {}
        for name, value in values.items():
            is_single = name in fields and _wants_a_list(fields[name].annotation, value)
            table[name] = [value] if is_single else value
        return table

    def _contradictions(self) -> Iterator[str]:
        """Yield a message, with its fix, for each contradiction between keys.

        Loading fails with the first.
        """
        yield from ()

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        for contradiction in self._contradictions():
            # A ValueError, which pydantic collects and `load_config` then explains.
            raise ValueError(contradiction)
        return self


def _wants_a_list(annotation: object, value: object) -> bool:
    """Whether a single value must be wrapped in a list.

    It must if the annotation allows a list, and has no literal equal to the value.
    """
    if not isinstance(value, str | int | float | Mapping):
        return False
    choices = (annotation,)
    if get_origin(annotation) in (Union, UnionType):
        choices = get_args(annotation)
    for choice in choices:
        # Where the key also takes this very word, it is meant as it stands.
        if get_origin(choice) is Literal and value in get_args(choice):
            return False
    return any(get_origin(choice) is tuple for choice in choices)


def kind_or(default: str) -> BeforeValidator:
    """Return a validator for a tagged union.

    `kind` is `default` if not given, and a bare string is taken as `kind`.
    """

    def name_kind(value: object) -> object:
        if isinstance(value, str):
            return {"kind": value}
        if isinstance(value, Mapping):
            return {"kind": default, **value}
        return value

    return BeforeValidator(name_kind)


ConfigT = TypeVar("ConfigT", bound=Config)
"""The model that a configuration is validated by."""
_WITHIN = Path(__file__).parents[2] / "shipped"
"""Where a wheel has the package's own files; a checkout lacks it."""
SHIPPED = _WITHIN if _WITHIN.is_dir() else Path(__file__).parents[4]
"""Folder of the package's own `recipes` and `studies`.

In a wheel it is inside the package, in a checkout beside `src`.
"""


def load_config(
    schema: type[ConfigT],
    recipes: Sequence[Path] = (),
    overrides: Mapping[str, str] | None = None,
    *,
    layers: Sequence[Mapping[str, object]] = (),
) -> ConfigT:
    """Resolve defaults, recipes and overrides into one validated config.

    Args:
        schema: the config model.
        recipes: TOML files, or names of the package's own recipes; later ones win.
        overrides: dotted key to value text, read as TOML if it is TOML, else as a string.
        layers: tables of dotted keys and values, over the recipes and under the overrides; later
            ones win.

    Raises:
        ConfigError: a file is missing or not TOML, a key is unknown, or a value is refused.
    """
    merged: dict[str, Any] = {}
    for recipe in recipes:
        _merge(merged, read_recipe(recipe))
    for layer in layers:
        for key, value in layer.items():
            _merge(merged, _nest(key, value))
    # By themselves first, in any order: a kind behind its options must not clear them.
    flags: dict[str, Any] = {}
    for key, text in (overrides or {}).items():
        _merge(flags, _nest(key, _parse_value(text)))
    _merge(merged, flags)
    try:
        return schema.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_explain(error, schema, recipes)) from None


def find_recipe(path: Path) -> Path:
    """Return a recipe's file.

    A path is returned unchanged; for a name such as `micro` or `lab/chains` the package's own file.
    """
    # A file of the user's own comes before a name of the package's.
    if path.suffix == ".toml" or path.is_file():
        return path
    return _recipe_names().get(str(path), path)


def name_recipe(path: Path) -> str:
    """Return the name of a recipe: FOLDER for FOLDER/config.toml, NAME for any NAME.toml."""
    if path.stem == "config":
        return path.absolute().parent.name
    return path.stem


def _recipe_names() -> dict[str, Path]:
    """Return the file of each name of the package's own recipes, with and without the folder."""
    paths = sorted((SHIPPED / "recipes").glob("*/*.toml"))
    names = {name_recipe(path): path for path in paths}
    for path in paths:
        names[f"{path.parent.name}/{path.stem}"] = path
    return names


def read_recipe(path: Path) -> dict[str, Any]:
    """Return the tables of a recipe, a TOML file or the name of one of the package's.

    ConfigError if it is missing or not TOML.
    """
    path = find_recipe(path)
    try:
        # Editors of Windows begin a file with a byte order mark, which `utf-8-sig` skips.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        names = [name for name in _recipe_names() if "/" not in name]
        hint = suggest(str(path), names)
        if not hint:
            hint = f"pass -c PATH to a TOML file, or a recipe of the package: {', '.join(names)}"
        raise ConfigError(f"recipe {path} does not exist; {hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"recipe {path} cannot be read ({type(error).__name__}); check the file"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"recipe {path} is not valid TOML: {error}") from None


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Put the values of a table over those of another, key by key."""
    for key, value in extra.items():
        mine = base.get(key)
        # A kind written as its name, and its options in another place.
        if isinstance(value, Mapping) and isinstance(mine, str):
            mine = {"kind": mine}
            base[key] = mine
        elif isinstance(value, str) and isinstance(mine, dict) and "kind" in mine:
            value = {"kind": value}
        if isinstance(value, Mapping) and isinstance(mine, dict):
            # Another kind of a tagged union starts afresh: the old kind's options would be unknown
            # keys.
            if "kind" in value and value["kind"] != mine.get("kind", value["kind"]):
                mine.clear()
            _merge(mine, value)
        elif isinstance(value, Mapping):
            # A copy: later layers are merged into it, and must not change where it came from.
            base[key] = dict(value)
        else:
            base[key] = value


def _nest(dotted: str, value: object) -> dict[str, Any]:
    head, _, rest = dotted.partition(".")
    return {head: _nest(rest, value) if rest else value}


def _parse_value(text: str) -> object:
    try:
        # A bare word is no TOML, and nobody wants to quote every word for a shell.
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(
    error: ValidationError,
    schema: type[Config],
    recipes: Sequence[Path],
) -> str:
    """Return one sentence per fault: where, what was given, what is allowed."""
    # A set: the kinds of a table have keys of the same name.
    known = sorted(set(dotted_keys(schema)))
    where = f" (in {', '.join(map(str, recipes))} or the flags)" if recipes else ""
    faults = own_faults(error.errors())
    return "; ".join(_explain_one(fault, known, where) for fault in faults)


def _explain_one(fault: ErrorDetails, known: Sequence[str], where: str) -> str:
    """Return the sentence of one fault.

    Args:
        fault: pydantic's error.
        known: the dotted keys of the schema, sorted.
        where: the files that a key may be in, for the message.
    """
    # A tagged union puts its tag into the location; it is no part of the key that the user wrote.
    words = {word for key in known for word in key.split(".")}
    location = fault["loc"]
    key = ".".join(str(part) for part in location if part in words or isinstance(part, int))
    context = fault.get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            key = _unknown_key(fault, words)
            return f"unknown key {key}{where}; {_suggest_key(key, known)}"
        case "union_tag_not_found":
            return f"{key} has options but no kind{where}; add {key}.kind"
        case "union_tag_invalid":
            allowed = context.get("expected_tags")
            return f"{key}.kind = {context.get('tag')!r}: use one of {allowed}"
        case "missing":
            is_table = any(name.startswith(f"{key}.") for name in known)
            fix = f"add [{key}]" if is_table else f"add {key}, or --{key} VALUE"
            return f"{key} is missing; {fix}"
    message = explain_fault(fault)
    value = fault["input"]
    if fault["type"] == "string_type":
        message += f"; quote it: '\"{value}\"'"
    if not key:
        return message
    # A whole table as text would bury the message.
    if isinstance(value, Mapping | BaseModel):
        return f"{key}: {message}"
    return f"{key} = {value!r}: {message}"


def _unknown_key(fault: ErrorDetails, words: Collection[str]) -> str:
    """Return the unknown key of a fault, without the tags of unions.

    For an unknown table, that is the first key inside.
    """
    location = fault["loc"]
    parts = [str(part) for part in location[:-1] if str(part) in words]
    key = ".".join([*parts, str(location[-1])])
    if isinstance(fault["input"], Mapping):
        return next(iter(flatten(fault["input"], f"{key}.")), key)
    return key


def _suggest_key(key: str, known: Sequence[str]) -> str:
    table = key.rpartition(".")[0]
    # pydantic calls it unknown since another kind of the table was chosen.
    if key in known:
        return f"it is an option of another {table}.kind"
    # A key given without the table it is in, or misspelt.
    close = [name for name in known if name.endswith(f".{key}")]
    if not close:
        close = difflib.get_close_matches(key, known, n=1, cutoff=_LEAST_SIMILAR)
    if close:
        return f"did you mean {' or '.join(close[:_MOST_OFFERED])}?"
    siblings = [name for name in known if name.rpartition(".")[0] == table]
    return f"known keys: {', '.join(siblings or known)}"


def dotted_keys(schema: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield every leaf key of a config model as a dotted name."""
    for name, field in schema.model_fields.items():
        models = list(nested_models(field.annotation))
        for model in models:
            yield from dotted_keys(model, f"{prefix}{name}.")
        if not models:
            yield prefix + name


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one level of dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key, or one kind of a table."""

    name: str
    """Dotted name."""
    default: str
    """Default as JSON; or `required`, `none`, or empty for a kind."""
    meaning: str


def list_keys(schema: type[BaseModel], prefix: str = "") -> Iterator[Key]:
    """Yield every key of a configuration, with those of its tables and of all kinds of a table."""
    meanings = attribute_docstrings(schema)
    for name, field in schema.model_fields.items():
        models = list(nested_models(field.annotation))
        for model in models:
            kind = model.model_fields.get("kind")
            if kind is not None and len(models) > 1:
                documentation = inspect.getdoc(model) or ""
                meaning = documentation.split("\n")[0]
                yield Key(f'{prefix}{name}.kind = "{get_args(kind.annotation)[0]}"', "", meaning)
            for key in list_keys(model, f"{prefix}{name}."):
                # The kind of a table is listed above, once for each of its values.
                if not key.name.endswith(f"{name}.kind"):
                    yield key
        if not models:
            yield Key(prefix + name, _default(field), meanings.get(name, ""))


def describe_keys(
    schema: type[BaseModel],
    *,
    width: int,
    usual: Collection[str] = (),
) -> str:
    """Return the keys as text, a paragraph each; or only the `usual` keys, a line each."""
    if usual:
        return _describe_usual_keys(schema, usual, width)
    lines = ["Configuration keys, in a TOML file or as flags:"]
    for key in list_keys(schema):
        mark = " (required)" if key.default == "required" else ""
        lines.append(f"  --{_show(key)}{mark}")
        lines += textwrap.wrap(
            key.meaning,
            width,
            initial_indent=_MEANING_INDENT,
            subsequent_indent=_MEANING_INDENT,
        )
    return "\n".join(lines)


def _describe_usual_keys(
    schema: type[BaseModel],
    usual: Collection[str],
    width: int,
) -> str:
    keys = {key.name: key for key in list_keys(schema)}
    shown = {name: _show(keys[name]) for name in usual}
    # Two dashes and two columns of indentation before a name, two behind the longest.
    indent = max(map(len, shown.values())) + 6
    lines = ["The usual configuration keys, in a TOML file or as flags:"]
    for name in usual:
        meaning = textwrap.shorten(
            keys[name].meaning, max(_LEAST_WIDTH, width - indent), placeholder=" ..."
        )
        lines.append(f"  --{shown[name]:<{indent - 4}}{meaning}".rstrip())
    return "\n".join(lines)


def _show(key: Key) -> str:
    return key.name if key.default in _DEFAULT_TEXTS else f"{key.name} = {key.default}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    # `default=str`, since a path is no JSON value.
    return "none" if value is None else json.dumps(value, default=str)
