"""``isthmus version``: versions of isthmus, Python and its libraries, revisions and extras."""

import platform
import re
import sys
from importlib import metadata

import msgspec

import isthmus
from isthmus.cli.declarations import CommandSet
from isthmus.cli.exits import finish
from isthmus.cli.options import AsJson
from isthmus.cli.output import print_json
from isthmus.revisions import REVISIONS

app = CommandSet()

REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(.*)", re.DOTALL)
EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")


class InstalledVersions(msgspec.Struct, frozen=True):
    """The versions of what runs here.

    Attributes:
        isthmus: its version.
        python: the version of Python, and which it is.
        platform: the system and the machine.
        revisions: that are spoken, newest first.
        libraries: the versions of the libraries that every installation has.
        extras: the versions of the libraries of each extra whose libraries are all installed.
        missing: the libraries that the other extras lack.
    """

    isthmus: str
    python: str
    platform: str
    revisions: list[str]
    libraries: dict[str, str] = {}
    extras: dict[str, dict[str, str]] = {}
    missing: dict[str, list[str]] = {}


@app.command("version")
def version(*, as_json: AsJson = False) -> None:
    """Show versions, supported revisions and installed extras."""

    def work() -> None:
        found = read_versions()
        if as_json:
            print_json(found)
        else:
            print("\n".join(describe_versions(found)))

    finish(work)


def read_versions() -> InstalledVersions:
    """The versions of what is installed here."""
    extras: dict[str, dict[str, str]] = {}
    missing: dict[str, list[str]] = {}
    wanted = group_requirements(_list_requirements())
    libraries = {name: found for name in wanted.pop("", []) if (found := find_version(name))}
    for extra, names in sorted(wanted.items()):
        lacking = [name for name in names if find_version(name) is None]
        if lacking:
            missing[extra] = lacking
        else:
            extras[extra] = {name: find_version(name) or "" for name in names}
    return InstalledVersions(
        isthmus=isthmus.__version__,
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        platform=f"{sys.platform} {platform.machine()}".strip(),
        revisions=[revision.name for revision in reversed(REVISIONS)],
        libraries=libraries,
        extras=extras,
        missing=missing,
    )


def _list_requirements() -> list[str]:
    try:
        return metadata.requires("isthmus") or []
    except metadata.PackageNotFoundError:  # run from a checkout
        return []


def group_requirements(requirements: list[str]) -> dict[str, list[str]]:
    """The names of libraries by the extra that needs them; "" for those that everybody needs.

    Args:
        requirements: as a distribution states them (PEP 508).
    """
    grouped: dict[str, list[str]] = {}
    for requirement in requirements:
        read = REQUIREMENT.match(requirement)
        if read is not None:
            extra = EXTRA.search(read[2])
            grouped.setdefault("" if extra is None else extra[1], []).append(read[1])
    return grouped


def find_version(library: str) -> str | None:
    """The version of an installed library; None where it is not there."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def describe_versions(found: InstalledVersions) -> list[str]:
    """Lines for people."""
    lines = [
        f"isthmus    {found.isthmus}",
        f"Python     {found.python} on {found.platform}",
        f"revisions  {', '.join(found.revisions)}",
        f"libraries  {_join_versions(found.libraries)}",
    ]
    for extra, libraries in found.extras.items():
        lines.append(f"extra      {extra}: {_join_versions(libraries)}")
    for extra, lacking in found.missing.items():
        lines.append(f"no extra   {extra}: pip install 'isthmus[{extra}]' ({', '.join(lacking)})")
    return lines


def _join_versions(libraries: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in libraries.items())
