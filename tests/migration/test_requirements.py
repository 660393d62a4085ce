"""Requirements of a project, changed from ``mcp`` and ``fastmcp`` to isthmus."""

import pytest

from isthmus.migration.requirements import get_requirement_name, migrate_requirements

PYPROJECT = """\
[project]
name = "a"
dependencies = [
    "httpx>=0.28", # for the API
    "mcp[cli]>=2,<3", # the protocol
    'fastmcp',
]

[project.optional-dependencies]
dev = ["pytest", "mcp_types"]
"""


def migrate(folder, imported=(), *, keep=False):
    return migrate_requirements(folder, set(imported), keep=keep)


def test_pyproject_requires_isthmus_in_the_place_of_both(tmp_path):
    """Comments, quotes and order stay."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (change,) = migrate(tmp_path).changes
    assert '    "isthmus[compat]", # the protocol\n' in change.text
    assert '    "httpx>=0.28", # for the API\n' in change.text
    assert 'dev = ["pytest", "isthmus[compat]"]\n' in change.text
    assert "fastmcp" not in change.text


def test_a_library_that_is_still_imported_stays_beside_isthmus(tmp_path):
    """A file that was left alone goes on working."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (change,) = migrate(tmp_path, keep=True).changes
    assert '"mcp[cli]>=2,<3"' in change.text
    assert '"isthmus[compat]"' in change.text


@pytest.mark.parametrize("keep", [True, False])
def test_a_second_run_changes_no_requirement(tmp_path, keep):
    """What requires isthmus stays as it is."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "requirements-dev.txt").write_text("mcp==1.30.0\npytest\n")
    for change in migrate(tmp_path, keep=keep).changes:
        change.file.path.write_text(change.text)
    assert migrate(tmp_path, keep=keep).changes == []


def test_requirement_files_are_changed_by_line(tmp_path):
    """Pins, comments and options of other requirements stay."""
    (tmp_path / "requirements.txt").write_text(
        "-r base.txt\nmcp-server-git\nmcp==1.30.0  # pinned\nfastmcp\npytest\n"
    )
    (change,) = migrate(tmp_path).changes
    assert change.text == "-r base.txt\nmcp-server-git\nisthmus[compat]\npytest\n"


def test_lock_files_and_libraries_that_came_along_are_listed(tmp_path):
    """Nothing else brings httpx when mcp is gone."""
    (tmp_path / "requirements.txt").write_text("mcp\n")
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "mcp"\n')
    by_hand = "\n".join(migrate(tmp_path, ["httpx", "os"]).by_hand)
    assert "uv.lock" in by_hand
    assert "require httpx" in by_hand


def test_a_broken_pyproject_is_listed(tmp_path):
    """It is not written, and the error is told."""
    (tmp_path / "pyproject.toml").write_text("[project\n")
    found = migrate(tmp_path)
    assert not found.changes
    assert "pyproject.toml is not read" in found.by_hand[0]


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("mcp[cli]>=1", "mcp"), ("mcp-server-git", "mcp-server-git"), ("-e .", ""), ("# mcp", "")],
)
def test_names_of_requirements(requirement, name):
    """A look-alike has a name of its own."""
    assert get_requirement_name(requirement) == name
