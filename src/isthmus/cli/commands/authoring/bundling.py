"""Packing of a server into an MCPB file: collected, started as packed, described and written."""

import hashlib
import io
import json
import os
import re
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.cli.commands.authoring.bundle_files import collect_files, list_imports
from isthmus.cli.commands.authoring.bundle_manifest import (
    ENTRY_POINT,
    RELEASE,
    BundleFacts,
    list_packages,
    make_launcher,
    make_manifest,
    make_project_file,
    make_server_json,
)
from isthmus.cli.commands.authoring.server_words import (
    CONTROL_CHARACTER,
    GENERIC_STEMS,
    VARIABLE_NAME,
)
from isthmus.cli.commands.run import split_server_path
from isthmus.cli.exit_codes import Exit
from isthmus.cli.output import format_size, print_line, print_note
from isthmus.cli.targets import CliTarget
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient
from isthmus.errors import IsthmusError, UsageError
from isthmus.store.files import replace_file
from isthmus.transports.command import Command
from isthmus.wire import UNSET

FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip knows: equal files make an equal bundle
FILE_MODE = 0o100644 << 16
UNIX_SYSTEM = 3
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
START_TIMEOUT_S = 60.0
LARGE_BUNDLE_BYTES = 20 * 1024 * 1024


class BundleOptions(Struct, frozen=True, kw_only=True):
    """Options of a bundle, as a command line gives them."""

    file: str
    output: str | None = None
    author: str | None = None
    release: str | None = None
    env: Sequence[str] = ()
    packages: Sequence[str] = ()
    include: Sequence[str] = ()
    icon: str | None = None
    registry_name: str | None = None
    at: str | None = None
    dry_run: bool = False
    check: bool = True


class BundleSource(Struct, kw_only=True):
    """A server's files, and what its project says.

    Attributes:
        root: the folder that becomes the bundle.
        file: the server's, below the root.
        made: the object in it that is served; empty for the only one.
        names: all files, below the root.
        project: the table ``project`` of its ``pyproject.toml``; empty where it has none.
        has_project: whether it has that file.
    """

    root: Path
    file: str
    made: str
    names: list[str]
    project: Mapping[str, Any]
    has_project: bool


class ServerReport(Struct, kw_only=True):
    """What a server says of itself, once it is started."""

    name: str = ""
    title: str = ""
    release: str = ""
    description: str = ""
    tools: list[dict[str, str]] | None = None
    has_prompts: bool = False


async def run_bundle(options: BundleOptions) -> Exit:
    """Pack a server, and print what came of it.

    Raises:
        UsageError: it cannot be packed; nothing is written.
        IsthmusError: what is packed does not start.
    """
    source = read_source(options)
    if options.dry_run:
        for name in source.names:
            print_line(name)
        return Exit.OK
    env = _read_env(options.env)
    _find_author(options, source.project)  # said before anything is started
    icon = _read_icon(source, options)
    contents = {name: (source.root / name).read_bytes() for name in source.names}
    contents |= {"icon.png": icon} if icon else {}
    contents[ENTRY_POINT] = make_launcher(source.file, source.made).encode()
    report = await start_packed(contents, source, env) if options.check else ServerReport()
    facts = _gather_facts(source, options, env, report)
    if not source.has_project:
        contents["pyproject.toml"] = make_project_file(
            facts, _list_needed(source, options)
        ).encode()
    manifest = json.dumps(make_manifest(facts), indent=2, ensure_ascii=False)
    data = pack_files({"manifest.json": f"{manifest}\n".encode(), **contents})
    target = Path(options.output or f"{facts.name}.mcpb")
    described = _describe_for_registry(options, facts, data)
    _write_file(target, data)
    print_line(
        f"{target}: {format_size(len(data))}, {len(contents) + 1} files, {_count_tools(facts)}"
    )
    if described is not None:
        _write_file(target.with_name("server.json"), described)
        print_line(f"{target.with_name('server.json')}: for mcp-publisher")
    if len(data) > LARGE_BUNDLE_BYTES:
        print_note("note: this is large for a bundle: isthmus bundle --dry-run lists its files")
    return Exit.OK


def read_source(options: BundleOptions) -> BundleSource:
    """Read which files a bundle has.

    Raises:
        UsageError: there is no such server, or a file that may not be in a bundle.
    """
    text, made = split_server_path(options.file)
    file = Path(os.path.abspath(text))  # noqa: PTH100 - links stay links
    if not file.is_file() or file.suffix != ".py":
        raise UsageError(f"{text} is no Python file")
    root = _find_root(file)
    has_project = (root / "pyproject.toml").is_file()
    project = _read_project(root / "pyproject.toml") if has_project else {}
    names = collect_files(root, file, options.include, whole=has_project)
    return BundleSource(
        root=root,
        file=file.relative_to(root).as_posix(),
        made=made,
        names=names,
        project=project,
        has_project=has_project,
    )


def _find_root(file: Path) -> Path:
    """The folder of the project around a file, or the file's own.

    Raises:
        UsageError: the project is somebody's whole home.
    """
    home = Path(os.environ.get("HOME") or Path.home())
    for folder in (file.parent, *file.parent.parents):
        if folder in {home, Path(folder.anchor)}:
            break
        if (folder / "pyproject.toml").is_file():
            return folder
    return file.parent


def _read_project(path: Path) -> Mapping[str, Any]:
    try:
        project = tomllib.loads(path.read_text("utf-8")).get("project")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(project, dict):
        raise UsageError(f"{path} has no table [project], which uv needs to run it")
    dependencies = project.get("dependencies", [])
    if not any(re.match(r"isthmus\b", str(one)) for one in dependencies):
        raise UsageError(
            f'{path} does not name isthmus: write dependencies = ["isthmus"], or uv starts the server '
            "without it"
        )
    return project


def _read_env(words: Sequence[str]) -> dict[str, str | None]:
    """The variables that a user is asked for, with their defaults.

    Raises:
        UsageError: one has no name, or two differ by case only.
    """
    found: dict[str, str | None] = {}
    for word in words:
        name, equals, default = word.partition("=")
        if VARIABLE_NAME.fullmatch(name) is None or CONTROL_CHARACTER.search(default):
            raise UsageError(f"--env {name!r}: write NAME, or NAME=DEFAULT")
        if name.lower() in map(str.lower, found):
            raise UsageError(f"--env {name} is given twice")
        found[name] = default if equals else None
    return found


def _read_icon(source: BundleSource, options: BundleOptions) -> bytes:
    """The bytes of the icon; none where there is none.

    Raises:
        UsageError: it is no PNG.
    """
    path = Path(options.icon) if options.icon else source.root / "icon.png"
    if not options.icon and not path.is_file():
        return b""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--icon {path}: {error.strerror}") from None
    if not data.startswith(PNG_SIGNATURE):
        raise UsageError(f"{path} is no PNG, which a bundle's icon has to be")
    return data


def _list_needed(source: BundleSource, options: BundleOptions) -> list[str]:
    """The packages that a server without a project needs."""
    files = [source.root / name for name in source.names if name.endswith(".py")]
    imports = {name for file in files for name in list_imports(file)}
    local = {name.partition("/")[0].removesuffix(".py") for name in source.names}
    return list_packages(imports, local, options.packages)


async def start_packed(
    contents: Mapping[str, bytes], source: BundleSource, env: Mapping[str, str | None]
) -> ServerReport:
    """Start what is packed from a folder of its own, and ask it what it is.

    Raises:
        IsthmusError: it does not start: a file is missing, for example.
    """
    with tempfile.TemporaryDirectory(prefix="isthmus-bundle-") as folder:
        unpack_files(contents, Path(folder))
        given = {name: os.environ.get(name, default or "") for name, default in env.items()}
        command = Command(sys.executable, str(Path(folder, ENTRY_POINT)), env=given, cwd=folder)
        terminal = TerminalClient(
            CliTarget(source.file, command), ConnectOptions(timeout=START_TIMEOUT_S)
        )
        try:
            return await _ask_server(terminal)
        except IsthmusError:
            terminal.last_words()
            missing = [name for name in env if not given[name]]
            hint = f"; set {', '.join(missing)} here, or give --no-check" if missing else ""
            print_note(
                f"isthmus: {source.file} does not start from the bundle's {len(contents)} files: "
                f"--include adds one, --dry-run lists them{hint}"
            )
            raise


def unpack_files(contents: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a bundle into a folder."""
    for name, data in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


async def _ask_server(terminal: TerminalClient) -> ServerReport:
    async with terminal.client() as client:
        can, info = client.capabilities, client.info
        tools = await client.list_tools() if can.tools is not UNSET else []
        return ServerReport(
            name=info.name,
            title=info.title or "",
            release=info.version,
            description=info.description or "",
            tools=[
                {"name": one.name, **({"description": one.description} if one.description else {})}
                for one in tools
            ],
            has_prompts=can.prompts is not UNSET and bool(await client.list_prompts()),
        )


def _gather_facts(
    source: BundleSource,
    options: BundleOptions,
    env: Mapping[str, str | None],
    report: ServerReport,
) -> BundleFacts:
    """Gather what a bundle says: the command line first, then the project, then the server.

    Raises:
        UsageError: nobody says who made it, or the version is none.
    """
    project = source.project
    path = Path(source.file)
    stem = source.root.name if path.stem in GENERIC_STEMS else path.stem
    name = str(project.get("name") or report.name or stem)
    release = options.release or str(project.get("version") or report.release or "") or "0.1.0"
    release = f"{release}.0" if re.fullmatch(r"\d+\.\d+", release) else release
    if RELEASE.fullmatch(release) is None:
        raise UsageError(f"{release!r} is no version of a bundle: give --release 1.2.3")
    title = report.title or report.name or name
    return BundleFacts(
        name=re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server",
        title=title,
        release=release,
        description=str(
            project.get("description") or report.description or f"{title}, an MCP server"
        ),
        author=_find_author(options, project),
        env=env,
        tools=report.tools,
        has_prompts=report.has_prompts,
        icon="icon.png" if _read_icon(source, options) else "",
        project=project,
        requires_python=str(project.get("requires-python") or ">=3.11"),
    )


def _find_author(options: BundleOptions, project: Mapping[str, Any]) -> dict[str, str]:
    """The author of a bundle.

    Raises:
        UsageError: nobody says.
    """
    if options.author:
        return {"name": options.author}
    authors = project.get("authors")
    first = authors[0] if isinstance(authors, list) and authors else {}
    if not isinstance(first, dict) or not first.get("name"):
        raise UsageError(
            "a bundle needs an author: give --author NAME, or authors in pyproject.toml"
        )
    return {key: str(first[key]) for key in ("name", "email") if first.get(key)}


def _count_tools(facts: BundleFacts) -> str:
    if facts.tools is None:
        return "not started"
    return f"{len(facts.tools)} tool{'' if len(facts.tools) == 1 else 's'}"


def _describe_for_registry(options: BundleOptions, facts: BundleFacts, data: bytes) -> bytes | None:
    """The bytes of ``server.json``; None where none is wanted."""
    if options.registry_name is None and options.at is None:
        return None
    digest = hashlib.sha256(data).hexdigest()
    found = make_server_json(facts, options.registry_name or "", options.at or "", digest)
    return f"{json.dumps(found, indent=2, ensure_ascii=False)}\n".encode()


def pack_files(contents: Mapping[str, bytes]) -> bytes:
    """Pack files into a zip that depends on nothing but them: fixed order, times and modes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(contents, key=lambda one: (one != "manifest.json", one)):
            info = zipfile.ZipInfo(name, FIXED_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = UNIX_SYSTEM
            info.external_attr = FILE_MODE
            archive.writestr(info, contents[name])
    return packed.getvalue()


def _write_file(path: Path, data: bytes) -> None:
    """Write a file for everybody to read, whole or not at all.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        is_new = not path.exists()
        replace_file(path, data, as_open=True)
        if is_new:
            path.chmod(0o644)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
