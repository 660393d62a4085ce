"""The index of versions: ``versions.json``, which the pages read, and a way to the newest one."""

import json
from pathlib import Path

INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>isthmus</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<p><a href="{version}/index.html">isthmus {version}</a></p>
</html>
"""


def write_version_index(site: Path, newest: str) -> None:
    """Writes the index over all versions that were built into a folder.

    Args:
        site: the folder with one folder for each version.
        newest: the version that the first page leads to.
    """
    built = {path.name for path in site.iterdir() if (path / "index.html").is_file()}
    ordered = sorted(built, key=read_numbers, reverse=True)
    rows = [
        {"version": name, "title": name, "aliases": ["latest"] if name == newest else []}
        for name in ordered
    ]
    (site / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(INDEX.format(version=newest), encoding="utf-8")
    place_not_found(site, newest)


def place_not_found(site: Path, version: str) -> None:
    """Writes the page for addresses that are not there, for the whole site.

    It is served at any depth, so that its links begin at the root: the site is taken to be served
    from the root of its origin.
    """
    page = site / version / "404.html"
    if not page.is_file():
        return
    text = page.read_text(encoding="utf-8")
    text = text.replace('="/', f'="/{version}/').replace('"base":"/"', f'"base":"/{version}"')
    for path in (page, site / "404.html"):
        path.write_text(text, encoding="utf-8")


def read_numbers(version: str) -> tuple[int, ...]:
    """What versions are ordered by."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
