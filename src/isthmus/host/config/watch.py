"""Watch of the configuration's files: a new configuration is used when it is whole, and not before."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from isthmus.host.config.files import list_files
from isthmus.host.config.load import TrustSource, load_config, resolve_paths
from isthmus.host.config.variables import SecretSource
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.errors import ConfigError

POLL_INTERVAL_MS = 1000  # the files are looked at even if nothing announced a change


async def watch_config(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    secrets: SecretSource | None = None,
    trusted: TrustSource | None = None,
    managed: "str | os.PathLike[str] | None" = None,
    since: HostConfig | None = None,
    report: Callable[[str], None] = lambda _sentence: None,
) -> AsyncIterator[HostConfig]:
    """Yield the configuration whenever it is another one than before.

    A file that is no configuration just now, as one that was saved half-way, changes nothing: the
    last one that was whole stays, and ``report`` is told why.

    Example::

        async for config in watch_config("mcp.json", since=config, report=print):
            await supervisor.reload(config)

    Args:
        paths: as :func:`load_config` has it, like those up to ``managed``.
        folder: the workspace.
        environ: where ``${NAME}`` is looked up.
        secrets: where ``${secret:…}`` is looked up.
        trusted: knows what of a workspace's files is trusted.
        managed: the folder of whoever looks after the machine.
        since: the one that is in use; the one that there is at the beginning by default.
        report: told of what keeps a change from being used, a sentence each.

    Raises:
        ConfigError: watchfiles is not installed.
    """
    where = list_watched_files(paths, folder, os.environ if environ is None else environ, managed)
    stamp = getattr(trusted, "stamp", None)
    if isinstance(stamp, Path):
        where.append(stamp)
    reader = _ConfigReader(
        lambda: load_config(
            paths, folder=folder, environ=environ, secrets=secrets, trusted=trusted, managed=managed
        ),
        report,
    )
    last = since or await asyncio.to_thread(reader.read)
    async for _ in watch_files(where):
        config = await asyncio.to_thread(reader.read)
        if config is not None and config != last:
            last = config
            yield config


class _ConfigReader:
    """Reads the configuration, and tells once of each thing that keeps it from that."""

    def __init__(self, load: Callable[[], HostConfig], report: Callable[[str], None]) -> None:
        self._load = load
        self._report = report
        self._complaint = ""

    def read(self) -> HostConfig | None:
        """Read the configuration; None where it cannot be read just now."""
        try:
            config = self._load()
        except ConfigError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                self._report(f"{error}; the configuration stays as it was")
            return None
        self._complaint = ""
        return config


async def watch_files(where: Sequence[Path]) -> AsyncIterator[None]:
    """Yield whenever one of several files has changed, and once at the beginning.

    Raises:
        ConfigError: watchfiles is not installed.
    """
    try:
        from watchfiles import awatch
    except ImportError:
        raise ConfigError(
            "to follow a file, watchfiles is needed: pip install 'isthmus[host]'"
        ) from None
    before = await asyncio.to_thread(read_stamps, where)
    yield
    while True:
        parents = await asyncio.to_thread(list_watched_folders, where)
        async for _ in awatch(
            *parents,
            recursive=False,
            rust_timeout=POLL_INTERVAL_MS,
            yield_on_timeout=True,
            debounce=50,
            step=20,
            ignore_permission_denied=True,
        ):
            now = await asyncio.to_thread(read_stamps, where)
            if now != before:
                before = now
                yield
            if await asyncio.to_thread(list_watched_folders, where) != parents:
                break


def list_watched_files(
    paths: "Sequence[str | os.PathLike[str]] | str | os.PathLike[str] | None",
    folder: "str | os.PathLike[str] | None",
    environ: Mapping[str, str],
    managed: "str | os.PathLike[str] | None",
) -> list[Path]:
    """List every file that is looked for."""
    named = resolve_paths(paths)
    place = Path(folder or ".").absolute()
    found = list_files(named, place, environ, None if managed is None else Path(managed))
    return [path for _, path in found]


def read_stamps(where: Sequence[Path]) -> list[tuple[int, ...] | None]:
    """Read the stamps that tell whether files have changed."""
    found: list[tuple[int, ...] | None] = []
    for path in where:
        try:
            facts = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))
    return found


def list_watched_folders(where: Sequence[Path]) -> list[str]:
    """List the folders in which a change may be one of these files, or of a link to one."""
    found = set()
    for path in where:
        for one in (path, path.resolve()):
            there = next((parent for parent in one.parents if parent.is_dir()), None)
            if there is not None:
                found.add(str(there))
    return sorted(found)
