"""The index of versions: ``versions.json``, which the pages read, and a way to the newest one."""

import json
import re
from pathlib import Path

INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>isthmus</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<p><a href="{version}/index.html">isthmus {version}</a></p>
</html>
"""


FIND_BASE = """
<base href="{root}{version}/">
<script>{{
  const place = location.pathname.indexOf("/{version}/"), base = document.querySelector("base");
  if (place >= 0) base.href = location.pathname.slice(0, place) + "/{version}/";
  else if (location.protocol === "file:") base.setAttribute("href", "{version}/");
}}</script>
"""

USE_BASE = """
<script>{
  const config = document.getElementById("__config"), read = JSON.parse(config.textContent);
  read.base = document.baseURI;
  read.search = new URL(read.search.replace(/^\\//, ""), document.baseURI).href;
  config.textContent = JSON.stringify(read);
  const here = location.href.split("#")[0];
  for (const link of document.querySelectorAll("a[href^='#']")) link.href = here + link.getAttribute("href");
}</script>
"""

FOLDER_LINK = re.compile(r'href="(\.(?:/\.\.)*|\.\.(?:/\.\.)*)/?"')
CONFIG = re.compile(r'<script id="__config".*?</script>', re.DOTALL)


def write_version_index(site: Path, newest: str, root: str = "/") -> None:
    """Writes the index over all versions that were built into a folder.

    Args:
        site: the folder with one folder for each version.
        newest: the version that the first page leads to.
        root: the path at which the folder is served, for addresses that are not there; the root by default.
    """
    built = {path.name for path in site.iterdir() if (path / "index.html").is_file()}
    ordered = sorted(built, key=read_numbers, reverse=True)
    rows = [
        {"version": name, "title": name, "aliases": ["latest"] if name == newest else []}
        for name in ordered
    ]
    (site / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(INDEX.format(version=newest), encoding="utf-8")
    place_not_found(site, newest, root)


def place_not_found(site: Path, version: str, root: str) -> None:
    """Writes the page for addresses that are not there, for the whole site.

    It is served at any depth. So its links are relative to the version's folder, which stands in ``<base>``,
    and which a script finds again in the page's own address below any path, and on the disk.
    """
    page = site / version / "404.html"
    if not page.is_file():
        return
    text = page.read_text(encoding="utf-8").replace('="/"', '="index.html"').replace('="/', '="')
    head = FIND_BASE.format(root=root, version=version)
    text = text.replace("<head>", f"<head>{head}", 1)
    text = CONFIG.sub(lambda found: found[0] + USE_BASE, text, count=1)
    for path in (page, site / "404.html"):
        path.write_text(text, encoding="utf-8")


def prepare_for_disk(folder: Path) -> None:
    """Makes a version readable from the disk (``file:``), where no server helps.

    Links to a folder get the name of its page, and the search's index is there as a script, too: a page on the
    disk may load that, and no JSON.
    """
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        named = FOLDER_LINK.sub(r'href="\1/index.html"', text)
        if named != text:
            page.write_text(named, encoding="utf-8")
    index = (folder / "search.json").read_text(encoding="utf-8")
    (folder / "search.js").write_text(f"var __index = {index};\n", encoding="utf-8")


def read_numbers(version: str) -> tuple[int, ...]:
    """What versions are ordered by."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
