from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.data.filter.rules import PERMISSIVE, SHARE_ALIKE, LicenceSettings, check_licence, normalise_licence
from microcoder.data.formats.candidates import Candidate


def row(licence: str) -> Candidate:
    return Candidate(id="set/1", dataset="set", licence=licence)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("MIT", "MIT"), ("MIT License", "MIT"), ("The MIT licence", "MIT"), ("apache-2.0", "Apache-2.0"),
        ("Apache License 2.0", "Apache-2.0"), ("cc by-sa", "CC-BY-SA"), ("CC BY-SA 4.0", "CC-BY-SA"),
        ("cc-by-sa-3.0", "CC-BY-SA"), ("CC-BY-4.0", "CC-BY"), ("Creative Commons Attribution-ShareAlike", "CC-BY-SA"),
        ("Creative Commons Attribution 4.0 International", "CC-BY"), ("CC BY-NC-SA 4.0", "CC-BY-NC-SA"),
        ("cc-by-nc-4.0", "CC-BY-NC"), ("CC BY-ND", "CC-BY-ND"), ("cc0-1.0", "CC0-1.0"), ("CC0", "CC0-1.0"),
        ("public domain", "CC0-1.0"), ("odc-by", "ODC-BY"), ("GPL-3.0", "GPL"), ("AGPL-3.0", "GPL"),
        ("LGPL-2.1", "LGPL"),
        ("BSD 3-Clause", "BSD-3-Clause"), ("bsd-2-clause", "BSD-2-Clause"), ("", ""), ("  ", ""),
        ("CC-BY-4.0-NC", "CC-BY-NC"), ("CC BY 4.0, non-commercial use only", "CC-BY-NC"),
        ("creative commons - attribution - non commercial", "CC-BY-NC"), ("CC BY\u2011NC 4.0", "CC-BY-NC"),
        ("CC BY 4.0; commercial use is not allowed", "CC-BY-NC"), ("CC BY 4.0 (no derivatives)", "CC-BY-ND"),
        ("MIT (non-commercial)", "MIT (non-commercial)"), ("Apache-2.0, research only", "Apache-2.0, research only"),
        ("public domain, not for commercial use", "public domain, not for commercial use"),
        ("educational use only", "educational use only"), ("permission of the author", "permission of the author"),
    ],
)  # fmt: skip
def test_one_name_for_the_ways_of_writing(written: str, name: str) -> None:
    assert normalise_licence(written) == name


@pytest.mark.parametrize("name", [*PERMISSIVE, *SHARE_ALIKE])
def test_every_name_on_the_list_is_its_own(name: str) -> None:
    assert normalise_licence(name) == name
    assert check_licence(row(name)) is None


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_licence(text)
    assert normalise_licence(once) == once


@pytest.mark.parametrize("licence", ["CC BY-NC 4.0", "CC-BY-ND", "all rights reserved"])
def test_what_is_not_on_the_list_is_refused(licence: str) -> None:
    assert check_licence(row(licence)) == ("licence_refused", normalise_licence(licence))


def test_what_says_nothing_passes_unless_the_config_says_otherwise() -> None:
    assert check_licence(row("")) is None
    strict = LicenceSettings(unknown="reject")
    assert check_licence(row(""), strict) == ("licence_unknown", "the source says nothing")


def test_a_dataset_speaks_for_rows_that_say_nothing() -> None:
    settings = LicenceSettings(unknown="reject", datasets={"set": "CC BY-NC 4.0"})
    assert check_licence(row(""), settings) == ("licence_refused", "CC-BY-NC")
    assert check_licence(row("MIT"), settings) is None
