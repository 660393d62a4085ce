"""``isthmus run --workers N``: a supervisor, and N processes that serve the file."""

import os
import sys
from collections.abc import Coroutine
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.cli.commands.run import parse_address, split_server_path
from isthmus.cli.output import print_note
from isthmus.errors import UsageError
from isthmus.server.serve.supervisor import WorkerSupervisor, bind_sockets

if TYPE_CHECKING:
    from isthmus.cli.commands.run import HttpRunOptions, ListenOptions

WORKERS_DRAIN_S = 30.0  # where --drain is not given

STORE_NAME_LENGTH = 16


def supervise(
    file: str,
    place: "ListenOptions | None",
    count: int,
    options: "HttpRunOptions",
    *,
    reload: bool,
) -> Coroutine[Any, Any, None]:
    """Serve a file in several processes until SIGTERM or SIGINT.

    Args:
        file: ``FILE.py`` or ``FILE.py:OBJECT``.
        place: where to listen.
        count: how many processes.
        options: of each.
        reload: ``--reload`` was given.

    Raises:
        UsageError: that cannot be done.
        ConnectFailed: the address cannot be listened on.
    """
    if place is None or place.transport not in {"http", "websocket"}:
        raise UsageError(
            "--workers goes with --http or --websocket: stdio, Unix sockets and TCP "
            "sockets are served by one process"
        )
    if reload:
        raise UsageError(
            "--reload serves in one process: leave --workers out, or send SIGHUP to have new workers "
            "take over"
        )
    if sys.platform == "win32":
        raise UsageError("--workers needs a Unix system: start one process for each address")
    path, _ = split_server_path(file)
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    host, port = parse_address(place.text, place.transport)
    sockets = bind_sockets(host, port, count)
    port = sockets[0][0].getsockname()[1]
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    told = options._replace(drain=WORKERS_DRAIN_S if options.drain is None else options.drain)
    drain = (told.drain or 0.0) + (told.drain_lead or 0.0)
    worker = [sys.executable, "-m", "isthmus", "run", file, f"--{place.transport}", where]
    return WorkerSupervisor(
        [*worker, *told.words()],
        sockets,
        store=make_store_url(file, where) if options.store is None else None,
        drain=drain,
        report=print_note,
    ).run()


def make_store_url(file: str, where: str) -> str:
    """The store of a server that names none: an SQLite file of the user's, for this file and address.

    Raises:
        UsageError: there is no folder for it.
    """
    from isthmus.auth.client.store.keyring_store import NoHomeFolder, find_state_folder

    path, name = split_server_path(file)
    whole = f"{Path(path).resolve()}:{name} {where}"
    digest = sha256(whole.encode()).hexdigest()[:STORE_NAME_LENGTH]
    try:
        folder = find_state_folder(os.environ, sys.platform) / "servers"
    except NoHomeFolder:
        raise UsageError(
            "there is no home folder for the store of the workers: set HOME, or give --store URL"
        ) from None
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return f"sqlite:///{folder / f'{Path(path).stem}-{digest}.db'}"
