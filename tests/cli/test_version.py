"""``isthmus version``: what to name in the report of a bug."""

import json
import platform

import pytest

import isthmus
from isthmus.cli.commands.developing import version
from isthmus.cli.main import main
from isthmus.revisions import REVISIONS


def run(capsys, *words):
    """A command's exit code and output."""
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0), capsys.readouterr().out


def test_versions_revisions_and_extras_are_told(capsys):
    """Ours: in lines for people, and in JSON for programs; `--version` stays one line."""
    code, out = run(capsys, "version")
    told = json.loads(run(capsys, "version", "--json")[1])

    assert 0 == code
    assert [f"isthmus    {isthmus.__version__}"] == out.splitlines()[:1]
    assert [one.name for one in REVISIONS] == told["revisions"][::-1]
    assert told["python"].startswith(platform.python_version())
    assert (0, f"isthmus {isthmus.__version__}\n") == run(capsys, "--version")


def test_an_extra_that_lacks_a_library_is_told_with_how_to_get_it(monkeypatch):
    """Ours: half an extra is none."""
    requirements = [
        "msgspec>=0.22",
        'uvloop>=0.21; sys_platform != "win32"',
        'msgspec>=0.1; extra == "whole"',
        "msgspec; extra == 'half'",
        'no-such-library[x]>=1,<2; extra == "half"',
    ]
    monkeypatch.setattr(version.metadata, "requires", lambda _: requirements)
    found = version.read_versions()
    lines = version.describe_versions(found)

    assert ({"whole"}, {"half": ["no-such-library"]}) == (set(found.extras), found.missing)
    assert "no extra   half: pip install 'isthmus[half]' (no-such-library)" in lines
    assert "msgspec" in found.libraries
