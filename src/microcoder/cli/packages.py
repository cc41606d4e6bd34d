"""`microcoder packages`: the third-party packages that programs may import, and headers that they include."""

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

    With a profile it installs its packages in a folder of their own, as a judge does when it first needs them:
    MICROCODER_PACKAGES if that is set; otherwise a system-wide one for root, one in the home folder for other users.
    Without, it lists the profiles with their packages and where they are installed.

    Parameters
    ----------
    profile
        One of standard, atcoder, none, or the path of a file of pinned packages (.txt or .toml).
    headers
        Precompile common headers of these languages, such as cpp17 cpp20, or of `all` with such headers, as a judge
        does at the fifth program that includes one. Programs then build in about a quarter of the time. The headers are
        stored beside the packages.
    """
    if profile:
        chosen = load_profile(profile)
        folder = install_packages(chosen) if chosen.packages else "nothing to install"
        print(f"{chosen.label} for Python {CURRENT_VERSION}: {folder}")
    elif not headers:
        for one in PROFILES.values():
            where = find_folder(one) if one.packages else "needs nothing"
            found = where or f"not installed; type: microcoder packages {one.name}"
            print(f"{one.label}: {found}", *(f"  {pin}" for pin in one.pins), sep="\n")
        print(f"kept in {' or '.join(map(str, find_roots()))}, for Python {CURRENT_VERSION}")
    known = [name for name, language in LANGUAGES.items() if language.precompiled]
    for name in known if headers == ("all",) else headers:
        language = find_language(name)
        found = list_headers(language)
        if not found:
            why = language.find_problem() or "the compiler takes no precompiled headers"
            print(f"{language.label}: nothing to make: {why}")
        for header, folder in found.items():
            print(f"{language.label}, {header}: {folder or make_header(language, header)}")
