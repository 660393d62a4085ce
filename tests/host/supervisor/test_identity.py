"""Identity of a server: its program, its origin, its name."""

import os
import sys

import pytest
from msgspec import structs

from isthmus.host.confinement.install import compute_consent_digest
from isthmus.host.model.entries import ServerEntry, ServerOptions
from isthmus.host.supervisor.identity import find_executable, find_interpreter, identify_server


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.covers("hostservers.identity.program")
def test_another_program_at_the_same_place_is_another_server(tmp_path):
    """Ours: a grant given to one program is none for what was put in its place."""
    path = script(tmp_path / "server", "#!/bin/sh\necho one\n")
    entry = ServerEntry(name="a", command=(str(path), "--flag"))
    first = identify_server(entry)
    assert first == identify_server(entry)
    script(path, "#!/bin/sh\necho two!\n")
    assert first != identify_server(entry)


def test_the_arguments_count_and_the_environment_does_not(tmp_path):
    """Ours: a renewed token makes no other server, another folder on its command line does."""
    path = str(script(tmp_path / "server", "#!/bin/sh\n"))
    plain = identify_server(ServerEntry(name="a", command=(path, "x")))
    assert plain == identify_server(ServerEntry(name="b", command=(path, "x"), env={"TOKEN": "t"}))
    assert plain != identify_server(ServerEntry(name="a", command=(path, "y")))
    assert identify_server(ServerEntry(name="a", command=("a b",))) != identify_server(
        ServerEntry(name="a", command=("a", "b"))
    )


@pytest.mark.skipif(os.name == "nt", reason="links are made by hand elsewhere")
def test_the_program_is_found_as_it_will_be_run(tmp_path):
    """Ours: along the PATH that the server gets, and through links to the file itself."""
    real = script(tmp_path / "real", "#!/bin/sh\n")
    (tmp_path / "named").symlink_to(real)
    by_path = ServerEntry(name="a", command=("named",), env={"PATH": str(tmp_path)})
    by_folder = ServerEntry(name="a", command=("./named",), cwd=str(tmp_path))
    assert [str(real)] * 2 == [find_executable(by_path), find_executable(by_folder)]
    assert "" == find_executable(ServerEntry(name="a", command=("is-not-there-at-all",)))


def test_a_server_at_a_url_is_its_origin_with_whoever_vouches_for_tokens():
    """Ours: the path may change, the host may not."""
    at = {"name": "a", "kind": "http"}
    here = identify_server(ServerEntry(url="https://Crm.example:443/mcp?key=1", **at))
    assert "url:https://crm.example" == here
    assert here == identify_server(ServerEntry(url="https://crm.example/v2", **at))
    assert "url:http://[::1]:8000" == identify_server(
        ServerEntry(url="http://[::1]:8000/mcp", **at)
    )
    vouched = ServerOptions(auth={"kind": "user-oauth", "issuer": "https://as.example"})
    entry = ServerEntry(url="https://crm.example/mcp", options=vouched, **at)
    assert "url:https://crm.example https://as.example" == identify_server(entry)


def test_a_server_in_this_process_is_its_name():
    """Ours: there is nothing else that would last."""
    assert "memory:desk" == identify_server(ServerEntry(name="desk"))


@pytest.mark.skipif(os.name == "nt", reason="programs are found otherwise there")
def test_relative_folders_are_those_of_the_server(tmp_path):
    """Ours: what is shown and bound is the program that runs in its folder, not one in ours."""
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    program = script(work / "bin" / "server", "#!/bin/sh\n")
    entry = ServerEntry(
        name="a", command=("server",), cwd=str(work), env={"PATH": f"bin{os.pathsep}/usr/bin"}
    )

    assert str(program) == find_executable(entry)


@pytest.mark.covers("hostservers.identity.folder")
def test_the_same_command_in_another_folder_is_another_server(tmp_path, monkeypatch):
    """Ours: also where the folder is not written down, and is the one in which the host runs."""
    bare = ServerEntry(name="a", command=(sys.executable, "server.py"))
    found = []
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found.append(identify_server(bare))
    written = structs.replace(bare, cwd=str(tmp_path / "theirs"))

    assert found[0] != found[1]
    assert found[1] == identify_server(written)


@pytest.mark.covers("hostservers.identity.folder")
def test_a_folder_that_is_a_link_is_the_one_that_it_leads_to(tmp_path):
    """Ours: where it leads to another one, other code runs."""
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "mine")
    entry = ServerEntry(name="a", command=(sys.executable, "server.py"), cwd=str(link))
    before = identify_server(entry)
    link.unlink()
    link.symlink_to(tmp_path / "theirs")

    assert before != identify_server(entry)


@pytest.mark.covers("hostservers.identity.program")
def test_a_variable_that_loads_other_code_makes_another_server(tmp_path):
    """Ours: one with a token does not."""
    path = str(script(tmp_path / "server", "#!/bin/sh\n"))
    plain = ServerEntry(name="a", command=(path,))
    assert identify_server(plain) == identify_server(structs.replace(plain, env={"TOKEN": "x"}))
    for name in ("NODE_OPTIONS", "LD_PRELOAD", "PYTHONPATH"):
        assert identify_server(plain) != identify_server(
            structs.replace(plain, env={name: "/evil"})
        )


@pytest.mark.covers("hostservers.identity.program")
def test_another_interpreter_of_the_same_script_is_another_server(tmp_path, monkeypatch):
    """Ours: as it is found along the PATH that the server inherits."""
    path = script(tmp_path / "server", "#!/usr/bin/env -S lang --flag\n")
    entry = ServerEntry(name="a", command=(str(path),))
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        script(tmp_path / name / "lang", "#!/bin/sh\n")
        monkeypatch.setenv("PATH", str(tmp_path / name))
        found.append((identify_server(entry), compute_consent_digest(entry)))
    seen = find_interpreter(entry, str(path))

    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]
    assert str(tmp_path / "two" / "lang") == seen


@pytest.mark.parametrize("first", ["", "#!", "#!/usr/bin/env", "#!/usr/bin/env -i A=1", "\x7fELF"])
def test_a_first_line_that_names_no_interpreter_is_none(tmp_path, first):
    """Ours: a program that is no script, and scripts that are none."""
    path = script(tmp_path / "server", first)

    assert "" == find_interpreter(ServerEntry(name="a", command=(str(path),)), str(path))
