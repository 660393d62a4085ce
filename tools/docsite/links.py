"""Links of pages, rewritten from files of the repository to pages of the site."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

FENCE = re.compile(r"\s*(?:>\s*)*(```+|~~~+)")
LINK = re.compile(r"(`+[^`]*`+)|(\]\()([^)\s]+)(\))")
RENAMED = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages that are called something else on the site."""


class LinkError(ValueError):
    """A link that leads to no file of the repository."""


def list_prose(text: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it is prose (a line of a fenced block is not)."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        if fence:
            yield line, False
            if found and found[1].startswith(fence) and not line.strip().strip("`~> "):
                fence = ""
        else:
            fence = found[1] if found else ""
            yield line, not found


def rewrite_links(text: str, change: Callable[[str], str]) -> str:
    """The text with every link outside of code replaced by what ``change`` makes of it."""

    def replace(match: re.Match[str]) -> str:
        return match[0] if match[1] else f"{match[2]}{change(match[3])}{match[4]}"

    return "".join(LINK.sub(replace, line) if prose else line for line, prose in list_prose(text))


def is_external(target: str) -> bool:
    """Whether a link leads out of the repository, or stays on its page."""
    return target.startswith(("#", "mailto:")) or "://" in target


def locate_page(path: str) -> str | None:
    """Page of the site that is made of a file of the repository, if one is."""
    if path in RENAMED:
        return RENAMED[path]
    if not path.startswith("docs/"):
        return None
    folder, name = posixpath.split(path.removeprefix("docs/"))
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


class LinkMap:
    """Where links lead on the site; collects the files that need a page of their source."""

    def __init__(self, root: Path, generated: Iterable[str] = ()) -> None:
        self.root = root
        self.generated = set(generated)
        """Pages that exist on the site only, as paths of ``docs/``."""
        self.sources: set[str] = set()

    def rewrite(self, text: str, path: str) -> str:
        """The text of a file of the repository as it stands on the site.

        Raises:
            LinkError: a link leads to no file.
        """
        page = locate_page(path) or source_page(path)
        return rewrite_links(text, lambda target: self._change(target, path, page))

    def _change(self, target: str, path: str, page: str) -> str:
        if is_external(target):
            return target
        file, mark, anchor = target.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        leads = posixpath.relpath(self.place(wanted, path), posixpath.dirname(page) or ".")
        return leads + mark + anchor

    def place(self, wanted: str, path: str) -> str:
        """Where a file of the repository stands on the site."""
        if wanted in self.generated:
            return wanted.removeprefix("docs/")
        if not (self.root / wanted).exists() or wanted.startswith(".."):
            raise LinkError(f"{path} links to {wanted}, which is not there")
        if (self.root / wanted).is_file() and (found := locate_page(wanted)):
            return found
        if (self.root / wanted / "README.md").is_file() and wanted.startswith("docs/"):
            return f"{wanted.removeprefix('docs/')}/index.md"
        if wanted.startswith("docs/") or wanted == "docs":
            return "contents.md"
        self.sources.add(wanted)
        return source_page(wanted)


def source_page(path: str) -> str:
    """Page that shows a file or a folder of the repository."""
    return f"source/{path}.md"
