"""What confines a launched server, with the real bubblewrap where there is one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.client.client import Client
from isthmus.host.confinement.sandbox import (
    CERTIFICATE_VARIABLES,
    GrantedFolder,
    SandboxUnavailable,
    confine_command,
    describe_sandbox,
    explain_unavailable,
    find_needed_paths,
)
from isthmus.host.model.entries import Sandbox
from isthmus.transports.command import Command

WHY = explain_unavailable()
REAL = pytest.mark.skipif(bool(WHY), reason=f"no sandbox here: {WHY}")

TRY = """
import json, sys
said = {}
for what, path in json.loads(sys.argv[1]).items():
    try:
        if what.startswith("write"):
            open(path, "w").write("x")
        elif what.startswith("list"):
            import os
            os.listdir(path)
        else:
            open(path).read()
        said[what] = True
    except OSError:
        said[what] = False
print(json.dumps(said))
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with a key in it, and a folder to work in."""
    for name in CERTIFICATE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    for folder in (".ssh", "work", "other"):
        (home / folder).mkdir(parents=True)
    (home / ".ssh" / "id").write_text("canary")
    (home / "other" / "file").write_text("canary")
    (home / "work" / "file").write_text("work")
    monkeypatch.setenv("HOME", str(home))
    return home


def tried(sandbox, roots, /, cwd=None, **paths):
    """What a program in a sandbox could do."""
    command = Command(
        sys.executable, "-c", TRY, json.dumps({k: str(v) for k, v in paths.items()}), cwd=cwd
    )
    inside = confine_command(command, sandbox, roots)
    done = subprocess.run(
        inside.argv,
        env=inside.environment(),
        cwd=inside.cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@REAL
@pytest.mark.covers("hostconfig.sandbox.home-hidden")
def test_the_home_is_not_there(home):
    """Ours: no key is read by a server that nobody let into it."""
    assert {"read": False, "read_other": False, "list": True} == tried(
        Sandbox(), [], read=home / ".ssh" / "id", read_other=home / "other" / "file", list=home
    )


@REAL
@pytest.mark.covers("hostconfig.sandbox.roots-only")
def test_a_root_is_all_there_is_to_work_in(home):
    """Ours: inside of it a server reads and writes, outside it does not; a read-only one it reads."""
    said = tried(
        Sandbox(),
        [GrantedFolder(str(home / "work")), GrantedFolder(str(home / "other"), writable=False)],
        read=home / "work" / "file",
        write=home / "work" / "new",
        read_other=home / "other" / "file",
        write_other=home / "other" / "new",
        write_system="/usr/new",
        write_etc="/etc/new",
    )

    assert {"read", "write", "read_other"} == {what for what, done in said.items() if done}
    assert "x" == (home / "work" / "new").read_text()


@REAL
@pytest.mark.covers("hostconfig.sandbox.link-swapped")
def test_a_link_under_a_root_leads_nowhere(home):
    """Ours: whoever writes in the root cannot put a way out into it."""
    (home / "work" / "out").symlink_to(home / ".ssh")
    (home / "work" / "file2").symlink_to(home / "other" / "file")

    assert {"read": False, "read2": False, "write": False} == tried(
        Sandbox(),
        [GrantedFolder(str(home / "work"))],
        read=home / "work" / "out" / "id",
        read2=home / "work" / "file2",
        write=home / "work" / "out" / "new",
    )


@REAL
@pytest.mark.covers("hostconfig.sandbox.link-swapped")
def test_a_root_that_became_a_link_is_not_bound(home):
    """Ours: what was granted was the folder, not whatever stands in its place."""
    (home / "work" / "file").unlink()
    (home / "work").rmdir()
    (home / "work").symlink_to(home / ".ssh")

    with pytest.raises(SandboxUnavailable, match="is no more the folder that was granted"):
        confine_command(Command("true"), Sandbox(), [GrantedFolder(str(home / "work"))])


@REAL
def test_what_an_entry_allows_and_hides(home):
    """Ours: further folders to write in, and places within a root that are not seen."""
    (home / "work" / ".env").write_text("canary")
    (home / "work" / "private").mkdir()
    (home / "work" / "private" / "key").write_text("canary")
    box = Sandbox(
        allow_write=(str(home / "other"),),
        deny_read=(str(home / "work" / "private"), str(home / "work" / ".env"), str(home / "none")),
    )
    said = tried(
        box,
        [GrantedFolder(str(home / "work"))],
        write=home / "other" / "new",
        read_private=home / "work" / "private" / "key",
        list=home / "work",
    )

    assert {"write": True, "read_private": False, "list": True} == said
    command = confine_command(
        Command("cat", str(home / "work" / ".env")), box, [GrantedFolder(str(home / "work"))]
    )
    hidden = subprocess.run(command.argv, capture_output=True, text=True, check=False)
    assert "canary" not in hidden.stdout


MOVE = """
import os, sys
for step in sys.argv[1:]:
    before, after = step.split(":")
    try:
        os.rename(before, after)
        print(before)
    except OSError:
        pass
"""


@REAL
@pytest.mark.covers("hostconfig.sandbox.host-own")
def test_what_the_host_goes_by_is_out_of_reach(home):
    """Ours: also where it stands within a root: a server answers no question and writes no rule."""
    work = home / "work"
    state, policy = work / "deep" / "state", work / "conf" / "policy.toml"
    for one in (state / "host.sock", policy):
        one.parent.mkdir(parents=True)
        one.write_text("canary")
    roots, own = [GrantedFolder(str(work))], [str(state), str(policy), str(home / "elsewhere")]
    box = Sandbox(deny_read=(str(work / "deep" / "state"),))

    def steps(*names):
        argv = ("-c", MOVE, *(f"{work}/{name}:{work}/{name}2" for name in names))
        inside = confine_command(Command(sys.executable, *argv), box, roots, own)
        done = subprocess.run(inside.argv, capture_output=True, text=True, check=True)
        return done.stdout.split()

    command = Command(
        sys.executable,
        "-c",
        TRY,
        json.dumps(
            {
                "read_sock": str(state / "host.sock"),
                "read_policy": str(policy),
                "write_policy": str(policy),
                "write": str(policy.parent / "other"),
            }
        ),
    )
    inside = confine_command(command, Sandbox(), roots, own)
    done = subprocess.run(inside.argv, capture_output=True, text=True, check=True)

    said = {"read_sock": False, "read_policy": True, "write_policy": False, "write": True}
    assert said == json.loads(done.stdout)
    assert [str(work / "conf" / "other")] == steps(
        "deep", "deep/state", "conf", "conf/policy.toml", "conf/other"
    )


@pytest.mark.covers("hostconfig.sandbox.home-hidden")
def test_nothing_that_calls_itself_a_part_of_the_program_shows_keys(home):
    """Ours: neither a variable for certificates nor a line of a package does."""
    venv = home / "work" / "venv"
    packages = venv / "lib" / "python3.13" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "evil.pth").write_text(f"{home / '.ssh'}\n{home / 'other'}\n")
    program = venv / "bin" / "server"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    env = {"SSL_CERT_DIR": str(home / ".ssh"), "SSL_CERT_FILE": str(home)}
    found = set(find_needed_paths(Command(str(program), env=env), str(home), str(home)))

    assert {str(home / "other")} == found & {str(home / "other"), str(home / ".ssh"), str(home)}


@REAL
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="for root only")
def test_what_only_root_can_do_cannot_be_done(home):
    """Ours: a server of root's changes no setting of the machine, and reads no passwords."""
    assert {"write_core": False, "read_core": True} == tried(
        Sandbox(),
        [],
        write_core="/proc/sys/kernel/core_pattern",
        read_core="/proc/sys/kernel/ostype",
    )
    command = confine_command(Command("cat", "/etc/shadow"), Sandbox())
    assert b"" == subprocess.run(command.argv, capture_output=True, check=False).stdout


@REAL
def test_sockets_of_the_system_are_not_there(home):
    """Ours: no agent with keys, no Docker, nothing of other programs in /tmp."""
    assert {"list": False, "read": False} == tried(
        Sandbox(), [], list="/run/user", read=str(home.parent / "home" / "work" / "file")
    )


@REAL
def test_there_is_no_network_where_it_is_so_configured():
    """Ours: not even the machine's own."""
    listing = Command("cat", "/proc/net/dev")
    lines = [
        subprocess.run(
            confine_command(listing, box).argv, capture_output=True, text=True, check=True
        ).stdout
        for box in (Sandbox(network=False), Sandbox())
    ]

    assert ["lo"] == [line.split(":")[0].strip() for line in lines[0].splitlines()[2:]]
    assert lines[0] != lines[1]


@REAL
@pytest.mark.covers("hostconfig.sandbox.environment-unseen")
def test_the_environment_is_what_the_command_has(monkeypatch):
    """Ours: no variable of ours, and none that others can read among the arguments."""
    monkeypatch.setenv("OUR_SECRET", "canary")
    command = confine_command(Command("env", env={"THEIR_TOKEN": "token-canary"}), Sandbox())
    said = subprocess.run(
        command.argv, env=command.environment(), capture_output=True, text=True, check=True
    ).stdout

    assert ("token-canary" in said, "OUR_SECRET" in said) == (True, False)
    assert "canary" not in " ".join(command.argv)


@REAL
def test_it_ends_with_whoever_started_it_and_sees_no_other_process():
    """Ours: processes of its own, counted from one."""
    command = confine_command(
        Command("sh", "-c", "echo $$; ls /proc | grep -c '^[0-9]'"), Sandbox()
    )
    said = subprocess.run(command.argv, capture_output=True, text=True, check=True).stdout.split()

    assert int(said[0]) < 10
    assert int(said[1]) < 10
    assert "--die-with-parent" in command.argv


@REAL
async def test_a_server_serves_from_within(home):
    """Ours: it is found with its environment, its script and its packages, and answers."""
    script = home / "work" / "server.py"
    script.write_text(
        "from isthmus import Server\nserver = Server('boxed')\n"
        "@server.tool\ndef peek(path: str) -> str:\n"
        "    try:\n        return open(path).read()\n"
        "    except OSError as error:\n        return type(error).__name__\n"
        "server.run()\n"
    )
    command = Command(sys.executable, "work/server.py", cwd=str(home))
    async with Client(confine_command(command, Sandbox(network=False))) as client:
        key = await client.call_tool("peek", {"path": str(home / ".ssh" / "id")})
        own = await client.call_tool("peek", {"path": str(script)})

    assert "FileNotFoundError" == key.text
    assert own.text.startswith("from isthmus")


@pytest.mark.covers("hostconfig.sandbox.unavailable-refuses")
@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_told(platform):
    """Ours: no server runs unconfined that was to be confined."""
    assert "which there is for Linux only" in explain_unavailable(platform)


@pytest.mark.covers("hostconfig.sandbox.unavailable-refuses")
def test_without_bubblewrap_the_server_does_not_start(monkeypatch, tmp_path):
    """Ours: the message says how to install it, and how to go without."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxUnavailable, match=r'apt install bubblewrap.*take "sandbox" out'):
        confine_command(Command("x"), Sandbox())


@pytest.mark.covers("hostconfig.sandbox.unavailable-refuses")
def test_where_namespaces_are_off_the_server_does_not_start(monkeypatch, tmp_path):
    """Ours: what bubblewrap says is told."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho no permission >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")

    assert "cannot make a sandbox here (no permission)" in explain_unavailable("linux")


@REAL
@pytest.mark.parametrize(("path", "says"), [("/", "is everything"), ("/none", "is not there")])
def test_folders_that_cannot_be_allowed_are_told(path, says):
    """Ours: a mistyped folder is found at the start."""
    with pytest.raises(SandboxUnavailable, match=says):
        confine_command(Command("true"), Sandbox(allow_write=(path,)))


def test_what_a_program_needs_is_found(home):
    """Ours: its environment, the script that it is, and the folder of its packages; not the home."""
    venv = home / "tools" / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("")
    python, tool = venv / "bin" / "python", venv / "bin" / "tool"
    python.symlink_to(sys.executable)
    tool.write_text(f"#!{python}\n")
    tool.chmod(0o755)
    (home / ".local" / "bin").mkdir(parents=True)
    link = home / ".local" / "bin" / "tool"
    link.symlink_to(tool)
    (home / "app" / "dist").mkdir(parents=True)
    (home / "app" / "package.json").write_text("{}")
    (home / "app" / "dist" / "index.js").write_text("")
    (home / "alone.py").write_text("")

    found = set(find_needed_paths(Command(str(link)), "/", str(home)))
    assert {str(link), str(venv)} == {path for path in found if path.startswith(str(home))}
    node = set(
        find_needed_paths(Command("none", str(home / "app" / "dist" / "index.js")), "/", str(home))
    )
    assert {str(home / "app")} == node
    assert {str(home / "alone.py")} == set(
        find_needed_paths(Command("none", "alone.py"), str(home), str(home))
    )


def test_it_is_described_to_a_person():
    """Ours: a line for each thing; without a sandbox there is nothing to say."""
    lines = describe_sandbox(
        Sandbox(network=False, allow_write=("/a",), deny_read=("/b",)),
        [GrantedFolder("/r"), GrantedFolder("/s", writable=False)],
    )

    assert "has no network" in lines[0]
    assert ("reads and writes /r", "reads /s", "reads and writes /a", "does not see /b") == lines[
        1:
    ]
    assert () == describe_sandbox(None)


def test_links_are_followed_to_the_end(tmp_path):
    """Ours: a program whose links lead in a circle ends the search."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to(two)
    two.symlink_to(one)

    assert [] == list(find_needed_paths(Command(str(Path(one))), "/", "/home/x"))


def test_a_certificate_that_stands_elsewhere_is_seen_by_its_name_and_where_that_leads(home):
    """Ours: a company's own authority works in a sandbox as it does outside."""
    real, link = home / "other" / "ca.pem", home / "work" / "ca.pem"
    real.write_text("")
    link.symlink_to(real)
    env = {"SSL_CERT_FILE": str(link), "REQUESTS_CA_BUNDLE": "/etc/ssl/certs/ca.pem"}
    found = set(find_needed_paths(Command(sys.executable, env=env), str(home / "work"), str(home)))

    assert {str(real), str(link)} == {one for one in found if one.endswith(".pem")}
