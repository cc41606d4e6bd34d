"""`microcoder packages`: the third-party packages that programs may import, and headers that they include."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from microcoder.evaluator.headers import list_headers, make_header
from microcoder.evaluator.interpreter import CURRENT_VERSION, find_interpreter
from microcoder.evaluator.languages import LANGUAGES, find_language
from microcoder.evaluator.package_folders import find_folder, find_roots, install_packages
from microcoder.evaluator.packages import PROFILES, STANDARD, load_profile

app = App(name="packages", help="Install and list the third-party packages that programs may import.")


@app.command
def install(
    profile: str = STANDARD,
    /,
    *,
    python: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
) -> None:
    """Install the packages of a profile apart from all others, as a judge does when it first needs them.

    Into MICROCODER_PACKAGES where that is set; else root installs for everybody, anybody else for themselves.

    Parameters
    ----------
    profile
        One of standard, atcoder, none, or the path of a file of pins (.txt or .toml).
    python
        Versions of Python to install them for, such as 3.13; by default the one that MicroCoder runs on.
    """
    chosen = load_profile(profile)
    for version in python or (CURRENT_VERSION,):
        folder = install_packages(chosen, find_interpreter(version)) if chosen.packages else "nothing to install"
        print(f"{chosen.label} for Python {version}: {folder}")


@app.command(name="list")
def list_profiles() -> None:
    """List the profiles, their packages, and whether they are installed here."""
    interpreter = find_interpreter(CURRENT_VERSION)
    for profile in PROFILES.values():
        folder = find_folder(profile, interpreter) if profile.packages else "needs nothing"
        print(f"{profile.label}: {folder or f'not installed; type: microcoder packages install {profile.name}'}")
        for pin in profile.pins:
            print(f"  {pin}")
    print(f"kept in {' or '.join(map(str, find_roots()))}, for Python {CURRENT_VERSION}")


@app.command
def headers(*languages: str) -> None:
    """Precompile the headers that most programs begin with, as a judge does for the fifth program that includes one.

    Kept where packages are; a program then takes about a quarter of the time to build.

    Parameters
    ----------
    languages
        Such as cpp17 cpp20; by default each language that has such headers, in its usual version.
    """
    for name in languages or [name for name, language in LANGUAGES.items() if language.precompiled]:
        language = find_language(name)
        found = list_headers(language)
        if not found:
            why = language.find_problem() or "the compiler takes no precompiled headers"
            print(f"{language.label}: nothing to make: {why}")
        for header, folder in found.items():
            print(f"{language.label}, {header}: {folder or make_header(language, header)}")
