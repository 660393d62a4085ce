"""The manifest of an MCPB bundle (0.4), its ``pyproject.toml``, and ``server.json`` of the registry.

The fields are those of the published schemas: MCPB's of 2 December 2025, the registry's of
11 December 2025.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

from msgspec import Struct

from isthmus.core.redaction.forms import may_name_secret
from isthmus.errors import UsageError

MANIFEST_VERSION = "0.4"
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
REGISTRY_NAME = re.compile(r"[A-Za-z0-9.-]+/[A-Za-z0-9._-]+", re.ASCII)
MAX_REGISTRY_NAME_CHARS = 200
MAX_REGISTRY_TEXT_CHARS = 100
RELEASE = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?", re.ASCII)
ENTRY_POINT = "isthmus_bundle.py"
PLATFORMS = ("darwin", "win32", "linux")

LAUNCHER = '''"""Serves {file} over stdio: the entry point of the bundle that isthmus bundle has made."""

from pathlib import Path

from isthmus.cli.main import main

if __name__ == "__main__":
    main(["run", str(Path(__file__).parent / {path!r}) + {made!r}])
'''


class BundleFacts(Struct, frozen=True, kw_only=True):
    """The manifest's words about a server.

    Attributes:
        name: of the bundle: letters, digits and dashes.
        title: as people call it.
        release: its version.
        description: a sentence.
        author: who made it: name, and email where it is known.
        env: variables that the user is asked for, with their defaults; None for none.
        tools: names and descriptions; None where the server was not started.
        has_prompts: whether it has prompts.
        icon: the icon's path in the bundle; empty for none.
        project: the table ``project`` of ``pyproject.toml``.
        requires_python: the versions of Python that it runs on.
    """

    name: str
    title: str
    release: str
    description: str
    author: Mapping[str, str]
    env: Mapping[str, str | None] = {}
    tools: list[dict[str, str]] | None = None
    has_prompts: bool = False
    icon: str = ""
    project: Mapping[str, Any] = {}
    requires_python: str = ">=3.11"


def make_launcher(file: str, made: str) -> str:
    """The text of a bundle's entry point."""
    return LAUNCHER.format(file=file, path=file, made=f":{made}" if made else "")


def make_manifest(facts: BundleFacts) -> dict[str, Any]:
    """Make the manifest of a bundle."""
    project = facts.project
    manifest: dict[str, Any] = {
        "manifest_version": MANIFEST_VERSION,
        "name": facts.name,
        "display_name": facts.title,
        "version": facts.release,
        "description": facts.description,
        "author": dict(facts.author),
        "server": {
            "type": "uv",
            "entry_point": ENTRY_POINT,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", ENTRY_POINT],
                "env": {name: f"${{user_config.{name.lower()}}}" for name in facts.env},
            },
        },
        "compatibility": {
            "platforms": list(PLATFORMS),
            "runtimes": {"python": facts.requires_python},
        },
    }
    if facts.icon:
        manifest["icon"] = facts.icon
    if facts.tools is None:
        manifest["tools_generated"] = True
    else:
        manifest["tools"] = facts.tools
    if facts.has_prompts:
        manifest["prompts_generated"] = True
    if facts.env:
        manifest["user_config"] = {name.lower(): _ask_for(*pair) for name, pair in _pairs(facts)}
    keywords = project.get("keywords")
    if isinstance(keywords, list) and keywords:
        manifest["keywords"] = [str(one) for one in keywords]
    if isinstance(project.get("license"), str):
        manifest["license"] = project["license"]
    return manifest | _list_links(project)


def _pairs(facts: BundleFacts) -> Iterable[tuple[str, tuple[str, str | None]]]:
    return ((name, (name, default)) for name, default in facts.env.items())


def _ask_for(name: str, default: str | None) -> dict[str, Any]:
    """A field of the form in which a client asks its user."""
    field: dict[str, Any] = {
        "type": "string",
        "title": name.replace("_", " ").capitalize(),
        "description": f"The variable {name} of the server",
        "required": default is None,
    }
    if default is not None:
        field["default"] = default
    if may_name_secret(name):
        field["sensitive"] = True
    return field


def _list_links(project: Mapping[str, Any]) -> dict[str, Any]:
    """The addresses that ``project.urls`` names, in the manifest's words."""
    said = project.get("urls")
    urls = {str(k).lower(): v for k, v in said.items()} if isinstance(said, Mapping) else {}
    links = {word: urls.get(word) for word in ("homepage", "documentation")}
    links["support"] = urls.get("issues") or urls.get("bug tracker")
    found: dict[str, Any] = {
        word: url for word, url in links.items() if str(url).startswith("https://")
    }
    repository = urls.get("repository") or urls.get("source")
    if str(repository).startswith("https://"):
        found["repository"] = {"type": "git", "url": repository}
    return found


def make_server_json(facts: BundleFacts, name: str, url: str, digest: str) -> dict[str, Any]:
    """Make the description of a server for the registry.

    Args:
        facts: of the bundle.
        name: in the registry, as in ``io.github.ada/shop``.
        url: where the bundle will be.
        digest: its SHA-256.

    Raises:
        UsageError: the name or the URL cannot stand there.
    """
    if REGISTRY_NAME.fullmatch(name) is None or len(name) > MAX_REGISTRY_NAME_CHARS:
        raise UsageError(f"--registry-name {name!r}: write DOMAIN/NAME, as in io.github.ada/shop")
    if not re.fullmatch(r"https://[^\s/]+/\S+", url):
        raise UsageError(
            "--at says where the bundle will be: an https URL of a file, of a release for example"
        )
    package = {
        "registryType": "mcpb",
        "identifier": url,
        "fileSha256": digest,
        "transport": {"type": "stdio"},
    }
    variables = [
        {
            "name": variable,
            "description": f"The variable {variable} of the server",
            "isRequired": default is None,
            "isSecret": may_name_secret(variable),
            **({"default": default} if default is not None else {}),
        }
        for variable, default in facts.env.items()
    ]
    links = _list_links(facts.project)
    found: dict[str, Any] = {
        "$schema": REGISTRY_SCHEMA,
        "name": name,
        "title": facts.title[:MAX_REGISTRY_TEXT_CHARS],
        "description": _shorten(facts.description),
        "version": facts.release,
    }
    if "homepage" in links:
        found["websiteUrl"] = links["homepage"]
    source = links.get("repository", {}).get("url", "")
    host = next((one for one in ("github", "gitlab") if f"{one}.com/" in source), "")
    if host:
        found["repository"] = {"url": source, "source": host}
    found["packages"] = [{**package, **({"environmentVariables": variables} if variables else {})}]
    return found


def _shorten(text: str) -> str:
    """A description as short as the registry wants it."""
    if len(text) <= MAX_REGISTRY_TEXT_CHARS:
        return text
    return f"{text[: MAX_REGISTRY_TEXT_CHARS - 1].rstrip()}…"


def make_project_file(facts: BundleFacts, packages: Iterable[str]) -> str:
    """The ``pyproject.toml`` of a bundle whose server has none."""
    wanted = ", ".join(json.dumps(one) for one in packages)
    return (
        f"[project]\nname = {json.dumps(facts.name)}\nversion = {json.dumps(facts.release)}\n"
        f"requires-python = {json.dumps(facts.requires_python)}\ndependencies = [{wanted}]\n"
    )


def list_packages(imports: Iterable[str], local: Iterable[str], named: Iterable[str]) -> list[str]:
    """The packages that a server needs: isthmus, those that are named, and those that it imports.

    Args:
        imports: modules that its files import.
        local: modules among its own files.
        named: packages that the command line names.

    Raises:
        UsageError: it imports what no package here has.
    """
    own = frozenset({*local, "isthmus"}) | sys.stdlib_module_names
    distributions = packages_distributions()
    found = {"isthmus": f"isthmus>={_find_version('isthmus')}"}
    found |= {re.split(r"[^\w.-]", one, maxsplit=1)[0].lower(): one for one in named}
    for module in sorted(set(imports) - own):
        packages = distributions.get(module, [])
        if not packages:
            raise UsageError(
                f"the server imports {module}, which is no package that is installed here: name it by "
                "--with PACKAGE, or put it beside the server"
            )
        if not any(one.lower() in found for one in packages):
            found[packages[0].lower()] = f"{packages[0]}>={_find_version(packages[0])}"
    return list(found.values())


def _find_version(package: str) -> str:
    """The version of an installed package, without what is local to this machine."""
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return "0"
