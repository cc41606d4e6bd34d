import gzip
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from microcoder.data import read_problems, write_problems
from microcoder.judge.core.config import Config, dotted_keys, load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Checker, Problem, TestCase


class Grpo(Config):
    kind: Literal["grpo"]
    epsilon: float = 1e-6


class MaxRl(Config):
    kind: Literal["max_rl"]
    power: int = Field(default=2, ge=1)


class Masking(Config):
    probability: float = Field(default=0.2, ge=0, le=1)
    window: int = 128


class Source(Config):
    path: str
    format: str = "jsonl"


class Recipe(Config):
    name: str = "run"
    sources: tuple[Source, ...] = ()
    tiers: tuple[str, ...] = ()
    masking: Masking = Masking()
    advantage: Annotated[Grpo | MaxRl, Field(discriminator="kind")] = Grpo(kind="grpo")


def toml(folder: Path, text: str, name: str = "config.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(*recipes: Path, **overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_config(
            Recipe,
            recipes,
            {key.replace("__", "."): value for key, value in overrides.items()},
        )
    assert "\n" not in str(error.value)
    return str(error.value)


def test_flags_win_over_later_recipes_win_over_earlier_ones_win_over_defaults(
    tmp_path: Path,
) -> None:
    assert load_config(Recipe) == Recipe()
    first = toml(tmp_path, 'name = "first"\n[masking]\nprobability = 0.1\nwindow = 64\n', "a.toml")
    second = toml(tmp_path, 'name = "second"\n[masking]\nprobability = 0.5\n', "b.toml")
    config = load_config(
        Recipe,
        [first, second],
        {"masking.probability": "0.9", "tiers": '["easy", "hard"]'},
    )
    assert config.name == "second"
    assert config.masking == Masking(probability=0.9, window=64)
    assert config.tiers == ("easy", "hard")
    with pytest.raises(ValidationError, match="frozen"):
        config.name = "other"  # pyrefly: ignore
    for text, name in (("plain words", "plain words"), ('"2026"', "2026"), ("", "")):
        assert load_config(Recipe, (), {"name": text}).name == name


def test_one_item_is_a_list_of_it() -> None:
    found = load_config(Recipe, (), {"sources.path": "a", "sources.format": "x", "tiers": "easy"})
    assert found.sources == (Source(path="a", format="x"),)
    assert found.tiers == ("easy",)
    with pytest.raises(ConfigError, match=r"^sources.0.path = 5: .*; quote it: '\"5\"'$"):
        load_config(Recipe, (), {"sources.path": "5"})


def test_unknown_keys_name_the_nearest_key_or_the_known_ones(tmp_path: Path) -> None:
    recipe = toml(tmp_path, "[masking]\nprobabilty = 0.3\n")
    message = refused(recipe)
    assert message.startswith("unknown key masking.probabilty")
    assert str(recipe) in message
    assert "did you mean masking.probability?" in message
    assert "did you mean masking.probability?" in refused(masking__probabilty="0.3")
    assert "known keys: name, tiers" in refused(zzzz="1")
    # Both kinds have the key `kind`; it is listed once.
    assert refused(advantage__kind="grpo", advantage__zzzzzzzzzzz="1").count("advantage.kind") == 1
    assert "unknown key advantage.powr" in refused(advantage__kind="max_rl", advantage__powr="3")
    assert "add advantage.kind" in refused(advantage__epsilon="0.1")
    assert {"grpo", "max_rl"} <= set(refused(advantage__kind="ppo").replace("'", " ").split())
    keys = {"name", "masking.window", "advantage.kind", "advantage.epsilon", "advantage.power"}
    assert keys <= set(dotted_keys(Recipe))


def test_another_kind_drops_the_old_kinds_options_whatever_the_order_of_flags(
    tmp_path: Path,
) -> None:
    recipe = toml(tmp_path, '[advantage]\nkind = "grpo"\nepsilon = 0.5\n')
    assert load_config(Recipe, [recipe], {"advantage.kind": "max_rl"}).advantage == MaxRl(
        kind="max_rl"
    )
    assert load_config(Recipe, [recipe], {"advantage.kind": "grpo"}).advantage == Grpo(
        kind="grpo",
        epsilon=0.5,
    )
    flags = {"advantage.kind": "max_rl", "advantage.power": "3"}
    for given in (flags, dict(reversed(flags.items()))):
        assert load_config(Recipe, [recipe], given).advantage == MaxRl(kind="max_rl", power=3)


def test_a_recipe_that_is_not_there_or_not_toml_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "pass -c PATH" in refused(Path("nothing.toml"))
    assert "did you mean micro?" in refused(Path("mircro"))
    (tmp_path / "empty.toml").touch()
    assert "NotADirectoryError" in refused(Path("empty.toml/x"))
    assert "is not valid TOML" in refused(toml(tmp_path, "name = \n"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert "UnicodeDecodeError" in refused(tmp_path / "binary.toml")


def test_a_refused_value_says_what_it_must_be() -> None:
    for key, value, sentence in (
        ("masking.probability", "2", "masking.probability = 2: must be 1 or less"),
        ("masking.window", "many", "masking.window = 'many': must be a whole number"),
        ("masking.window", "1.5", "masking.window = 1.5: must be a whole number"),
        ("masking", "3", "masking = 3: must be a table of keys"),
    ):
        assert sentence in refused(**{key: value})


GOOD = '{"id": "a", "statement": "s", "tests": [{"input": "1", "output": "2"}]}'


ANOTHER = GOOD.replace('"a"', '"b"')
BROKEN = {
    '{"id": "b", ': "line 2 is not JSON",
    '{"id": "b", "tests": []}': "line 2: tests",
    '{"id": "b"}': "key tests is missing",
    '{"id": "b", "test": []}': "key tests is missing; unknown key test; did you mean tests?.",
    (
        '{"id": "b", "tests": [{"input": 1, "output": ""}]}'
    ): "line 2: tests.0.input = 1: must be text.",
    (
        '{"id": "b", "tests": [{"imput": "1", "output": ""}]}'
    ): "unknown key tests.0.imput; did you mean input?",
    GOOD: "id 'a' was already used on line 1",
    ANOTHER.replace('"s"', '" "'): "no statement",
    ANOTHER.replace('"b"', '"b", "language": "cobol"'): "language = 'cobol'",
    ANOTHER.replace(
        '"b"', '"b", "checker": {"type": "exact", "code": "x"}'
    ): 'checker type "exact" takes no code',
}


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "problems.jsonl"
    for line, message in BROKEN.items():
        file.write_text(f"{GOOD}\n{line}\n")
        with pytest.raises(DataError) as caught:
            read_problems(file)
        assert message in f"{caught.value}."
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_missing_empty_and_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(GOOD.encode() * 100)[:-20])
    for name, message in {
        "no": "does not exist",
        "empty": "holds no record",
        "cut": "cannot be read",
    }.items():
        with pytest.raises(DataError, match=message):
            read_problems(tmp_path / f"{name}.jsonl{'.gz' * (name == 'cut')}")


def test_what_is_written_is_read_again_gzipped_or_not(tmp_path: Path) -> None:
    checker = Checker(type="float", tolerance=1e-3)
    tests = (TestCase(input="1\n", output="2\n"),)
    problems = []
    for n in range(3):
        problems.append(
            Problem(id=f"p{n}", statement="Ångström\u2028", tests=tests, checker=checker)
        )
    plain = tmp_path / "p.jsonl"
    packed = tmp_path / "p.jsonl.gz"
    write_problems(plain, problems)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_problems(plain) == read_problems(packed) == problems
