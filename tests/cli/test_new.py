"""``isthmus new``: a project whose test passes."""

import os
import subprocess
import sys

import pytest

from isthmus import Client
from isthmus.cli.commands.authoring.templates import TEMPLATES
from isthmus.cli.commands.run import find_server, load_module
from isthmus.cli.main import main


@pytest.fixture
def isthmus(capsys, tmp_path, monkeypatch):
    """Runs ``isthmus new`` in an empty folder; gives its exit code, and what it wrote to both outputs."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["new", *words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


@pytest.mark.parametrize("template", ["basic"])  # the other has some of its tests
def test_the_test_of_a_new_project_passes(isthmus, tmp_path, template):
    """Ours: without being installed, and with no plugin but ours, which an installation loads by itself."""
    code, out, err = isthmus("My-Shop", "--template", template)
    assert (0, "") == (code, err)
    assert "My-Shop/src/my_shop/server.py" in out.splitlines()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "isthmus.testing.plugin",
        ],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        cwd=tmp_path / "My-Shop",
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.parametrize("template", TEMPLATES)
async def test_a_new_project_is_served_as_it_is(isthmus, tmp_path, template):
    """Ours: by isthmus run, and its names are those that were given."""
    assert 0 == isthmus("shop", "--template", template)[0]
    path = tmp_path / "shop" / "src" / "shop" / "server.py"
    server = find_server(load_module(path), "")
    async with Client(server) as client:
        assert ("shop", "Shop") == (client.info.name, client.info.title)
        assert 2 == (await client.call_tool("count_words", {"text": "a b"})).parse(int)
    text = "".join(
        one.read_text()
        for one in (tmp_path / "shop").rglob("*.*")
        if one.is_file() and one.suffix != ".pyc"
    )
    assert "$package" not in text
    assert "$name" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a b",), "is not a valid project name"),
        (("/",), "is not a valid project name"),
        (("-x",), "No such option"),
        (("json",), "is another module in Python"),
        (("isthmus",), "is another module in Python"),
        (("class",), "is another module in Python"),
        (("shop", "--template", "none"), "--template none: there are basic: "),
        (("there",), "has files in it"),
        (("there/file",), "is there already, and is no folder"),
        (("there/file/shop",), "cannot be made"),
    ],
)
def test_a_folder_that_cannot_be_is_told(isthmus, tmp_path, words, said):
    """Ours: and nothing is left of the attempt."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    code, _, err = isthmus(*words)

    assert (2, True) == (code, said in err), err
    assert ["there", "there/file"] == sorted(
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")
    )


def test_an_empty_folder_is_taken(isthmus, tmp_path):
    """Ours: somebody made it for this."""
    (tmp_path / "deep" / "shop").mkdir(parents=True)

    assert 0 == isthmus("deep/shop")[0]
    assert (tmp_path / "deep" / "shop" / "pyproject.toml").is_file()
