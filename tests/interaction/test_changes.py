"""Changes on a server as its clients hear of them, over every transport and revision."""

from isthmus import Server
from isthmus.client.subscriptions import Change
from isthmus.testing import every_revision, every_transport

pytestmark = [every_transport(), every_revision()]


def board():
    """A server with a resource that changes and a tool that comes."""
    server = Server("board", version="1")

    @server.resource("board://notes")
    def notes() -> str:
        """The notes."""
        return "none"

    @server.tool
    def write() -> str:
        """Change the notes, and the list of tools."""
        server.notify_resource_updated("board://notes")
        server.add_tool(lambda: "read", name="read", description="Read.")
        return "written"

    return server


async def test_who_listens_hears_of_lists_and_resources(joined):
    """The same stream of changes, however they travel (spec: subscriptions; resources)."""
    async with (
        joined(board()) as client,
        client.listen(tools=True, uris=["board://notes"]) as changes,
    ):
        await client.call_tool("write")
        heard = {await anext(aiter(changes)), await anext(aiter(changes))}

    assert {Change("tools"), Change("resource", "board://notes")} == heard


async def test_who_does_not_ask_hears_nothing_of_resources(joined):
    """Nothing is told that was not asked for (spec: subscriptions; resources)."""
    async with joined(board()) as client, client.listen(tools=True) as changes:
        await client.call_tool("write")

        assert Change("tools") == await anext(aiter(changes))
