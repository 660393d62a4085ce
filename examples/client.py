"""A client with a user and a model: ``python client.py``, or ``python client.py URL``."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from isthmus import Accepted, Client
from isthmus.types import CreateMessageParams, ElicitParams, LogMessageParams, ProgressParams

BOOKINGS = Path(__file__).with_name("bookings.py")


async def ask_user(question: ElicitParams) -> Accepted[dict[str, Any]]:
    """The user: sits in row 12, whatever the question says."""
    print(f"the server asks: {question.message}")
    return Accepted({"row": 12})


async def think(request: CreateMessageParams) -> str:
    """The model: of few words."""
    return f"{len(request.messages)} message, understood."


def show(progress: ProgressParams) -> None:
    """Progress, where it happens."""
    print(f"{progress.progress:g} of {progress.total:g}: {progress.message}")


def heard(message: LogMessageParams) -> None:
    """The server's log."""
    print(f"[{message.level}] {message.data}")


async def main(target: str) -> None:
    """List, call, read."""
    async with Client(target, elicit=ask_user, sample=think, on_log=heard) as client:
        print(f"{client.info.name} speaks {client.revision}")
        for tool in await client.list_tools():
            print(f"- {tool.name}: {tool.description}")
        booked = await client.call_tool("book", {"date": "2026-05-01"}, on_progress=show)
        print(booked.structured["code"])
        print((await client.call_tool("summarise", {"text": "Lorem ipsum."})).text)
        resource = await client.read_resource(f"booking://{booked.structured['code']}")
        print(resource.contents[0].text)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(BOOKINGS)))
