"""What a server is bound to: its program, its origin, its name."""

import os

import pytest

from isthmus.host.config.entries import ServerEntry, ServerOptions
from isthmus.host.supervisor.identity import executable, identity


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.covers("hostservers.identity.program")
def test_another_program_at_the_same_place_is_another_server(tmp_path):
    """Ours: a grant given to one program is none for what was put in its place."""
    path = script(tmp_path / "server", "#!/bin/sh\necho one\n")
    entry = ServerEntry(name="a", command=(str(path), "--flag"))
    first = identity(entry)
    assert first == identity(entry)
    script(path, "#!/bin/sh\necho two!\n")
    assert first != identity(entry)


def test_the_arguments_count_and_the_environment_does_not(tmp_path):
    """Ours: a renewed token makes no other server, another folder on its command line does."""
    path = str(script(tmp_path / "server", "#!/bin/sh\n"))
    plain = identity(ServerEntry(name="a", command=(path, "x")))
    assert plain == identity(ServerEntry(name="b", command=(path, "x"), env={"TOKEN": "t"}))
    assert plain != identity(ServerEntry(name="a", command=(path, "y")))
    assert identity(ServerEntry(name="a", command=("a b",))) != identity(
        ServerEntry(name="a", command=("a", "b"))
    )


@pytest.mark.skipif(os.name == "nt", reason="links are made by hand elsewhere")
def test_the_program_is_found_as_it_will_be_run(tmp_path):
    """Ours: along the PATH that the server gets, and through links to the file itself."""
    real = script(tmp_path / "real", "#!/bin/sh\n")
    (tmp_path / "named").symlink_to(real)
    by_path = ServerEntry(name="a", command=("named",), env={"PATH": str(tmp_path)})
    by_folder = ServerEntry(name="a", command=("./named",), cwd=str(tmp_path))
    assert [str(real)] * 2 == [executable(by_path), executable(by_folder)]
    assert "" == executable(ServerEntry(name="a", command=("is-not-there-at-all",)))


def test_a_server_at_a_url_is_its_origin_with_whoever_vouches_for_tokens():
    """Ours: the path may change, the host may not."""
    at = {"name": "a", "kind": "http"}
    here = identity(ServerEntry(url="https://Crm.example:443/mcp?key=1", **at))
    assert "url:https://crm.example" == here
    assert here == identity(ServerEntry(url="https://crm.example/v2", **at))
    assert "url:http://[::1]:8000" == identity(ServerEntry(url="http://[::1]:8000/mcp", **at))
    vouched = ServerOptions(auth={"kind": "user-oauth", "issuer": "https://as.example"})
    entry = ServerEntry(url="https://crm.example/mcp", options=vouched, **at)
    assert "url:https://crm.example https://as.example" == identity(entry)


def test_a_server_in_this_process_is_its_name():
    """Ours: there is nothing else that would last."""
    assert "memory:desk" == identity(ServerEntry(name="desk"))


@pytest.mark.skipif(os.name == "nt", reason="programs are found otherwise there")
def test_relative_folders_are_those_of_the_server(tmp_path):
    """Ours: what is shown and bound is the program that runs in its folder, not one in ours."""
    work = tmp_path / "work"
    (work / "bin").mkdir(parents=True)
    program = script(work / "bin" / "server", "#!/bin/sh\n")
    entry = ServerEntry(
        name="a", command=("server",), cwd=str(work), env={"PATH": f"bin{os.pathsep}/usr/bin"}
    )

    assert str(program) == executable(entry)
