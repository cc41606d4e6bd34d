"""`microcoder packages`: the packages that programs may import, and headers that they include."""

from typing import Annotated

from cyclopts import Parameter

from microcoder.judge.languages import LANGUAGES, find_language
from microcoder.judge.languages.definition import CURRENT_VERSION
from microcoder.judge.languages.kept_folders import find_roots
from microcoder.judge.languages.packages import (
    PROFILES,
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
    if profile:
        chosen = load_profile(profile)
        folder = install_packages(chosen) if chosen.packages else "nothing to install"
        print(f"{chosen.label} for Python {CURRENT_VERSION}: {folder}")
    # Who asks for headers alone wants no list.
    elif not headers:
        _list_profiles()
    languages = headers
    if headers == ("all",):
        languages = tuple(name for name, language in LANGUAGES.items() if language.precompiled)
    for name in languages:
        _make_headers(name)


def _list_profiles() -> None:
    """Print the profiles with their packages and where they are installed."""
    for profile in PROFILES.values():
        place = str(find_folder(profile) or "") if profile.packages else "needs nothing"
        if not place:
            place = f"not installed; type: microcoder packages {profile.name}"
        print(f"{profile.label}: {place}")
        for pin in profile.pins:
            print(f"  {pin}")
    print(f"kept in {' or '.join(map(str, find_roots()))}, for Python {CURRENT_VERSION}")


def _make_headers(name: str) -> None:
    """Precompile the missing headers of a language, and print where all of them are."""
    language = find_language(name)
    folders = list_headers(language)
    if not folders:
        why = language.find_problem() or "the compiler takes no precompiled headers"
        print(f"{language.label}: nothing to make: {why}")
    for header, folder in folders.items():
        # Made once, for all later programs.
        if not folder:
            folder = make_header(language, header)
        print(f"{language.label}, {header}: {folder}")
