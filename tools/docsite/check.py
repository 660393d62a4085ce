"""Checks of the built site: links and anchors, addresses from elsewhere, navigation, llms files."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docsite.nav import Nav, list_entries

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "audio": "src",
    "video": "src",
    "embed": "src",
    "object": "data",
    "image": "href",
    "use": "href",
}
"""Elements whose address the browser fetches by itself."""
NAMED_LINKS = {"canonical", "next", "prev", "alternate"}
CSS_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


@dataclass
class Page:
    """What a page points to, and what may be pointed to in it."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)


class PageParser(HTMLParser):
    """Reads the links, the loaded addresses and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.page.ids.add(given["id"])
        if tag == "a" and "name" in given:
            self.page.ids.add(given["name"])
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        elif tag == "link" and not NAMED_LINKS & set(given.get("rel", "").split()):
            self.page.loads.append(given.get("href", ""))
        elif tag in LOADED and LOADED[tag] in given:
            self.page.loads.append(given[LOADED[tag]])


def read_page(path: Path) -> Page:
    """The links and anchors of one page."""
    parser = PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser.page


def check_site(site: Path, nav: Nav, pages: set[str]) -> list[str]:
    """Every fault of the site, one line each.

    Args:
        site: the folder of one version.
        nav: the whole navigation.
        pages: paths of all pages that must be in it.
    """
    read = {path: read_page(path) for path in sorted(site.rglob("*.html"))}
    faults = [fault for path in read for fault in check_page(site, path, read)]
    faults += check_styles(site)
    faults += check_nav(site, nav, pages)
    return faults + check_llms(site, nav)


def check_page(site: Path, path: Path, read: dict[Path, Page]) -> list[str]:
    """Faults of one page: links that lead nowhere, and what it loads from elsewhere."""
    name = path.relative_to(site).as_posix()
    faults = [
        f"{name}: loads {address} from elsewhere"
        for address in read[path].loads
        if is_elsewhere(address)
    ]
    inside = [link for link in [*read[path].links, *read[path].loads] if not is_elsewhere(link)]
    return faults + [
        f"{name}: {link}: {why}" for link in inside if (why := check_link(site, path, link, read))
    ]


def is_elsewhere(address: str) -> bool:
    """Whether an address leads out of the site."""
    parts = urlsplit(address)
    return bool(parts.netloc or parts.scheme not in ("", "data"))


def check_link(site: Path, path: Path, link: str, read: dict[Path, Page]) -> str | None:
    """What is wrong with an internal link, if anything is."""
    parts = urlsplit(link)
    if not link or parts.scheme == "data":
        return None
    leads = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if leads.is_dir():
        leads /= "index.html"
    if not leads.exists():
        return "there is no such page"
    if not leads.is_relative_to(site.parent.resolve()):
        return "it leads out of the site"
    anchor = unquote(parts.fragment)
    if anchor and leads in read and anchor not in read[leads].ids:
        return "the page has no such anchor"
    return None


def check_styles(site: Path) -> list[str]:
    """Style sheets that load something from elsewhere."""
    return [
        f"{path.relative_to(site)}: loads {address} from elsewhere"
        for path in sorted(site.rglob("*.css"))
        for address in CSS_URL.findall(path.read_text(encoding="utf-8"))
    ]


def check_nav(site: Path, nav: Nav, pages: set[str]) -> list[str]:
    """Pages that the navigation lacks or that were not built."""
    listed = {page for _, page in list_entries(nav)}
    faults = [f"{page}: not in the navigation" for page in sorted(pages - listed)]
    return faults + [
        f"{page}: not built" for page in sorted(listed) if not (site / html_name(page)).is_file()
    ]


def check_llms(site: Path, nav: Nav) -> list[str]:
    """Pages that the files for models lack, and the Markdown pages that are not there."""
    short = (site / "llms.txt").read_text(encoding="utf-8")
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    faults = []
    for _, page in list_entries(nav):
        if f"]({page})" not in short:
            faults.append(f"llms.txt: {page} is missing")
        if f"<!-- {page} -->" not in whole:
            faults.append(f"llms-full.txt: {page} is missing")
        if not (site / page).is_file():
            faults.append(f"{page}: not there as Markdown")
    return faults


def html_name(page: str) -> str:
    """The built file of a page."""
    return f"{page.removesuffix('.md')}.html"
