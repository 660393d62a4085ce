"""A server of few words that goes wrong on purpose, over stdio or HTTP, in the older era.

``faulty_server.py FAULT`` speaks over stdio. Only the standard library, so that it starts fast.
"""

import asyncio
import json
import os
import sys
import time

LAST_WORDS = "out of cheese: redo from start"


def make_answer(message, result):
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "faulty", "version": "1"},
}


def answer_well(message):
    """The right answer, or None for what wants none."""
    if message.get("method") == "initialize":
        return make_answer(message, INITIALIZED)
    if message.get("method") == "tools/call" and message["params"]["name"] == "well":
        return make_answer(message, {"content": [{"type": "text", "text": "fine"}]})
    return None


def over_stdio(fault):
    if fault == "early exit":
        print(LAST_WORDS, file=sys.stderr, flush=True)
        sys.exit(3)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        reply = answer_well(message)
        if reply is not None:
            os.write(1, reply + b"\n")
        elif message.get("method") == "tools/call":
            misbehave(fault, message)


def misbehave(fault, message):
    if fault == "drop":
        print(LAST_WORDS, file=sys.stderr, flush=True)
        os._exit(3)
    if fault == "half":
        os.write(1, make_answer(message, {"content": []})[:-8])
        os._exit(0)
    if fault == "garbage":
        os.write(1, b'this is no message\n{"jsonrpc": 2}\n\xff\xfe\n')
    if fault == "deaf":
        os.close(0)
        time.sleep(3600)


async def over_http(fault):
    """An HTTP server on a free port: what ends it with every connection, and its URL."""
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            while head := await read_head(reader):
                body = await reader.readexactly(int(head.get("content-length", 0)))
                if not await respond(fault, head, body, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)

    async def end():
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    return end, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def read_head(reader):
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    head = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return {**head, "verb": lines[0].split(" ")[0]}


async def respond(fault, head, body, writer):
    """Answer one request; whether the connection goes on."""
    if head["verb"] != "POST":
        return await send(writer, 405, b"")
    message = json.loads(body)
    if fault == "early exit" or message.get("method") == "server/discover":
        return fault != "early exit" and await send(writer, 400, b"")
    reply = answer_well(message)
    if reply is not None:
        return await send(writer, 200, reply)
    if message.get("method") != "tools/call":
        return await send(writer, 202, b"")
    return await fail(fault, message, writer)


async def fail(fault, message, writer):
    if fault == "drop":
        return False
    if fault == "half":
        start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        writer.write(start + b"event: message\ndata: " + make_answer(message, {"content": []})[:-8])
        await writer.drain()
        return False
    if fault == "garbage":
        return await send(writer, 200, b'{"jsonrpc": "2.0", "id"')
    if fault == "status":
        return await send(writer, 503, b"the database is on fire", "text/plain")
    await asyncio.Event().wait()  # silence
    return False


async def send(writer, status, body, kind="application/json"):
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return True


if __name__ == "__main__":
    over_stdio(sys.argv[1])
