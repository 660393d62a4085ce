"""What a host writes down: before a call, after it, and whether anybody changed it since.

Run it: ``python examples/host_audited.py``. The log is in a folder that is removed at the end.
"""

import asyncio
import sqlite3
import tempfile
from pathlib import Path

from isthmus import Server
from isthmus.host import Decision, Host, Interaction

notes = Server("notes")


@notes.tool
async def add(text: str, api_key: str) -> str:
    """Keep a note, elsewhere."""
    return f"kept {len(text)} characters with a key of {len(api_key)}"


async def person(_asked: Interaction) -> Decision:
    """Say yes to everything: this is an example."""
    return Decision(verdict="allow", by="ada")


async def main(folder: Path) -> None:
    """Call once, look at the log, meddle with it, and look again."""
    host = Host(approver=person, state=folder)
    host.add("notes", notes)
    async with host:
        arguments = {"text": "the password: hunter2", "api_key": "sk-live-0123456789"}
        print((await host.call("notes__add", arguments)).text)
        for line in await host.audit.tail():
            print(line.seq, line.kind, line.effect, line.arguments)
        print("good:", (await host.audit.verify()).good)

        with sqlite3.connect(folder / "host.db") as db:  # somebody who has the file
            db.execute("DROP TRIGGER event_stays_as_it_is")
            db.execute("UPDATE event SET effect = 'deny' WHERE seq = 2")
        db.close()
        for fault in (await host.audit.verify()).faults:
            print("fault:", fault.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
