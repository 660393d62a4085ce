"""Sandbox of a launched server: bubblewrap shows it the system, its own program and its roots.

Everything else is not there for it: the user's home is empty, ``/tmp`` is its own, and so are
processes, users and, where it is so configured, the network. Roots are what makes the difference
between telling a server where it should work and seeing to it that it can work nowhere else.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from isthmus.host.confinement.folders import explain_refusal
from isthmus.host.confinement.seccomp import make_filter
from isthmus.host.model.entries import Sandbox
from isthmus.host.model.errors import ServerUnavailable
from isthmus.transports.command import Command

# every program needs them, read-only; none has sockets of the system
SYSTEM_FOLDERS = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
    "/nix/store", "/gnu/store", "/run/current-system", "/run/systemd/resolve",
    "/var/lib/ca-certificates",
)  # fmt: skip

# with these root changes the whole machine, in whatever namespace
KERNEL_SETTINGS = ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger")

# files of the system that only root can read
PRIVATE_GLOBS = (
    "/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/ssh_host_*_key", "/etc/ssl/private",
    "/etc/krb5.keytab", "/etc/wireguard", "/etc/ppp", "/etc/NetworkManager/system-connections",
)  # fmt: skip

# a folder with one of them is the whole of a program
PROJECT_FILES = ("package.json", "node_modules", "pyproject.toml", "Cargo.toml", "deno.json")

# of files that an interpreter is given to run
SCRIPT_SUFFIXES = frozenset(
    {".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".jar", ".sh"}
)

# they hold much besides one program
SHARED_FOLDERS = frozenset({"/", "/tmp", "/var/tmp", "/home", "/root", "/srv", "/mnt"})  # noqa: S108 - compared
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")

# names of keys in the kernel's keyrings, which no namespace divides
KEYRING_FILES = ("/proc/keys", "/proc/key-users")

FIXED_OPTIONS = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL",
)  # fmt: skip


class SandboxUnavailable(ServerUnavailable):
    """A sandbox was asked for and cannot be had, so that the server does not start."""


class GrantedFolder(Struct, frozen=True):
    """A folder that a server may work in.

    Attributes:
        path: where it really is: absolute, without links.
        writable: whether it may be written to.
    """

    path: str
    writable: bool = True


class ConfinedCommand(Command):
    """A command of bubblewrap, which gets its filter of system calls through a descriptor."""

    __slots__ = ()

    def prepare_launch(self) -> tuple[list[str], list[int]]:
        """The arguments with the filter's descriptor, new for each launch: it is read to its end."""
        argv, inherited = super().prepare_launch()
        options, descriptors = open_filter()
        return [*argv[:1], *options, *argv[1:]], inherited + descriptors


def open_filter() -> tuple[list[str], list[int]]:
    """The options of bubblewrap for the filter of this machine, and its descriptor, to be closed."""
    code = make_filter()
    if not code:
        return [], []
    descriptor = os.memfd_create("isthmus-seccomp")
    os.write(descriptor, code)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return ["--seccomp", str(descriptor)], [descriptor]


def confine_command(
    command: Command, sandbox: Sandbox, roots: Sequence[GrantedFolder] = (), own: Sequence[str] = ()
) -> Command:
    """A command that runs another one in a sandbox.

    The environment is what the command has, and never stands among the arguments.

    Args:
        command: what to run.
        sandbox: what it may do besides.
        roots: the folders it was granted.
        own: what is the host's own, wherever it stands: folders are not seen, files are read-only.

    Raises:
        SandboxUnavailable: there is no bubblewrap here, or a folder is not what it should be.
    """
    why = explain_unavailable()
    if why:
        raise SandboxUnavailable(why, state="failed")
    place = os.path.abspath(command.cwd or os.getcwd())  # noqa: PTH100, PTH109 - as it is spelt
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - a text
    shown = [*find_needed_paths(command, place, home)]
    write = [_resolve_folder(path, "sandbox.allowWrite") for path in sandbox.allow_write]
    binds = dict.fromkeys(shown, False) | {
        one.path: one.writable for one in map(_check_same, roots)
    }
    binds |= dict.fromkeys(write, True)
    visible = [*binds, *SYSTEM_FOLDERS]
    mine = [real for path in own if _is_within(real := os.path.realpath(path), visible)]
    hide = [os.path.realpath(os.path.expanduser(path)) for path in sandbox.deny_read]  # noqa: PTH111 - a text
    binds |= _find_fixed_folders([*mine, *hide], binds)
    parts = [
        "bwrap",
        *FIXED_OPTIONS,
        *_find_userns_option(shutil.which("bwrap") or "bwrap"),
        *(() if sandbox.network else ("--unshare-net",)),
    ]
    for path in SYSTEM_FOLDERS:
        parts += _bind_system(path)
    parts += ["--proc", "/proc"]
    for path in KEYRING_FILES:
        parts += ["--ro-bind-try", "/dev/null", path]
    parts += ["--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - its own
    if home != "/":
        parts += ["--tmpfs", home]
    for path in sorted(binds, key=len):  # what lies within comes after what is around it
        parts += ["--bind" if binds[path] else "--ro-bind", path, path]
    parts += _restrict_root()
    for path in mine:
        parts += _hide_path(path) if os.path.isdir(path) else ["--ro-bind-try", path, path]  # noqa: PTH112 - a text
    for path in hide:
        parts += _hide_path(path)
    inside = _find_start_folder(place, home, binds)
    parts += ["--chdir", inside, "--setenv", "TMPDIR", "/tmp", "--unsetenv", "XDG_RUNTIME_DIR"]  # noqa: S108 - as above
    return ConfinedCommand(*parts, "--", *command.argv, env=command.env, cwd=command.cwd)


def _find_start_folder(place: str, home: str, binds: Mapping[str, bool]) -> str:
    """The folder that a program starts in, where there is such a one in its sandbox."""
    seen = (*SYSTEM_FOLDERS, *binds)
    for path in (place, os.path.realpath(place)):
        if path == home or _is_within(path, seen) or any(_is_within(one, [path]) for one in binds):
            return path
    return "/tmp"  # noqa: S108 - its own


def describe_sandbox(
    sandbox: Sandbox | None, roots: Sequence[GrantedFolder] = ()
) -> tuple[str, ...]:
    """Describe a sandbox to a person, in lines; none where there is no sandbox.

    Args:
        sandbox: the sandbox of a server; None for none.
        roots: the folders that the server sees in it.
    """
    if sandbox is None:
        return ()
    reach = "reaches the network" if sandbox.network else "has no network"
    return (
        f"sees the system read-only, its own program, and none of your home; {reach}",
        *(() if make_filter() else ("makes any system call: there is no filter for this machine",)),
        *(f"{'reads and writes' if one.writable else 'reads'} {one.path}" for one in roots),
        *(f"reads and writes {path}" for path in sandbox.allow_write),
        *(f"does not see {path}" for path in sandbox.deny_read),
    )


def explain_unavailable(platform: str = sys.platform) -> str:
    """Explain why there can be no sandbox here, and what to do; empty where there can."""
    rest = 'take "sandbox" out of its entry to run it with your own rights'
    if platform != "linux":
        return f"a sandbox needs bubblewrap, which there is for Linux only: {rest}"
    program = shutil.which("bwrap")
    if program is None:
        return (
            "a sandbox needs bubblewrap, which is not installed: apt install bubblewrap, "
            f"dnf install bubblewrap, or pacman -S bubblewrap; or {rest}"
        )
    said = _try_launch(program)
    if said:
        return (
            f"bubblewrap cannot make a sandbox here ({said}): user namespaces are switched off, see "
            f"kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; or {rest}"
        )
    return ""


@cache
def _try_launch(program: str, *options: str) -> str:
    """Run a program that does nothing in a sandbox: its complaint, or empty where it runs."""
    passed, descriptors = open_filter()
    places = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, *passed, *FIXED_OPTIONS, *options, *places, "--", "true"],
            capture_output=True,
            timeout=10,
            check=False,
            pass_fds=descriptors,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip()[:200]


def _find_userns_option(program: str) -> tuple[str, ...]:
    """The option that forbids further user namespaces, where bubblewrap has it (0.8)."""
    option = "--disable-userns"
    return () if _try_launch(program, option) else (option,)


def find_needed_paths(command: Command, cwd: str, home: str) -> Iterator[str]:
    """The files and folders outside of the system that a program needs to run at all.

    Args:
        command: the program.
        cwd: the folder that it starts in.
        home: the user's home, which is never shown as a whole.
    """
    found = shutil.which(
        os.path.join(cwd, command.argv[0]) if os.sep in command.argv[0] else command.argv[0],  # noqa: PTH118 - a text
        path=command.environment().get("PATH", os.defpath),
    )
    programs = [os.path.abspath(found)] if found else []  # noqa: PTH100 - links stay
    for program in programs:
        programs += _find_interpreter(program)
        yield from (
            path
            for path in _find_program_paths(program, home)
            if not _is_within(path, SYSTEM_FOLDERS)
        )
    files = (Path(cwd, argument) for argument in command.argv[1:])
    script = next(
        (path for path in files if path.suffix in SCRIPT_SUFFIXES and path.is_file()), None
    )
    if script is not None:  # files after it are what it works on, and are shown by roots alone
        yield from (
            one for one in _find_script_paths(script, home) if not _is_within(one, SYSTEM_FOLDERS)
        )
    variables = command.environment()
    certificates = (variables.get(name, "") for name in CERTIFICATE_VARIABLES)
    for path in ("/etc/resolv.conf", *certificates):
        real = os.path.realpath(path) if path else ""
        if not real or explain_refusal(
            real, home
        ):  # what is called a certificate may be a folder of keys
            continue
        if os.path.exists(real) and not _is_within(real, SYSTEM_FOLDERS):  # noqa: PTH110 - a text
            yield real
            if path != real and not _is_within(path, SYSTEM_FOLDERS):
                yield path


def _find_interpreter(program: str) -> Iterator[str]:
    """The program that the first line of a script names."""
    try:
        with Path(program).open("rb") as file:
            line = file.readline(512)
    except OSError:
        return
    if line.startswith(b"#!"):
        words = line[2:].decode(errors="surrogateescape").split()
        if words and words[0].startswith("/") and not _is_within(words[0], SYSTEM_FOLDERS):
            yield words[0]


def _find_program_paths(program: str, home: str) -> Iterator[str]:
    """Find the paths of a program: itself, what its links lead to, and its environment."""
    hop = program
    for _ in range(16):
        folder = os.path.dirname(os.path.dirname(hop))  # noqa: PTH120 - links stay
        whole = os.path.basename(os.path.dirname(hop)) == "bin" and not _is_around(folder, home)  # noqa: PTH119, PTH120 - as above
        # .venv/bin/python belongs to .venv, ~/.local/share/uv/python/X/bin/python to X; of
        # ~/.local/bin and ~/bin nothing but the program itself is shown
        own = whole and (Path(folder, "pyvenv.cfg").exists() or Path(folder, "lib").exists())
        shared = folder in {os.path.join(home, ".local"), home}  # noqa: PTH118 - a text
        yield folder if own and not shared else hop
        if own and not shared:
            # any package may say where packages are: not where keys are
            yield from (
                path
                for path in _find_editable_folders(folder)
                if not (_is_around(path, home) or explain_refusal(path, home))
            )
        if not os.path.islink(hop):  # noqa: PTH114 - a text
            break
        hop = os.path.join(os.path.dirname(hop), os.readlink(hop))  # noqa: PTH115, PTH118, PTH120 - as above
        hop = os.path.normpath(hop)
    real = os.path.realpath(program)
    if real != hop:
        yield real


def _find_editable_folders(environment: str) -> Iterator[str]:
    """The folders of packages that an environment of Python has where they are written."""
    for file in Path(environment).glob("lib/python*/site-packages/*.pth"):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("/") and Path(line).is_dir():
                yield os.path.realpath(line)


def _find_script_paths(path: Path, home: str) -> Iterator[str]:
    """Find the paths of a script: the folder of its program, or else its own, or else itself."""
    real = Path(os.path.realpath(path))
    for folder in real.parents:
        if _is_around(str(folder), home):
            break
        if any((folder / name).exists() for name in PROJECT_FILES):
            yield str(folder)
            return
    yield str(real if _is_around(str(real.parent), home) else real.parent)
    if str(path) != str(real):
        yield str(path)


def _is_around(folder: str, home: str) -> bool:
    """Whether a folder is one that has much else in it: home, or one that home is in, or /tmp."""
    return folder in SHARED_FOLDERS or home == folder or home.startswith(folder.rstrip("/") + "/")


def _is_within(path: str, places: Sequence[str]) -> bool:
    """Whether a path lies in one of several places."""
    return any(path == one or path.startswith(one.rstrip("/") + "/") for one in places)


def _bind_system(path: str) -> list[str]:
    """A part of the system as it is: a link where it is one."""
    if os.path.islink(path):  # noqa: PTH114 - a text
        return ["--symlink", os.readlink(path), path]  # noqa: PTH115 - a text
    return ["--ro-bind", path, path] if os.path.exists(path) else []  # noqa: PTH110 - a text


def _check_same(root: GrantedFolder) -> GrantedFolder:
    """See that a folder is the one that was granted, and nobody has put a link in its place.

    Raises:
        SandboxUnavailable: it is another one, or none.
    """
    if os.path.realpath(root.path) != root.path or not os.path.isdir(root.path):  # noqa: PTH112 - a text
        raise SandboxUnavailable(
            f"{root.path} is no more the folder that was granted: it is gone, or a link has taken its "
            "place; grant it again (isthmus config roots)",
            state="failed",
        )
    return root


def _resolve_folder(path: str, what: str) -> str:
    """A folder that an entry names.

    Raises:
        SandboxUnavailable: it is not there, or is everything.
    """
    real = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - a text
    if not os.path.exists(real) or real == "/":  # noqa: PTH110 - a text
        raise SandboxUnavailable(
            f"{what} names {path}, which is {'everything' if real == '/' else 'not there'}",
            state="failed",
        )
    return real


def _restrict_root() -> list[str]:
    """The options that keep a program of root's from the settings of the whole machine.

    What is the system's own, and only root may read, nobody else reads anyway.
    """
    if os.getuid() != 0:
        return []
    parts: list[str] = []
    for path in KERNEL_SETTINGS:
        parts += ["--ro-bind-try", path, path]
    for one in (one for pattern in PRIVATE_GLOBS for one in sorted(Path("/").glob(pattern[1:]))):
        parts += _hide_path(os.path.realpath(one))
    return parts


def _find_fixed_folders(paths: Sequence[str], binds: Mapping[str, bool]) -> dict[str, bool]:
    """The folders around places that are kept from a program, as far as they are within its own.

    Each is bound onto itself: what is mounted cannot be renamed, so that nothing can be put where
    such a place was, and none of them can be moved to where the host does not look for it.
    """
    found: dict[str, bool] = {}
    for path in paths:
        for one in map(str, Path(path).parents):
            if one not in binds and _is_within(one, [*binds]):
                found[one] = binds[max((b for b in binds if _is_within(one, [b])), key=len)]
    return found


def _hide_path(real: str) -> list[str]:
    """The options that hide a path, if it is there."""
    if os.path.isdir(real):  # noqa: PTH112 - a text
        return ["--tmpfs", real]
    return ["--ro-bind", "/dev/null", real] if os.path.exists(real) else []  # noqa: PTH110 - a text
