"""OpenAPI documents as targets of the command line."""

import asyncio
import json
import os
import re
import sys
from http.server import ThreadingHTTPServer
from threading import Thread

import pytest

from isthmus.cli.commands.run import load_module
from isthmus.cli.openapi_target import ApiRunOptions, fetch_document, load_document
from isthmus.cli.targets import read_target
from isthmus.client.client import Client
from isthmus.errors import UsageError
from support.docs.blocks import EXAMPLES, run_command
from support.openapi.stand_in_api import listen

PETS = EXAMPLES / "openapi" / "pets.json"


async def test_the_example_serves_its_stand_in(capsys):
    """Ours: what the page of OpenAPI points at runs."""
    await load_module(EXAMPLES / "openapi" / "pets.py").main()
    out = capsys.readouterr().out

    assert "add_dog ['name'] - Add a pet." in out
    assert '{"name":"Bello","kind":"dog","id":2}' in out
    assert "HTTP 404: There is no such pet." in out


async def test_a_document_file_is_a_target():
    """Ours: list, inspect and call take it as they take a Python file; all its tools are listed."""
    environ = {"ISTHMUS_BASE_URL": "http://127.0.0.1:9"}
    target = read_target("pets.json", (), PETS.parent, environ)
    async with Client(target.where) as client:
        names = [tool.name for tool in await client.list_tools()]

    assert ["listPets", "addPet", "getPet", "removePet"] == names


def test_another_json_file_is_no_target(tmp_path):
    """Ours: a configuration is not served."""
    (tmp_path / "x.json").write_text('{"mcpServers": {}}')

    with pytest.raises(UsageError, match="no OpenAPI document"):
        read_target("x.json", (), tmp_path, {})


def test_credentials_come_from_the_environment():
    """Ours: everybody who looks at processes reads command lines."""
    options = ApiRunOptions.of(
        credential=["shopKey=SHOP_KEY"], base_url="https://x.example", search="never"
    )

    assert {
        "base_url": "https://x.example",
        "lenient": False,
        "search": False,
        "credentials": {"shopKey": "abcdef"},
    } == options.arguments({"SHOP_KEY": "abcdef"})
    with pytest.raises(UsageError, match="SHOP_KEY is not set"):
        options.arguments({})
    with pytest.raises(UsageError, match="SCHEME=VARIABLE"):
        ApiRunOptions.of(credential=["abc"]).arguments({})


def test_a_url_is_fetched_from_its_own_host(tmp_path):
    """Ours: its relative servers are meant from there, and a redirect is not followed."""
    from http.server import BaseHTTPRequestHandler

    document = json.loads(PETS.read_text()) | {"servers": [{"url": "/v1"}]}

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(document).encode()
            self.send_response(200 if self.path == "/openapi.json" else 302)
            self.send_header("Location", "/openapi.json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        assert "Pets" == load_document(f"{url}/openapi.json", {}).info.name
        with pytest.raises(UsageError, match="HTTP status 302"):
            fetch_document(f"{url}/moved")
    finally:
        server.shutdown()
        server.server_close()


def test_options_of_documents_are_refused_for_python_files():
    """Ours: an option that does nothing is a mistake."""
    done = run_command("isthmus run x.py --base-url https://x")

    assert "--base-url goes with an OpenAPI document" in done


def test_inspect_says_which_operations_were_left_out(tmp_path):
    """Ours: with the place in the document, and the reason; the rest can be looked at."""
    document = json.loads(PETS.read_text())
    document["paths"]["/lost/{id}"] = {"get": {"operationId": "lost"}}
    document["servers"] = [{"url": "https://pets.example"}]
    (tmp_path / "pets.json").write_text(json.dumps(document))
    done = run_command(f"isthmus inspect {tmp_path / 'pets.json'}")

    assert "listPets" in done
    assert "left out: 1\n  #/paths/~1lost~1{id}/get: the path has {id}" in done


async def test_a_document_is_served_over_http_and_called():
    """Ours: end to end, of a process that is started as a user does; its API is a stand-in."""
    seen = []

    async def respond(head, body, writer):
        seen.append(head)
        writer.write(
            b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n{"id": 7}'
        )

    async with listen(respond) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "isthmus", "run", str(PETS), "--base-url", f"{url}/v1"),
            *("--credential", "shopKey=SHOP_KEY", "--http", "0"),
            env={**os.environ, "SHOP_KEY": "abcdefgh"},
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said = (await process.stderr.readline()).decode()
            async with Client(re.search(r"http://\S+", said)[0]) as client:
                result = await client.call_tool("getPet", {"id": 7})
        finally:
            process.terminate()
            await process.wait()

    assert {"id": 7} == result.structured
    assert b"GET /v1/pets/7 HTTP/1.1" == seen[0].splitlines()[0]
    assert b"abcdefgh" in seen[0]
