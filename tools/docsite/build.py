"""Stages, renders and checks the documentation site.

Pages are staged in ``.docs/``: those of ``docs/``, README and CHANGELOG, the API reference, and the
files of the repository that pages link to. Zensical renders them.
"""

import json
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import yaml

from docsite.api import make_api_pages
from docsite.check import check_site
from docsite.links import RENAMED, LinkMap, locate_page
from docsite.llms import write_llms
from docsite.nav import expand_nav
from docsite.sources import write_source_pages
from docsite.versions import prepare_for_disk, write_version_index

ROOT = Path(__file__).resolve().parents[2]
STAGE = ROOT / ".docs"
RENDERED = STAGE / "rendered"
SITE = ROOT / "site"
ASSETS = Path(__file__).parent / "assets"


class ConfigLoader(yaml.SafeLoader):
    """Reads ``mkdocs.yml`` and keeps its Python tags as they are written."""


class PythonTag(dict[str, Any]):
    """A value with a tag ``!!python/…``: the tag stands in ``name``."""

    name = ""


def construct_tag(loader: ConfigLoader, suffix: str, node: yaml.MappingNode) -> PythonTag:
    """The tagged mapping."""
    found = PythonTag(loader.construct_mapping(node, deep=True))
    found.name = f"tag:yaml.org,2002:python/{suffix}"
    return found


ConfigLoader.add_multi_constructor("tag:yaml.org,2002:python/", construct_tag)
yaml.SafeDumper.add_multi_representer(
    PythonTag, lambda dumper, value: dumper.represent_mapping(value.name, dict(value))
)


def read_version() -> str:
    """The version that ``pyproject.toml`` says."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def read_root() -> str:
    """The path at which the site is served: the argument, or the root."""
    given = "/".join(sys.argv[1:]).strip("/")
    return f"/{given}/" if given else "/"


def stage_pages(to: Path) -> set[str]:
    """Writes every page of the site, and returns the paths of those that belong into the nav."""
    docs = ROOT / "docs"
    shutil.rmtree(to, ignore_errors=True)
    pages: set[str] = set()
    generated = {f"docs/{page}": text for page, text in make_api_pages(ROOT).items()}
    links = LinkMap(ROOT, generated)
    written = [path.relative_to(ROOT).as_posix() for path in sorted(docs.rglob("*.md"))]
    for path in dict.fromkeys([*RENAMED, *written]):
        page = locate_page(path) or path
        text = links.rewrite((ROOT / path).read_text(encoding="utf-8"), path)
        write_page(to / page, text)
        pages.add(page)
    for path, text in generated.items():
        write_page(to / path.removeprefix("docs/"), text)
        pages.add(path.removeprefix("docs/"))
    for path in docs.rglob("*"):
        if path.is_file() and path.suffix != ".md":
            copy_file(path, to / path.relative_to(docs))
    for path in ASSETS.iterdir():
        copy_file(path, to / "assets" / path.name)
    write_source_pages(links, to)
    return pages


def write_page(path: Path, text: str) -> None:
    """Writes one page, in a folder that may be new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def copy_file(path: Path, to: Path) -> None:
    """Copies one file, into a folder that may be new."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


def write_config(pages: set[str]) -> dict[str, Any]:
    """Writes the configuration with the whole navigation, and returns it."""
    config: dict[str, Any] = yaml.load(  # a SafeLoader that knows one more tag
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8"),
        Loader=ConfigLoader,  # noqa: S506 - it constructs no Python objects
    )
    config["nav"] = expand_nav(config["nav"], pages)
    config["docs_dir"] = "pages"
    config["site_dir"] = RENDERED.name
    (STAGE / "mkdocs.yml").write_text(
        yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8"
    )
    return config


def render_site(output: Path) -> None:
    """Runs Zensical on what is staged, and moves what it wrote."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "-f", "mkdocs.yml"]
    done = subprocess.run(command, cwd=STAGE, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        sys.exit(f"Zensical failed:\n{done.stdout}{done.stderr}")
    shutil.rmtree(output, ignore_errors=True)
    output.parent.mkdir(exist_ok=True)
    shutil.move(RENDERED, output)


def main() -> int:
    """Build and check; 1 when a check fails."""
    began = time.monotonic()
    output = SITE / read_version()
    pages = stage_pages(STAGE / "pages")
    config = write_config(pages)
    render_site(output)
    write_llms(config, STAGE / "pages", output)
    prepare_for_disk(output)
    write_version_index(SITE, read_version(), read_root())
    faults = check_site(output, config["nav"], pages)
    print(*faults, sep="\n")
    took = time.monotonic() - began
    print(
        json.dumps(
            {
                "pages": len(pages),
                "faults": len(faults),
                "seconds": round(took, 1),
                "in": output.name,
            }
        )
    )
    return 1 if faults else 0
