"""What the table of partners proves, in Markdown: the two generated parts of the page on compatibility.

``python tests/interop/page.py`` writes them into ``docs/concepts/compatibility.md``.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from interop.behaviours import BEHAVIOURS  # noqa: E402 - found through the line above
from interop.known import KNOWN, Known  # noqa: E402 - found through the line above
from interop.partners import ALL, OURS, PARTNERS  # noqa: E402 - found through the line above

PAGE = ROOT / "docs" / "concepts" / "compatibility.md"
TRANSPORTS = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}


def span(revisions: tuple[str, ...]) -> str:
    """Revisions in words."""
    if revisions == ALL:
        return "all five"
    if len(revisions) == 1:
        return revisions[0]
    return f"{revisions[0]} to {revisions[-1]}"


def ways(revisions: dict[str, tuple[str, ...]]) -> str:
    """Transports and revisions in words."""
    return "; ".join(f"{TRANSPORTS[name]}: {span(these)}" for name, these in revisions.items())


def table() -> str:
    """Who was proven against whom."""
    rows = [
        "| implementation | its client on our server | our client on its server |",
        "|---|---|---|",
    ]
    rows += [
        f"| {partner.title} | {ways(partner.visits)} | {ways(partner.served)} |"
        for name, partner in PARTNERS.items()
        if name != OURS
    ]
    return "\n".join([*rows, ""])


def where(known: Known) -> str:
    """The transports and revisions of a fact, where it does not hold in all of them."""
    eras = {"*": "", "202[45]-*": "up to 2025-11-25"}
    revision = eras.get(known.revision, known.revision)
    transport = "" if known.transport == "*" else TRANSPORTS[known.transport]
    return ", ".join(part for part in (transport, revision) if part)


def differences() -> str:
    """What was seen to differ, once for all of whom it is true."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for known in KNOWN:
        side = "server" if known.client == OURS else "client"
        name = known.server if side == "server" else known.client
        key = (known.behaviour, side, where(known), known.why)
        found.setdefault(key, []).append(PARTNERS[name].title)
    lines = [
        f"- {behaviour}: {', '.join(names)}, {side}{', ' if place else ''}{place}: {why}."
        for (behaviour, side, place, why), names in found.items()
    ]
    return "\n".join([*sorted(lines), ""])


def parts() -> dict[str, str]:
    """The generated parts of the page, by the heading that they stand under."""
    return {
        "## Tested connections": table(),
        "## Tested features": ", ".join(BEHAVIOURS) + ".\n",
        "## Known differences": differences(),
    }


def written(page: str) -> str:
    """The page with its generated parts as they must be."""
    sections = page.split("\n## ")
    for heading, text in parts().items():
        for number, section in enumerate(sections):
            if section.startswith(heading.removeprefix("## ") + "\n"):
                head, *rest = section.split("\n\n")
                sections[number] = "\n\n".join([head, rest[0], text])
    return "\n## ".join(sections)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
