"""Undo records: what ``isthmus install`` put into a file, so that ``--remove`` restores it byte for byte.

A record has no text of the file: it says where something was put in, how long it is, and what the
file's digest was with it. Where the file has changed since, the entry alone is taken out.
"""

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.host.config.files import digest_bytes
from isthmus.store.files import replace_file

MAX_RECORDS = 200
BLANK_CHARACTERS = " \t\r\n{}"  # what may have to be put back: nothing that anybody wrote


def make_undo_record(path: Path, before: bytes | None, after: bytes) -> dict[str, Any] | None:
    """Make the record of a change; None where it took more than blanks away.

    Args:
        path: the file.
        before: its bytes; None where there was none.
        after: its bytes with the change.
    """
    old = before or b""
    shorter = min(len(old), len(after))
    head = next((i for i in range(shorter) if old[i] != after[i]), shorter)
    tail = 0
    while tail < shorter - head and old[-1 - tail] == after[-1 - tail]:
        tail += 1
    gone, come = old[head : len(old) - tail], after[head : len(after) - tail]
    cuts = _find_insertions(gone, come)
    blank = ""
    if cuts is None:
        blank = gone.decode("utf-8", errors="replace")
        if blank.strip(BLANK_CHARACTERS):
            return None
        cuts = [(0, len(come))]
    return {
        "path": str(path),
        "before": digest_bytes(old),
        "digest": digest_bytes(after),
        "cuts": [(head + offset, length) for offset, length in cuts],
        "blank": blank,
        "made": before is None,
    }


def _find_insertions(old: bytes, new: bytes) -> list[tuple[int, int]] | None:
    """What has to be cut out of new bytes to have the old ones; None where something is missing."""
    cuts: list[tuple[int, int]] = []
    at = 0
    for offset, byte in enumerate(new):
        if at < len(old) and byte == old[at]:
            at += 1
        elif cuts and sum(cuts[-1]) == offset:
            cuts[-1] = (cuts[-1][0], cuts[-1][1] + 1)
        else:
            cuts.append((offset, 1))
    return cuts if at == len(old) else None


def undo_change(record: Mapping[str, Any], now: bytes) -> bytes | None:
    """The bytes of a file as they were before a change; None where the record does not fit."""
    try:
        for offset, length in reversed(record["cuts"]):
            now = now[:offset] + str(record["blank"]).encode() + now[offset + length :]
    except (KeyError, TypeError, ValueError):
        return None
    return now if digest_bytes(now) == record.get("before") else None


class UndoRecords:
    """The records of a user.

    Args:
        environ: the environment, which says where their state is.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        from isthmus.auth.client.store.keyring_store import find_state_folder

        self._path = find_state_folder(environ, sys.platform) / "installs.json"

    def find(self, path: Path, name: str, now: bytes) -> dict[str, Any] | None:
        """Find the record of what was put into a file last, if nothing has changed since."""
        digest = digest_bytes(now)
        return next(
            (
                one
                for one in reversed(self._read())
                if (one.get("path"), one.get("name"), one.get("digest"))
                == (str(path), name, digest)
            ),
            None,
        )

    def add(self, name: str, record: dict[str, Any]) -> None:
        """Keep a record. Where it cannot be kept, ``--remove`` takes the entry out and no more."""
        rows = [*self._read(), {"name": name, **record}][-MAX_RECORDS:]
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(rows).encode())

    def _read(self) -> list[dict[str, Any]]:
        try:
            rows = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return []
        return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []
