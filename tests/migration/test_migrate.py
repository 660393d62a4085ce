"""Code of ``mcp`` and ``fastmcp``, rewritten to isthmus; and all that looks like it and is not."""

import textwrap

import pytest

from isthmus.migration.project import migrate_project


@pytest.fixture
def migrate(tmp_path):
    """Write a module, migrate its folder, and give the new text."""

    def run(text, name="server.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        migration = migrate_project(tmp_path)
        for change in migration.changes:
            if change.path == path:
                return change.text
        return path.read_text()

    return run


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from mcp.types import Tool as B", "from isthmus.compat.types import Tool as B"),
        ("from mcp_types import Tool", "from isthmus.compat.types import Tool"),
        ("from mcp import types", "from isthmus.compat import types"),
        ("import mcp.types as types", "import isthmus.compat.types as types"),
        ("import mcp", "import isthmus.compat.mcp"),
        ("from fastmcp import FastMCP as F", "from isthmus.compat.fastmcp import FastMCP as F"),
        (
            "from mcp.server.fastmcp import Context, FastMCP",
            "from isthmus.compat.mcp import Context, FastMCP",
        ),
        ("from mcp.server import stdio", "from isthmus.compat.mcp import stdio"),
        (
            "import mcp.server.stdio\nx = mcp.server.stdio.stdio_server",
            "import isthmus.compat.mcp.stdio\nx = isthmus.compat.mcp.stdio.stdio_server",
        ),
        (
            "from fastmcp.tools import tool, Tool",
            "from isthmus.compat.fastmcp.tools import tool, Tool",
        ),
        (
            "from fastmcp.prompts import prompt",
            "from isthmus.compat.fastmcp.prompts import prompt",
        ),
        ("import mcp_types as t", "import isthmus.compat.types as t"),
        ("import os, mcp as m", "import os\nimport isthmus.compat.mcp as m"),
        ("import os; import mcp", "import os; import isthmus.compat.mcp"),
        (
            "import mcp.types, mcp\nx = mcp.types.Tool.name",
            "import isthmus.compat.types\nimport isthmus.compat.mcp\nx = isthmus.compat.types.Tool.name",
        ),
    ],
)
def test_an_import_comes_from_the_facade_and_binds_the_same_name(migrate, old, new):
    """Each form of an import statement is rewritten so that the rest of the module stays."""
    made = "\n".join(line.partition("  # isthmus:")[0] for line in migrate(old).splitlines())
    assert new == made


def test_comments_in_a_list_of_names_stay(migrate):
    """Only the module of an import in brackets changes."""
    made = migrate(
        """
        from mcp.types import (  # noqa: F401
            Tool,  # the model's
            TextContent,
        )
        """
    )
    assert "from isthmus.compat.types import (  # noqa: F401" in made
    assert "    Tool,  # the model's\n" in made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            'def f(x: "mcp.types.Tool | None"): ...',
            'def f(x: "isthmus.compat.types.Tool | None"): ...',
        ),
        ("x: 'list[mcp.types.Tool]'", "x: 'list[isthmus.compat.types.Tool]'"),
        (
            'def f(x: list["mcp.types.Tool"]) -> "mcp.types.Tool": ...',
            'def f(x: list["isthmus.compat.types.Tool"]) -> "isthmus.compat.types.Tool": ...',
        ),
        ('x: Literal["mcp.sums"]', 'x: Literal["mcp.sums"]'),
        ('x: "other.mcp.types"', 'x: "other.mcp.types"'),
    ],
)
def test_a_type_that_is_written_as_a_string_is_rewritten(migrate, old, new):
    """Annotations in quotes follow a plain import, without a note; other strings stay."""
    made = migrate(f"import mcp.types\n{old}\n")
    assert made == f"import isthmus.compat.types\n{new}\n"


@pytest.mark.parametrize(
    "text",
    [
        "import mcp_utils",
        "from awslabs.core.mcp import server",
        "from .mcp import tools",
        "from . import mcp",
        "from fastmcp_tools import FastMCP",
        'path = "mcp.json"',
        'name = "fastmcp"',
    ],
)
def test_a_look_alike_stays(migrate, text):
    """Packages, files and words that only resemble the libraries are not touched."""
    assert text == migrate(text)


def test_a_package_of_the_project_that_is_called_mcp_is_not_the_library(tmp_path):
    """An import that a folder of the project answers stays; the report lists it."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("")
    (tmp_path / "mcp" / "tools.py").write_text("X = 1\n")
    app = tmp_path / "app.py"
    app.write_text("from mcp.tools import X\nfrom mcp.types import Tool\n")
    migration = migrate_project(tmp_path)
    first, second, *_ = migration.changes[0].text.splitlines()
    assert first == "from mcp.tools import X"
    assert second.startswith("from isthmus.compat.types import Tool  # isthmus: ")
    assert "hides the library's" in second
    assert migration.look_alikes == [(app, 1)]


def test_a_folder_without_init_hides_nothing(tmp_path):
    """A plain folder of servers that is called mcp is no package."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "app.py").write_text("from mcp.types import Tool\n")
    migration = migrate_project(tmp_path)
    assert migration.changes[0].text.startswith("from isthmus.compat.types import Tool")
    assert not migration.look_alikes


def test_the_target_of_a_patch_is_rewritten(migrate):
    """Strings that mock, monkeypatch and importlib resolve name the façade."""
    made = migrate(
        """
        with mock.patch("mcp.types.Tool.run"):
            monkeypatch.setattr('mcp.types.TextContent', None)
            importlib.import_module("mcp")
        """
    )
    assert '"isthmus.compat.types.Tool.run"' in made
    assert "'isthmus.compat.types.TextContent'" in made
    assert 'import_module("isthmus.compat.mcp")' in made


def test_a_name_that_the_facade_lacks_stays_and_is_marked(migrate):
    """The comment says what to use instead, and on which page to look."""
    made = migrate("from mcp.types import Tool, Nothing\nfrom mcp.cli.claude import run\n")
    first, second, third = made.splitlines()
    assert first == "from isthmus.compat.types import Tool"
    assert second.startswith("from mcp.types import Nothing  # isthmus: ")
    assert third.startswith("from mcp.cli.claude import run  # isthmus: ")
    assert "use the commands of isthmus instead" in third


def test_a_name_that_is_shadowed_stays(migrate):
    """The parameter of a function is not the package that its module imports."""
    made = migrate("import mcp.types\n\n\ndef f(mcp):\n    return mcp.types\n")
    assert made == "import isthmus.compat.types\n\n\ndef f(mcp):\n    return mcp.types\n"


def test_a_name_with_two_meanings_stays_and_is_marked(migrate):
    """Where the package's name is bound anew, the author decides what is meant."""
    made = migrate("import mcp.types\nif x:\n    mcp = 1\ny = mcp.types.Tool\n")
    assert "y = mcp.types.Tool  # isthmus: mcp has several meanings here" in made


def test_another_string_that_names_a_module_is_marked(migrate):
    """A logger's name may be meant or not: the author decides."""
    made = migrate('import logging\nlogging.getLogger("mcp.server.lowlevel").disabled = True\n')
    assert 'getLogger("mcp.server.lowlevel").disabled = True  # isthmus: ' in made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from mcp.server.fastmcp import *\n", "from mcp.server.fastmcp import *"),
        ('import sys\nsys.modules["mcp"] = object()\n', "sys.modules"),
        ('with patch.dict("sys.modules", {"fastmcp": fake}):\n    pass\n', "sys.modules"),
        ('import sys\nif "mcp.server" in sys.modules:\n    import mcp\n', "sys.modules"),
        ("import mcp\ndef broken(:\n", "it does not parse, at line 2"),
    ],
)
def test_a_file_with_tricks_is_untouched_and_listed(tmp_path, text, reason):
    """Star imports, sys.modules and files that do not parse are left to the author."""
    path = tmp_path / "server.py"
    path.write_text(text)
    migration = migrate_project(tmp_path)
    assert migration.changes == []
    assert [reason] == [each.reason for each in migration.untouched]


def test_encoding_mode_and_line_ends_stay(tmp_path):
    """A file in Latin-1 with CRLF that may be executed is written as such."""
    path = tmp_path / "server.py"
    path.write_bytes(
        "# -*- coding: latin-1 -*-\r\nimport mcp  # ä\r\nx = '''a\r\n'''\r\n".encode("latin-1")
    )
    path.chmod(0o750)
    migrate_project(tmp_path).write()
    assert (
        path.read_bytes()
        .decode("latin-1")
        .splitlines()[1]
        .startswith("import isthmus.compat.mcp  # ä")
    )
    assert path.read_bytes().count(b"\r\n") == 4
    assert path.stat().st_mode & 0o777 == 0o750


def test_a_second_run_changes_nothing(tmp_path):
    """What was migrated has nothing left to migrate, marked places included."""
    (tmp_path / "server.py").write_text(
        'import mcp.server.stdio, os\nfrom fastmcp import Nothing\nlog = getLogger("mcp.server")\n'
    )
    migrate_project(tmp_path).write()
    assert migrate_project(tmp_path).changes == []
