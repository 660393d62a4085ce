"""Recipes of public API descriptions: which package each of them comes in."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "openapi_specs"


@dataclass(frozen=True)
class Recipe:
    """A public document, and where it is found.

    Attributes:
        name: here.
        package: npm package and version.
        path: of the file in the package.
        licence: as the document states it.
        version: of OpenAPI.
        operations: how many it has.
        special: a reason why it is one of these.
    """

    name: str
    package: str
    path: str
    licence: str
    version: str
    operations: int
    special: str


def load_recipes() -> list[Recipe]:
    """All recipes, as the file has them."""
    data = tomllib.loads((FOLDER / "recipes.toml").read_text(encoding="utf-8"))
    return [Recipe(**{**one, "package": data["packages"][one["package"]]}) for one in data["spec"]]


def fetch_documents() -> dict[str, Path]:
    """The documents by name, fetched where they are not there yet.

    Raises:
        Unavailable: of tools/peers.py: a package is not to be had.
    """
    import peers  # tools/peers.py, which the caller puts on the path

    recipes = load_recipes()
    folders = {
        package: peers.archive(package, [one.path for one in recipes if one.package == package])
        for package in dict.fromkeys(one.package for one in recipes)
    }
    return {one.name: folders[one.package] / one.path for one in recipes}


def make_page() -> str:
    """The README of the recipes."""
    head = (FOLDER / "README.md").read_text(encoding="utf-8").partition("| document")[0]
    lines = ["| document | OpenAPI | operations | package | licence it states | what is special |"]
    lines.append("|---|---|---|---|---|---|")
    lines += (
        f"| {one.name} | {one.version} | {one.operations:,} | `{one.package.rpartition('@')[0]}` "
        f"| {one.licence} | {one.special} |"
        for one in load_recipes()
    )
    return head + "\n".join(lines) + "\n"
