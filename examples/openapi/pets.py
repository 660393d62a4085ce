"""An HTTP API as an MCP server: pets.json describes it, and a stand-in for the API is started here.

Run it: python examples/openapi/pets.py. Without the stand-in, over stdio, it is one command:
SHOP_KEY=… isthmus run examples/openapi/pets.json --base-url https://pets.example --credential shopKey=SHOP_KEY
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from isthmus import Client, Server
from isthmus.openapi import Shape

DOCUMENT = Path(__file__).parent / "pets.json"
KEY = "key-of-the-shop"


class Shop(BaseHTTPRequestHandler):
    """The stand-in for the API."""

    pets: ClassVar[dict[int, dict[str, object]]] = {1: {"id": 1, "name": "Rex", "kind": "dog"}}

    def do_GET(self) -> None:
        """List the pets, or get one."""
        url = urlsplit(self.path)
        if url.path == "/pets":
            kinds = parse_qs(url.query).get("kind")
            self.answer(200, [p for p in self.pets.values() if not kinds or p["kind"] in kinds])
            return
        pet = self.pets.get(int(url.path.rpartition("/")[2]))
        self.answer(200 if pet else 404, pet or {"detail": "There is no such pet."})

    def do_POST(self) -> None:
        """Add a pet."""
        pet = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        pet["id"] = len(self.pets) + 1
        self.pets[pet["id"]] = pet
        self.answer(201, pet)

    def answer(self, status: int, value: object) -> None:
        """Answer with JSON, whoever has the key."""
        allowed = self.headers["X-Shop-Key"] == KEY
        body = json.dumps(value if allowed else {"detail": "The key is missing."}).encode()
        self.send_response(status if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


async def main() -> None:
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    url, credentials = f"http://127.0.0.1:{shop.server_port}", {"shopKey": KEY}
    server = Server.from_openapi(
        DOCUMENT,
        base_url=url,
        credentials=credentials,
        exclude="tag:admin",
        shape={"addPet": Shape(name="add_dog", hide={"kind": "dog"})},
    )
    async with Client(server) as client:
        for tool in await client.list_tools():
            print(tool.name, list(tool.input_schema["properties"]), "-", tool.description)
        print(await client.call_tool("add_dog", {"name": "Bello"}))
        print(await client.call_tool("listPets", {"kind": ["dog"]}))
        print((await client.call_tool("getPet", {"id": 9})).text)
    # as above 60 operations: tools that find the others, and call them
    large = Server.from_openapi(DOCUMENT, base_url=url, credentials=credentials, search=True)
    async with Client(large) as client:
        print([tool.name for tool in await client.list_tools()])
        print(await client.call_tool("search_tools", {"query": "one pet"}))
        print(await client.call_tool("call_tool", {"name": "getPet", "arguments": {"id": 1}}))
    shop.shutdown()
    shop.server_close()


if __name__ == "__main__":
    asyncio.run(main())
