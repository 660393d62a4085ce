"""Many tools and long texts: a model searches, is given what fits, and reads on where a result was cut.

Run it: ``python examples/host_reading.py``. A script plays the model, a function the person.
"""

import asyncio
from typing import Any

from isthmus import Server
from isthmus.host import Conversation, Host, HostConfig, HostOptions, Interaction, ServerLimits
from isthmus.host.providers import Completion, Scripted
from isthmus.host.turns import Text, ToolAsked
from isthmus.types import ToolUseContent

library = Server("library", instructions="Titles are in lower case.")


@library.tool(read_only=True)
def read_book(title: str) -> str:
    """The whole text of a book."""
    return " ".join(f"{title} {page}" for page in range(400))


@library.resource("books://catalogue")
def catalogue() -> str:
    """Every title."""
    return "boats, gardens, whales"


def reads_on(completion: Completion) -> ToolUseContent:
    """The model follows the link with which the last result ends."""
    result = completion.messages[-1].content[0]  # type: ignore[index]  # one result
    return ToolUseContent(id="3", name="read_rest", input={"uri": result.content[-1].uri})  # type: ignore[union-attr]  # as above


script: list[Any] = [
    ToolUseContent(id="1", name="search_tools", input={"query": "get a text"}),
    ToolUseContent(
        id="2",
        name="call_tool",
        input={"name": "library__read_book", "arguments": {"title": "boats"}},
    ),
    reads_on,
    "Boats are on every page.\n",
]


async def person(asked: Interaction) -> bool:
    """Say yes, and show what it was about."""
    print("asked:", asked.attempt.action, asked.attempt.object)
    return True


async def main() -> None:
    """Build a context, and have a conversation with it."""
    options = HostOptions(search={"mode": "always"})
    host = Host(HostConfig(options=options), approver=person, policy="personal-read-only")
    host.add("library", library, trust="annotations", limits=ServerLimits(result_bytes=2_000))
    async with host:
        talk = Conversation(host, Scripted(script), "pebble")
        built = await host.context.build(
            "which books are there",
            budget_tokens=500,
            to=talk.voice,
            run=talk.run,
            resources=True,
        )
        for one in built.manifest.placed:
            print(f"{one.state}: {one.server} {one.uri}, {one.reason}")
        talk.enclose(built.messages)
        async for event in talk.say("What is in the book about boats?"):
            if isinstance(event, ToolAsked):
                print("the model wants", event.tool or event.name)
            elif isinstance(event, Text):
                print(event.text, end="")


if __name__ == "__main__":
    asyncio.run(main())
