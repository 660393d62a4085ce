"""Groups of ``isthmus migrate --native``: modules that share servers or types change together."""

import textwrap

import pytest

from isthmus.cli.main import main
from isthmus.migration.native.accepted import ACCEPTED_DIFFERENCES
from isthmus.migration.project import migrate_project

APP = """
from fastmcp import FastMCP

mcp = FastMCP("it")
"""
ITEMS = """
from app import mcp


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""


def write_project(folder, **modules):
    """Write the modules of a project."""
    for name, text in modules.items():
        folder.joinpath(f"{name}.py").write_text(textwrap.dedent(text).lstrip())


def migrate_native(folder):
    """Migrate a folder to native isthmus, twice: the second time changes nothing."""
    first = migrate_project(folder, native=True)
    first.write()
    assert not migrate_project(folder, native=True).list_changes()
    return first


def test_a_server_and_the_module_of_its_tools_become_native_together(tmp_path):
    """A tool that is declared in another module has the options of its server's library."""
    text = ITEMS.replace("-> int", "-> str").replace("a + b", "str(a + b)")
    write_project(tmp_path, app=APP, items=text, main="from app import mcp\nmcp.run()\n")
    step = migrate_native(tmp_path).native
    assert ["app.py", "items.py", "main.py"] == [path.name for path in step.native]
    assert "@mcp.tool(structured=True)" in tmp_path.joinpath("items.py").read_text()


def test_one_module_that_stays_keeps_its_group(tmp_path):
    """A module of the group that cannot be native decides for all; the comment stands at its line only."""
    write_project(tmp_path, app=APP, items=ITEMS.replace("a + b", "a // b"), other=APP)
    step = migrate_native(tmp_path).native
    assert ["other.py"] == [path.name for path in step.native]
    assert {("items.py", 6), ("app.py", 0)} == {(path.name, line) for path, line, _ in step.stayed}
    assert "# isthmus:" in tmp_path.joinpath("items.py").read_text().splitlines()[5]
    assert "# isthmus:" not in tmp_path.joinpath("app.py").read_text()
    assert "from isthmus.compat.fastmcp" in tmp_path.joinpath("app.py").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "import app  # here",
        "from app import *  # here",
        "from app import FastMCP  # here",
        "from app import work  # here",
        "from app import mcp\nprint(mcp.name)  # here",
        "with mock.patch('app.mcp'):  # here\n    pass",
        "def test():\n    from app import mcp\n    Client(mcp)  # here",
    ],
)
def test_a_module_that_looks_into_a_server_keeps_it_at_the_facade(tmp_path, text):
    """Tests that patch a server, or call a function with a context, hold: it stays as it is."""
    work = "\n\n@mcp.tool\nasync def work(ctx: Context) -> int:\n    return 1\n"
    app = APP.replace("FastMCP\n", "Context, FastMCP\n", 1) + work
    write_project(tmp_path, app=app, test_app=text)
    step = migrate_native(tmp_path).native
    assert not step.native
    (line,) = [
        line
        for line in tmp_path.joinpath("test_app.py").read_text().splitlines()
        if "# isthmus:" in line
    ]
    assert "# here  # isthmus: stays at the façade: " in line


def test_plain_functions_of_a_server_may_be_imported(tmp_path):
    """A test that calls the function of a tool sees no difference."""
    write_project(
        tmp_path,
        app=APP + ITEMS.split("mcp\n", 1)[1],
        test_app="from app import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    )
    assert ["app.py"] == [path.name for path in migrate_native(tmp_path).native.native]


def test_relative_imports_connect_modules_of_a_package(tmp_path):
    """``from .app import mcp`` is the server of the module beside it, and of no other."""
    for name, body in (("one", ITEMS), ("two", ITEMS.replace("a + b", "a // b"))):
        package = tmp_path / name
        package.mkdir()
        write_project(package, __init__="", app=APP, items=body.replace("from app", "from .app"))
    names = [
        path.relative_to(tmp_path).as_posix() for path in migrate_native(tmp_path).native.native
    ]
    assert ["one/app.py", "one/items.py"] == names


def test_two_tools_of_one_name_stay(tmp_path):
    """The façade keeps the first one; isthmus refuses the second."""
    write_project(tmp_path, app=APP, items=ITEMS, more=ITEMS)
    assert not migrate_native(tmp_path).native.native


@pytest.mark.parametrize(("body", "wanted"), [("a + b", "isthmus"), ("a // b", "isthmus[compat]")])
@pytest.mark.parametrize("old", ["fastmcp>=2", "isthmus[compat]"])
def test_a_native_project_requires_isthmus_alone(tmp_path, body, wanted, old):
    """The extra ``compat`` is required as long as something of the façades is left."""
    write_project(tmp_path, app=APP, items=ITEMS.replace("a + b", body))
    tmp_path.joinpath("requirements.txt").write_text(f"{old}\nhttpx\n")
    tmp_path.joinpath("pyproject.toml").write_text(
        f'[project]\nname = "x"\ndependencies = ["{old}"]\n'
    )
    migrate_native(tmp_path)
    assert f"{wanted}\nhttpx\n" == tmp_path.joinpath("requirements.txt").read_text()
    assert f'["{wanted}"]' in tmp_path.joinpath("pyproject.toml").read_text()


def test_the_summary_lists_modules_and_accepted_differences(tmp_path, capsys):
    """``isthmus migrate --native`` says what became native, what stays and why, and what clients may notice."""
    write_project(tmp_path, app=APP, other=APP + "print(mcp)\n")
    with pytest.raises(SystemExit) as ended:
        main(["migrate", str(tmp_path), "--native"])
    assert not ended.value.code
    said = capsys.readouterr().out
    assert "1 module native, 1 at the façade" in said
    assert "other.py:4: this use of mcp has no native spelling" in said
    assert all(each.subject in said for each in ACCEPTED_DIFFERENCES)
