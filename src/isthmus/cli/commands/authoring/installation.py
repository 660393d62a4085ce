"""Installation of a server into clients' files: checked, shown, written whole, and taken out again."""

import difflib
import json
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.cli.commands.authoring.install_check import check_entry
from isthmus.cli.commands.authoring.server_words import ServerWords, read_new_server
from isthmus.cli.commands.authoring.undo import UndoRecords, make_undo_record, undo_change
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import exit_for
from isthmus.cli.output import print_line, print_lines, print_note
from isthmus.core.redaction.forms import may_name_secret
from isthmus.core.redaction.texts import redact_text
from isthmus.errors import IsthmusError, UsageError, quote_text
from isthmus.host.config.clients import (
    CLIENTS,
    ClientEntry,
    NewServer,
    find_client_file,
    format_client_file,
    make_client_entry,
)
from isthmus.host.config.explain import mask_entry
from isthmus.host.config.layouts import get_part
from isthmus.host.config.variables import VARIABLE
from isthmus.host.config.write import ConfigFile
from isthmus.host.model.errors import ConfigError

__all__ = ["InstallOptions", "ServerWords", "run_install"]


class InstallOptions(Struct, frozen=True, kw_only=True):
    """Options of an installation.

    Attributes:
        clients: names of :data:`isthmus.host.config.clients.CLIENTS`.
        project: into the file of the folder, and not the user's own.
        print_only: print what is to be pasted.
        dry_run: show what would change.
        remove: take the server out.
        force: replace an entry that is another one.
        follow_links: write where the file is a link to.
        check: only start it (True), not at all (False), or before it is written (None).
    """

    clients: tuple[str, ...]
    project: bool = False
    print_only: bool = False
    dry_run: bool = False
    remove: bool = False
    force: bool = False
    follow_links: bool = False
    check: bool | None = None


class ClientPlace(Struct, frozen=True, kw_only=True):
    """One client's file, and the server that goes into it.

    Attributes:
        client: its name.
        path: the file.
        base: the folder that links may not lead out of.
        server: the server.
        keys: the way to its entry.
    """

    client: str
    path: Path
    base: Path
    server: NewServer
    keys: tuple[str, ...]

    @property
    def title(self) -> str:
        """The client, as people call it."""
        return CLIENTS[self.client].title


async def run_install(words: ServerWords, options: InstallOptions) -> Exit:
    """Install a server into the clients that a command line names, or take it out.

    What cannot be for one of them is told before anything is written; a file that cannot be changed keeps none
    of the other clients from theirs.

    Raises:
        UsageError, ConfigError: it cannot be; nothing was written into this client's file.
    """
    _check_clients(options, os.environ)
    server = _read_server(words, options)
    places = [_find_place(client, server, options) for client in dict.fromkeys(options.clients)]
    if options.remove:
        return await _do_each(places, lambda place: _remove(place, words, options))
    entries = {place.client: make_client_entry(place.client, server) for place in places}
    if options.print_only:
        for client, entry in entries.items():
            print_lines(format_client_file(client, server.name, entry).rstrip("\n"))
        return Exit.OK
    return await _do_each(places, lambda place: _install(place, entries[place.client], options))


async def _do_each(
    places: Sequence[ClientPlace], work: Callable[[ClientPlace], Awaitable[None]]
) -> Exit:
    """Do the work for each client, and say at the end where it was done if it was not done everywhere.

    Returns:
        the exit code of the first failure.

    Raises:
        IsthmusError: the failure, where there is one client only.
    """
    code, done = Exit.OK, list[str]()
    try:
        for place in places:
            try:
                await work(place)
            except IsthmusError as error:
                if len(places) == 1:
                    raise
                print_note(f"isthmus: {place.title}: {quote_text(error)}")
                code = code or exit_for(error)
            else:
                done.append(place.title)
    finally:  # also where it was interrupted
        missing = [place.title for place in places if place.title not in done]
        if missing and len(places) > 1:
            print_note(
                f"Done for {', '.join(done) or 'no client'}; not done for {', '.join(missing)}."
            )
    return code


def _read_server(words: ServerWords, options: InstallOptions) -> NewServer:
    """The server; to take one out its name is enough."""
    if options.remove and words.name and not words.is_named():
        return NewServer(name=words.name)
    return read_new_server(words, os.environ)


def _check_clients(options: InstallOptions, environ: Mapping[str, str]) -> None:
    """Check that clients are named, and options do not contradict each other.

    Raises:
        UsageError: none is, or they do.
    """
    known = ", ".join(CLIENTS)
    if not options.clients:
        there = [name for name in CLIENTS if find_client_file(name, environ, None).is_file()]
        found = f"; here there is {', '.join(there)}" if there else ""
        raise UsageError(f"--into says which client: {known}{found}")
    for client in options.clients:
        if client not in CLIENTS:
            near = difflib.get_close_matches(client, CLIENTS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"--into {client}: there are {known}{hint}")
    said = [options.print_only, options.dry_run, options.check is True]
    if sum(said) > 1 or (options.remove and (options.print_only or options.check)):
        raise UsageError(
            "choose one of --print, --dry-run and --check; --remove goes with --dry-run only"
        )


def _find_place(client: str, server: NewServer, options: InstallOptions) -> ClientPlace:
    folder = Path.cwd() if options.project else None
    path = find_client_file(client, os.environ, folder)
    home = Path(os.environ.get("HOME") or Path.home())
    base = folder or home
    keys = (*CLIENTS[client].section, server.name)
    inside = path.is_relative_to(base)
    return ClientPlace(
        client=client, path=path, base=base if inside else path.parent, server=server, keys=keys
    )


async def _install(place: ClientPlace, entry: ClientEntry, options: InstallOptions) -> None:
    """Install a server into one client's file.

    Raises:
        ConfigError: the file cannot be changed; the message says why, and what to paste.
        UsageError: another server has its name.
        IsthmusError: the server does not start.
    """
    try:
        file, is_there = _edit_file(place, entry, options)
    except ConfigError as error:
        pasted = format_client_file(place.client, place.server.name, entry)
        raise ConfigError(
            f"{error}\nNothing was written. To paste it yourself:\n{pasted}"
        ) from None
    if options.dry_run:
        _print_changes(file)
        return
    if options.check is not False:
        await check_entry(place.client, place.server, file, Path.cwd() if options.project else None)
    if options.check:
        return
    if is_there:
        print_line(f"{place.title}: {place.server.name} stands in {place.path} already")
        return
    with _offering_to_paste(place, entry):
        _save_file(place, file)
    print_line(f"{place.title}: {place.server.name} is in {place.path}")
    for note in _list_notes(place, entry, options):
        print_note(f"note: {note}")
    print_note(f"Next: {CLIENTS[place.client].reload}.")


@contextmanager
def _offering_to_paste(place: ClientPlace, entry: ClientEntry) -> Iterator[None]:
    """Say what there is to paste, where a file cannot be changed."""
    try:
        yield
    except ConfigError as error:
        pasted = format_client_file(place.client, place.server.name, entry)
        raise ConfigError(
            f"{error}\nNothing was written. To paste it yourself:\n{pasted}"
        ) from None


def _edit_file(
    place: ClientPlace, entry: ClientEntry, options: InstallOptions
) -> tuple[ConfigFile, bool]:
    """Put an entry into a client's file in memory; whether it stands there already."""
    check_client_file(place.path, place.base, follow_links=options.follow_links)
    file = ConfigFile(place.path)
    found = get_part(file.document.value, place.keys)
    if found == entry.value:
        return file, True
    if found is not None and options.check:
        return file, True  # what stands there is what the client starts
    if found is not None and not options.force:
        raise UsageError(_describe_difference(place, found, entry.value))
    file.set(place.keys, entry.value)
    known = {
        one.get("id") for one in (file.document.value.get("inputs") or ()) if isinstance(one, dict)
    }
    for one in entry.inputs:
        if one["id"] not in known:
            file.add_item(("inputs",), one)
    return file, False


def check_client_file(path: Path, base: Path, *, follow_links: bool) -> None:
    """Check that a client's file is the user's own to write, and where it seems to be.

    Args:
        path: the file, which need not be there.
        base: the folder that it is in; links on the way from there to the file are not followed.
        follow_links: unless this says so.

    Raises:
        ConfigError: it is not; the message says why.
    """
    try:
        real = path.resolve()
        expected = base.resolve() / path.relative_to(base)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path} cannot be reached: {error}") from None
    if real != expected and not follow_links:
        raise ConfigError(f"{path} is a link to {real}: --follow-links writes there")
    try:
        found = real.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is no file")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise ConfigError(f"{path} belongs to another user (number {found.st_uid})")
    if not found.st_mode & stat.S_IWUSR or not os.access(real, os.W_OK):
        raise ConfigError(f"{path} is write-protected")


def _save_file(place: ClientPlace, file: ConfigFile) -> None:
    """Save a file, and keep how to undo that."""
    before = None if file.is_new else file.original
    record = make_undo_record(place.path, before, file.text.encode())
    file.save()
    if record is not None:
        UndoRecords(os.environ).add(place.server.name, record)


async def _remove(place: ClientPlace, words: ServerWords, options: InstallOptions) -> None:
    """Take a server out of one client's file.

    Raises:
        ConfigError: the file cannot be changed.
        UsageError: the entry is another server's.
    """
    check_client_file(place.path, place.base, follow_links=options.follow_links)
    file = ConfigFile(place.path)
    found = get_part(file.document.value, place.keys)
    if found is None:
        print_line(f"{place.title}: there is no {place.server.name} in {place.path}")
        return
    if words.is_named() and not options.force and not _is_same_server(found, place.server):
        raise UsageError(
            f"{place.path}: {place.server.name} is another server there; --force removes it all the same"
        )
    record = UndoRecords(os.environ).find(place.path, place.server.name, file.original)
    exact = undo_change(record, file.original) if record else None
    if record is not None and exact is not None and record.get("made"):
        if options.dry_run:
            print_line(f"{place.path} would be removed: install made it")
            return
        place.path.resolve().unlink()
    else:
        _cut_entry(place, file, found, exact)
        if options.dry_run:
            _print_changes(file)
            return
        file.save()
    print_line(f"{place.title}: {place.server.name} is no longer in {place.path}")


def _cut_entry(place: ClientPlace, file: ConfigFile, found: Any, exact: bytes | None) -> None:
    """Take an entry and its inputs out of a file in memory; exactly as it was, where that is known."""
    if exact is not None:
        file.restore(exact)
        return
    file.remove(place.keys)
    if not CLIENTS[place.client].has_inputs:
        return
    ours = {one[6:] for one in VARIABLE.findall(json.dumps(found)) if one.startswith("input:")}
    for index, one in reversed([*enumerate(file.document.value.get("inputs") or ())]):
        used = isinstance(one, dict) and f"${{input:{one.get('id')}}}" in file.text
        if isinstance(one, dict) and one.get("id") in ours and not used:
            file.remove_item(("inputs",), index)


def _is_same_server(found: Any, server: NewServer) -> bool:
    """Whether an entry starts the same file or program, or has the same URL."""
    last = server.url or server.command[-1]
    texts = found.values() if isinstance(found, dict) else ()
    words = [one for text in texts for one in (text if isinstance(text, list) else [text])]
    return last in words


def _describe_difference(place: ClientPlace, found: Any, wanted: dict[str, Any]) -> str:
    """The sentence that refuses to replace an entry, with what differs."""
    shown = [
        json.dumps(mask_entry(one) if isinstance(one, dict) else one, indent=2, ensure_ascii=False)
        for one in (found, wanted)
    ]
    lines = difflib.unified_diff(
        shown[0].splitlines(), shown[1].splitlines(), "there", "new", lineterm="", n=9
    )
    return (
        f"{place.path} has another server {place.server.name!r} already; --force replaces it, --name "
        f"NAME puts this one beside it:\n" + "\n".join(lines)
    )


def _print_changes(file: ConfigFile) -> None:
    """Print what would change, without secrets of what stands around it."""
    before = file.original.decode().splitlines()
    after = file.text.splitlines()
    if before == after:
        print_line(f"{file.path} stays as it is")
    for line in difflib.unified_diff(before, after, str(file.path), "as it would be", lineterm=""):
        print_line(line if line.startswith("+") else redact_text(line))


def _list_notes(place: ClientPlace, entry: ClientEntry, options: InstallOptions) -> list[str]:
    """Notes for the user about the entry that was written."""
    server = place.server
    clear = [name for name in server.env if may_name_secret(name)]
    clear += [name for name in server.headers if may_name_secret(name)]
    notes = []
    if clear:
        better = (
            f"--env {clear[0]} without a value has {place.title} ask for it"
            if CLIENTS[place.client].has_inputs
            else f"--env {clear[0]} without a value has {place.title} take its own"
            if CLIENTS[place.client].variable and not server.url
            else "keep the file to yourself"
        )
        notes.append(f"{', '.join(clear)} stands in the file in clear: {better}")
    if options.project and server.command:
        notes.append(f"{place.path.name} has paths of this machine: others need their own")
    if server.wanted and not entry.inputs:
        notes.append(f"{', '.join(server.wanted)} has to be set where {place.title} is started")
    if sys.platform == "win32" and server.command and server.command[0].endswith(".cmd"):
        notes.append("programs whose name ends in .cmd are started by a shell on Windows")
    return notes
