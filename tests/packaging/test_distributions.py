"""The sdist and the wheel: what is in them, twice the same, and what PyPI shows."""

import shutil
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import distributions  # noqa: E402 - tools/distributions.py: found through the line above
import release  # noqa: E402 - tools/release.py

SOURCES = (
    "src",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "SECURITY.md",
    ".gitignore",
)
STRAYS = ("__pycache__", "*.pyc", ".mypy_cache")
EPOCH = "1795000000"


def copy_sources(target):
    """The files of the work tree that a build reads, and some that it must not."""
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns(*STRAYS))
        else:
            shutil.copy(source, target / name)
    for stray in ("bench/README.md", "docs/README.md", "tests/README.md", "notes.txt"):
        path = target / stray
        path.parent.mkdir(exist_ok=True)
        path.write_text("no part of a release")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Both, built twice in two folders."""
    both = []
    for name in ("one", "other"):
        source, target = tmp_path_factory.mktemp(name), tmp_path_factory.mktemp(f"{name}-built")
        copy_sources(source)
        both.append(distributions.build_distributions(source, target, EPOCH, isolated=False))
    return both


def find(built, suffix):
    """One of both."""
    return next(path for path in built[0] if path.suffix == suffix)


def test_a_second_build_gives_the_same_bytes(built):
    """Ours: so that anybody can check what was uploaded."""
    one, other = built
    assert [path.name for path in one] == [path.name for path in other]
    assert [distributions.digest_file(p) for p in one] == [
        distributions.digest_file(p) for p in other
    ]


def test_nothing_is_in_them_that_has_no_business_there(built):
    """Ours: and nothing lacks that does."""
    assert [] == distributions.find_faults(built[0])


def test_a_stray_file_and_a_relative_link_are_found(built, tmp_path):
    """Ours: the check can fail."""
    wheel = shutil.copy(find(built, ".whl"), tmp_path)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tests/conftest.py", "")
    sdist = tmp_path / "isthmus-0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        archive.add(ROOT / "LICENSE", "isthmus-0/bench/README.md")

    faults = distributions.find_faults([Path(wheel), sdist])

    assert any("tests/conftest.py" in fault for fault in faults)
    assert any("has bench/README.md" in fault for fault in faults)
    assert any("lacks src/isthmus/" in fault for fault in faults)


def test_the_page_at_pypi_has_the_links_of_the_project(built):
    """Ours: README's links are relative in the repository and absolute there."""
    with zipfile.ZipFile(find(built, ".whl")) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
        metadata = message_from_bytes(wheel.read(name))

    repository = "https://github.com/isthmus-mcp/isthmus"
    assert f"Repository, {repository}" in metadata.get_all("Project-URL")
    assert f"]({repository}/blob/main/CONTRIBUTING.md)" in metadata.get_payload()
    assert (
        "https://raw.githubusercontent.com/isthmus-mcp/isthmus/main/docs/images/"
        in metadata.get_payload()
    )
    assert "text/markdown" == metadata["Description-Content-Type"]


def test_all_is_every_extra(built):
    """Ours: an extra that is added is added there, too."""
    extras = release.read_project()["optional-dependencies"]
    [everything] = extras.pop("all")
    ours = set(everything.removeprefix("isthmus[").removesuffix("]").split(","))
    assert set(extras) == ours


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/isthmus-mcp/isthmus.git",
        "git@github.com:isthmus-mcp/isthmus.git",
        "ssh://git@github.com/isthmus-mcp/isthmus",
        "https://github.com/isthmus-mcp/isthmus/",
    ],
)
def test_a_repository_is_known_by_any_of_its_addresses(url):
    """Ours: a release is tagged in a clone of the repository that its links lead to."""
    assert "github.com/isthmus-mcp/isthmus" == release.normalize_url(url)


def test_a_version_without_a_changelog_is_no_release():
    """Ours: each obstacle is named with its cure, all at once."""
    obstacles = release.find_obstacles("99.0.0", "https://example.com/other")
    assert any("__version__" in one for one in obstacles)
    assert any("CHANGELOG.md lacks" in one for one in obstacles)
    assert any("origin is not https://example.com/other" in one for one in obstacles)
