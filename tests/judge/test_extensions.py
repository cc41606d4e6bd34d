"""The door for what users bring along: found by every kind of name, checked, and named in each error."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extensions import Extension, load_extension


def plain(text: str, *, times: int = 1, word: str = "") -> str:
    return text * times + word


BUILTINS: dict[str, Callable[..., str]] = {"plain": plain}
OWN = """\
SIZE = 3


def shout(text: str, *, marks: int = 1) -> str:
    return text.upper() + "!" * marks


def needy(text: str, *, suffix: str) -> str:
    return text + suffix


def broken(text):
    width = len(text)
    return width / 0
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def load(reference: str, **options: object) -> Extension:
    return load_extension("style", reference, builtins=BUILTINS, options=options)


def refused(reference: str, **options: object) -> str:
    with pytest.raises(ConfigError) as error:
        load(reference, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_builtins_and_installed_modules_come_in_by_the_same_door() -> None:
    extension = load("plain", times=2)
    assert extension("ab") == "abab"
    assert (extension.label, extension.source) == ("plain", None)
    assert load("textwrap:dedent")("  a") == "a"
    assert "path/to/file.py:function" in refused("textwrap_of_ours:dedent")
    message = refused("plane")
    assert "unknown style 'plane'; did you mean plain?" in message
    assert "path/to/file.py:function" in message


def test_a_function_of_a_file_is_found_and_its_source_is_kept(own: Path) -> None:
    extension = load(f"{own}:shout", marks="2")
    assert extension("ab") == "AB!!"
    assert extension.label == "shout"
    assert extension.source is not None
    record = extension.source.as_record()
    assert (record["file"], record["line"], record["reference"]) == (str(own), 4, f"{own}:shout")
    own.write_text(OWN + "\n# edited\n")
    edited = load(f"{own}:shout").source
    assert edited is not None
    assert edited.digest != record["digest"]


def test_an_entry_point_is_found_by_its_name(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own.parent / "own_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[microcoder.style]\nloud = own:shout\nlost = own:nothing\n")
    monkeypatch.syspath_prepend(str(own.parent))
    try:
        assert load("loud")("ab") == "AB!"
        assert load("loud").label == "loud"
        assert "lost (own:nothing of own-package) cannot be imported" in refused("lost")
        assert "did you mean loud?" in refused("louder")
    finally:
        sys.modules.pop("own", None)


def test_what_is_wrong_with_a_file_is_said_with_its_line(own: Path) -> None:
    assert f"{own.parent}/none.py does not exist" in refused(f"{own.parent}/none.py:shout")
    assert "did you mean shout?" in refused(f"{own}:shoot")
    assert "is of type int; name a function" in refused(f"{own}:SIZE")
    own.write_text("import math\n\nmath.nothing()\n")
    assert f"{own} line 3 cannot be imported: AttributeError" in refused(f"{own}:shout")
    own.write_text("def shout(:\n")
    assert f"{own} line 1 cannot be imported: SyntaxError" in refused(f"{own}:shout")


def test_options_are_checked_and_a_failure_names_its_line(own: Path) -> None:
    assert "has no option 'tims'; did you mean times?" in refused("plain", tims=2)
    assert "option times = 'many'" in refused("plain", times="many")
    assert f"({own} line 8) needs the option 'suffix'" in refused(f"{own}:needy")
    assert "it has none" in refused(f"{own}:broken", size=3)
    with pytest.raises(ConfigError, match=r"own\.py line 14\) raised ZeroDivisionError: division by zero"):
        load(f"{own}:broken")("ab")


def test_an_edited_file_is_read_anew_though_its_size_and_second_stay(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert load(f"{own}:shout")("a") == "A!"
    times = own.stat()
    own.write_text(OWN.replace('"!"', '"?"'))
    os.utime(own, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load(f"{own}:shout")("a") == "A?"
