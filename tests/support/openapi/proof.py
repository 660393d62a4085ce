"""Proof of a document: each operation of it is called, and read again as it arrives.

The whole way is taken: a client, ``tools/call``, the server, the request, and an application in this
process that reads it by rules of its own.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from isthmus import Client, Server
from isthmus.openapi.apps.asgi_sender import AsgiSender
from isthmus.openapi.document import DocumentError, read_document
from isthmus.openapi.request import parse_base_url
from isthmus.openapi.tools.api_tools import ApiTools
from isthmus.openapi.tools.facade import build_server
from support.openapi.comparison import find_difference
from support.openapi.described_apis import Api, DescribedOperation, find_url, list_described
from support.openapi.echo_app import EchoApp
from support.openapi.schema_samples import NoSample, Sampler

TRIES = (True, True, False)
"""Of one kind of arguments: with odd signs twice, and without them where those were refused."""


@dataclass
class Proof:
    """Outcome of one document.

    Attributes:
        operations: how many it has.
        offered: how many of them are tools.
        called: how many tools got a call that arrived.
        exact: calls that arrived as they were made.
        refused: calls that were refused before anything was sent.
        seconds: that the server took to read the document.
        faults: calls that arrived otherwise, or could not be read.
        left_out: operations that are no tools, with the reason.
        mute: tools that no arguments were found for, or all refused.
    """

    operations: int = 0
    offered: int = 0
    called: int = 0
    exact: int = 0
    refused: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    mute: list[str] = field(default_factory=list)


async def prove(api: Api) -> Proof:
    """Call every operation of a document twice: with all arguments, and with those that must be."""
    described = {(one.method, one.path): one for one in list_described(api)}
    proof, echo = Proof(operations=len(described)), EchoApp()
    began = time.perf_counter()
    document = read_document(api.root)
    sender = AsgiSender(echo, check_route=lambda scope, template: None)
    options: Any = {"lenient": True, "search": False, "allow_hosts": sorted(list_origins(api))}
    base = parse_base_url(find_url(api))
    try:
        server = build_server(Server, document, sender, base, options)
    except DocumentError as error:  # nothing at all can be offered
        proof.left_out = [str(error)] * proof.operations
        return proof
    proof.seconds = time.perf_counter() - began
    api_tools = ApiTools(document, sender, options, base=base)
    proof.left_out = [f"{one.what}: {one.reason}" for one in api_tools.left_out]
    async with Client(server) as client:
        tools = await client.list_tools()
        proof.offered = len(tools)
        for tool in tools:
            operation = api_tools.tools[tool.name].operation
            expected = described[operation.method, operation.path]
            await _prove_tool(client, echo, tool, expected, proof)
    await server.close()
    return proof


def list_origins(api: Api) -> set[str]:
    """The origins that a document names, for all of its operations."""
    servers = [*api.root.get("servers", [])]
    for item in map(api.follow, api.root.get("paths", {}).values()):
        servers += item.get("servers", [])
        for operation in item.values():
            servers += operation.get("servers", []) if isinstance(operation, dict) else []
    urls = [urlsplit(one.get("url", "")) for one in servers]
    return {f"{url.scheme}://{url.netloc}" for url in urls if url.scheme and "{" not in url.netloc}


async def _prove_tool(
    client: Client, echo: EchoApp, tool: Any, expected: DescribedOperation, proof: Proof
) -> None:
    arrived = False
    reason = ""
    for full in (True, False):
        for number, nasty in enumerate(TRIES):
            seed = f"{expected.method} {expected.path} {full} {number}"
            try:
                made = Sampler(tool.input_schema, seed, nasty=nasty, full=full).sample()
            except (NoSample, RecursionError) as error:
                reason = f"no arguments fit its schema: {str(error).splitlines()[0][:120]}"
                break
            echo.expect(expected)
            before = echo.count
            result = await client.call_tool(tool.name, made)
            if echo.count == before:
                proof.refused += 1
                reason = result.text[:160]
                continue
            flaw = echo.flaw or find_difference(expected, made, echo.arrived)
            if flaw:
                proof.faults.append(f"{expected.method} {expected.path}: {flaw[:300]}")
            else:
                proof.exact += 1
            arrived = True
            break
    proof.called += arrived
    if not arrived:
        proof.mute.append(f"{expected.method} {expected.path}: {reason}")


def count_reasons(lines: list[str]) -> Counter[str]:
    """Reasons, and how often each is given, whatever the place."""
    return Counter(line.partition(": ")[2][:110] for line in lines)
