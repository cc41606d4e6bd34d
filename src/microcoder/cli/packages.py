"""`microcoder packages`: the packages that programs may import, and headers that they include."""

import json as json_module
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import Parameter

from microcoder.cli.display import Json
from microcoder.judge.languages import LANGUAGES, find_language
from microcoder.judge.languages.definition import CURRENT_VERSION
from microcoder.judge.languages.kept_folders import find_roots
from microcoder.judge.languages.packages import (
    PROFILES,
    PackageProfile,
    find_folder,
    install_packages,
    load_profile,
)
from microcoder.judge.run.builds import list_headers, make_header


def packages(
    profile: str = "",
    /,
    *,
    headers: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    json: Json = False,
) -> None:
    """Install and list the third-party packages that programs may import.

    With a profile it installs its packages in a folder of their own, as a judge does when it first
    needs them: MICROCODER_PACKAGES if that is set; otherwise a system-wide one for root, one in the
    home folder for other users. Without, it lists the profiles with their packages and where they
    are installed.

    Parameters
    ----------
    profile
        One of standard, atcoder, none, or the path of a file of pinned packages (.txt or .toml).
    headers
        Precompile common headers of these languages, such as cpp17 cpp20, or of `all` with such
        headers, as a judge does at the fifth program that includes one. Programs then build in
        about a quarter of the time. The headers are stored beside the packages.
    """
    shown: Sequence[PackageProfile] = ()
    installed = None
    if profile:
        chosen = load_profile(profile)
        shown = (chosen,)
        if chosen.packages:
            installed = str(install_packages(chosen))
        if not json:
            print(
                f"{chosen.label} for Python {CURRENT_VERSION}: {installed or 'nothing to install'}"
            )
    # Who asks for headers alone wants no list.
    elif not headers:
        shown = tuple(PROFILES.values())
        if not json:
            _print_profiles(shown)
    languages = headers
    if headers == ("all",):
        languages = tuple(name for name, language in LANGUAGES.items() if language.precompiled)
    made = []
    for name in languages:
        made.append(_make_headers(name))
        if not json:
            _print_headers(made[-1])
    if json:
        record = {
            "output": installed,
            "python": CURRENT_VERSION,
            "profiles": [_describe_profile(profile) for profile in shown],
            "headers": [asdict(headers_made) for headers_made in made],
        }
        print(json_module.dumps(record))


def _describe_profile(profile: PackageProfile) -> dict[str, object]:
    """Return a profile as JSON values: its packages, and where they are if they are installed."""
    described: dict[str, object] = {
        "name": profile.name,
        "label": profile.label,
        "pins": list(profile.pins),
        "folder": None,
    }
    if profile.packages:
        folder = find_folder(profile)
        if folder is not None:
            described["folder"] = str(folder)
    return described


def _print_profiles(profiles: Sequence[PackageProfile]) -> None:
    """Print the profiles with their packages and where they are installed."""
    for profile in profiles:
        place = str(find_folder(profile) or "") if profile.packages else "needs nothing"
        if not place:
            place = f"not installed; type: microcoder packages {profile.name}"
        print(f"{profile.label}: {place}")
        for pin in profile.pins:
            print(f"  {pin}")
    print(f"kept in {' or '.join(map(str, find_roots()))}, for Python {CURRENT_VERSION}")


@dataclass(frozen=True, slots=True)
class PrecompiledHeaders:
    """The precompiled headers of a language, as `--json` prints them."""

    language: str
    folders: dict[str, str]
    """Header -> the folder of its precompiled form."""
    problem: str
    """Why there are none; empty where there are some."""


def _make_headers(name: str) -> PrecompiledHeaders:
    """Precompile the missing headers of a language, and return where all of them are."""
    language = find_language(name)
    headers = list_headers(language)
    problem = ""
    if not headers:
        problem = language.find_problem() or "the compiler takes no precompiled headers"
    folders = {}
    for header, folder in headers.items():
        # Made once, for all later programs.
        folders[header] = str(folder or make_header(language, header))
    return PrecompiledHeaders(language.label, folders, problem)


def _print_headers(made: PrecompiledHeaders) -> None:
    if made.problem:
        print(f"{made.language}: nothing to make: {made.problem}")
    for header, folder in made.folders.items():
        print(f"{made.language}, {header}: {folder}")
