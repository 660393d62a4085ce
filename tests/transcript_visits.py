"""A server whose tool needs a page to be visited, for transcripts."""

from isthmus import Server
from isthmus.errors import UrlRequired


def visits():
    """A server with one tool, which works at its second call."""
    server = Server("visits", version="1")
    called = []

    @server.tool
    def files() -> str:
        """List the user's files."""
        called.append(1)
        if len(called) == 1:
            raise UrlRequired(("https://files.example/connect", "Connect your files."))
        return "three files"

    return server
