"""Writes down which tools real servers have: the facts that ``bench/hosts/search.py`` measures by.

Run it with the git directories of the projects, in any order: modelcontextprotocol/servers,
github/github-mcp-server, getsentry/sentry-mcp, microsoft/playwright-mcp, korotovsky/slack-mcp-server.

    python tools/tool_facts.py --texts texts.json GITDIR...

It writes names of tools and of their parameters into ``tests/host/catalog/shelf/real_tools.txt``; the
descriptions, which are the projects' own texts, go into the file that is named, and into no commit.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

FACTS = Path(__file__).parents[1] / "tests" / "host" / "catalog" / "shelf" / "real_tools.txt"

ARCHIVED = (
    *("slack", "gitlab", "google-maps", "brave-search", "puppeteer", "redis/src", "everart"),
    *("aws-kb-retrieval-server", "gdrive", "postgres"),
)
TEXT = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`)"""

Fact = tuple[str, str, list[str]]
"""A tool: its name, its description, and the names of its parameters."""


class Project:
    """A git directory, read without a working tree."""

    def __init__(self, path: str) -> None:
        self.path = path

    def git(self, *words: str) -> str:
        """What git says; empty where there is nothing of that name."""
        command = ["git", "-C", self.path, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603

    def show(self, name: str, revision: str = "HEAD") -> str:
        """A file."""
        return self.git("show", f"{revision}:{name}")

    def names(self) -> list[str]:
        """The files."""
        return self.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()


def read_github(project: Project) -> Iterator[Fact]:
    """One file of JSON for each tool."""
    for name in project.names():
        if "__toolsnaps__" in name and name.endswith(".snap"):
            tool = json.loads(project.show(name))
            if Path(name).stem == tool["name"]:
                properties = tool["inputSchema"].get("properties", {})
                yield tool["name"], tool.get("description", ""), list(properties)


def read_sentry(project: Project) -> Iterator[Fact]:
    """One file of JSON for all."""
    for tool in json.loads(project.show("packages/mcp-core/src/toolDefinitions.json")):
        schema = tool.get("inputSchema", {})
        yield tool["name"], tool["description"], list(schema.get("properties", schema))


def read_playwright(project: Project) -> Iterator[Fact]:
    """A list in the README."""
    each = r"- \*\*(browser_\w+)\*\*\n(.*?)(?=\n<!-- NOTE|\n- \*\*browser|\n</details>)"
    for found in re.finditer(each, project.show("README.md"), re.DOTALL):
        said = re.search(r"Description: (.*)", found[2])
        yield found[1], said[1] if said else "", re.findall(r"    - `(\w+)`", found[2])


def read_slack(project: Project) -> Iterator[Fact]:
    """Sections of the README."""
    each = r"### \d+\.\s+(\w+):?[ ]*\n(.*?)(?=\n### )"
    for found in re.finditer(each, project.show("README.md"), re.DOTALL):
        lines = [line for line in found[2].splitlines() if line.strip()]
        said = [line for line in lines if not line.lstrip().startswith(("-", ">"))]
        yield found[1], " ".join(said[:2]), re.findall(r"- `(\w+)`", found[2])


def read_archived(text: str) -> Iterator[Fact]:
    """Servers in TypeScript that list their tools as objects."""
    each = rf'name:\s*"([a-z][\w-]+)",\s*description:\s*({TEXT}(?:\s*\+\s*{TEXT})*)'
    for found in re.finditer(each, text):
        behind = text[found.end() : found.end() + 1500].split("required:", maxsplit=1)[0]
        members = re.findall(r"\n\s+(\w+): \{\s*\n?\s*type:", behind)
        said = " ".join(one[1:-1] for one in re.findall(TEXT, found[2]))
        not_names = {"properties", "inputSchema", "items"}
        yield found[1], said, [name for name in members if name not in not_names]


def read_registered(text: str) -> Iterator[Fact]:
    """Servers in TypeScript that register each tool."""
    each = r'registerTool\(\s*"(\w+)",\s*\{(.*?)\n  (?:async|\(|\w+Handler)'
    for found in re.finditer(each, text, re.DOTALL):
        body = found[2]
        said = re.search(rf"description:\s*({TEXT}(?:\s*\+\s*{TEXT})*)", body)
        schema = re.search(r"inputSchema:(.*?)(?:outputSchema|annotations)", body, re.DOTALL)
        members = re.findall(r"^\s+(\w+): z\.", schema[1], re.MULTILINE) if schema else []
        for name in re.findall(r"\w+ArgsSchema", schema[1]) if schema and not members else ():
            shape = re.search(rf"const {name} = z\.object\(\{{(.*?)\n\}}\)", text, re.DOTALL)
            members += re.findall(r"^\s+(\w+): z", shape[1], re.MULTILINE) if shape else []
        texts = re.findall(TEXT, said[1]) if said else []
        yield found[1], " ".join(one[1:-1] for one in texts), members


def read_git(text: str) -> Iterator[Fact]:
    """The server for git, in Python."""
    named = dict(re.findall(r'(\w+) = "(git_\w+)"', text))
    models = {
        found[1]: re.findall(r"^    (\w+):", found[2], re.MULTILINE)
        for found in re.finditer(
            r"class (\w+)\(BaseModel\):\n(.*?)(?=\nclass |\n\n\w)", text, re.DOTALL
        )
    }
    each = r'name=GitTools\.(\w+),\s*description="([^"]*)",\s*inputSchema=(\w+)\.'
    for found in re.finditer(each, text):
        yield named[found[1]], found[2], models.get(found[3], [])


def read_plain(text: str) -> Iterator[Fact]:
    """The server for SQLite, in Python."""
    each = r'Tool\(\s*name="(\w+)",\s*description="([^"]*)",\s*inputSchema=(\{.*?\}),\s*\)'
    for found in re.finditer(each, text, re.DOTALL):
        yield found[1], found[2], re.findall(r'"(\w+)": \{"type"', found[3])


def read_everything(project: Project) -> Iterator[Fact]:
    """The server that has one of each, a file for each tool."""
    for name in project.names():
        if re.fullmatch(r"src/everything/tools/(?!index)[\w-]+\.ts", name):
            text = project.show(name)
            own = re.search(r'const name = "([^"]+)"', text)
            said = re.search(r'description:\s*["`]([^"`]*)', text)
            if own:
                members = re.findall(r"^\s+(\w+): z", text, re.MULTILINE)
                yield own[1], said[1] if said else "", members


def read_reference(project: Project) -> Iterator[tuple[str, list[Fact]]]:
    """The servers of modelcontextprotocol/servers, and those that were archived."""
    gone = project.git("log", "--format=%H", "--diff-filter=D", "--", "src/slack/index.ts")
    before = f"{gone.split()[0]}~1"
    for name in ARCHIVED:
        server = "slack-old" if name == "slack" else name.partition("/")[0]
        yield server, list(read_archived(project.show(f"src/{name}/index.ts", before)))
    sqlite = project.show("src/sqlite/src/mcp_server_sqlite/server.py", before)
    yield "sqlite", list(read_plain(sqlite))
    yield "git", list(read_git(project.show("src/git/src/mcp_server_git/server.py")))
    times = ["source_timezone", "time", "target_timezone"]
    yield (
        "time",
        [
            ("get_current_time", "Get current time in a specific timezone", ["timezone"]),
            ("convert_time", "Convert time between timezones", times),
        ],
    )
    said = re.search(
        r'name="fetch",\s*description="""(.*?)"""',
        project.show("src/fetch/src/mcp_server_fetch/server.py"),
        re.DOTALL,
    )
    members = ["url", "max_length", "start_index", "raw"]
    yield "fetch", [("fetch", said[1] if said else "", members)]
    for name in ("filesystem", "memory", "sequentialthinking"):
        yield name, list(read_registered(project.show(f"src/{name}/index.ts")))
    yield "everything", list(read_everything(project))


READERS = {
    "github": ("github-mcp-server", "github/github-mcp-server, MIT", read_github),
    "sentry": ("sentry-mcp", "getsentry/sentry-mcp, FSL-1.1-ALv2", read_sentry),
    "playwright": ("playwright-mcp", "microsoft/playwright-mcp, Apache-2.0", read_playwright),
    "slack": ("slack-mcp-server", "korotovsky/slack-mcp-server, MIT", read_slack),
}
HEAD = """\
# The tools of real servers: their names and the names of their parameters, as facts; no descriptions.
# Written by tools/tool_facts.py from the projects' repositories, July 2026; those that were archived as
# they were in modelcontextprotocol/servers before. A line is: name | parameters.
"""


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", help="a file for the descriptions")
    parser.add_argument("projects", nargs="+", metavar="GITDIR")
    given = parser.parse_args()
    lines, texts = [HEAD], {}
    found: list[tuple[str, str, list[Fact]]] = []
    for path in given.projects:
        own = [one for one in READERS.items() if one[1][0] in path]
        for server, (_, source, read) in own:
            found.append((server, source, list(read(Project(path)))))
        if not own:
            source = "modelcontextprotocol/servers, MIT and Apache-2.0"
            found += [(name, source, facts) for name, facts in read_reference(Project(path))]
    for server, source, facts in found:
        lines.append(f"## {server} | {source}")
        for name, said, members in facts:
            lines.append(f"{name} | {', '.join(dict.fromkeys(members))}".rstrip())
            texts[f"{server}__{name}"] = " ".join(said.split())
        lines.append("")
    FACTS.write_text("\n".join(lines), encoding="utf-8")
    if given.texts:
        Path(given.texts).write_text(json.dumps(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
