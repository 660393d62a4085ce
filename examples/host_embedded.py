"""A host inside a program: servers, a person who is asked, runs, and what is written down.

Run it: ``python examples/host_embedded.py``. It asks nobody: a function stands for the person.
"""

import asyncio

from isthmus import Server
from isthmus.host import Decision, Denied, Host, Interaction

notes = Server("notes")
kept: list[str] = []


@notes.tool
async def add(text: str) -> str:
    """Keep a note."""
    kept.append(text)
    return f"note {len(kept)}"


@notes.tool(read_only=True)
async def count() -> int:
    """How many notes there are."""
    return len(kept)


async def person(asked: Interaction) -> Decision:
    """Say yes to notes that are short, and make others shorter."""
    arguments = asked.attempt.arguments
    if "secret" in arguments["text"]:
        return Decision(verdict="deny", reason="no secrets in notes")
    return Decision(verdict="allow", edited={"text": arguments["text"][:20]})


async def main() -> None:
    """Call, be refused, and read what was written down."""
    host = Host(approver=person, policy="personal-read-only")
    host.add("notes", notes, trust="annotations")
    async with host:
        with host.run() as run:
            print((await host.call("notes__count", run=run)).text)  # a tool that only reads
            print((await host.call("notes__add", {"text": "buy tea"}, run=run)).text)
            try:
                await host.call("notes__add", {"text": "the secret is 42"}, run=run)
            except Denied as no:
                print("denied:", no.reason)
        for row in await host.view.audit_tail():
            if row.kind in {"decision", "outcome"}:
                print(row.kind, row.object, row.effect, row.error)
    print(kept)


if __name__ == "__main__":
    asyncio.run(main())
