"""The same few words as ``faulty_server``, and the same ways to go wrong, over sockets."""

import asyncio
import contextlib
import json

from support.transports.faulty_server import answer_well, make_answer

GARBAGE = b'this is no message\n{"jsonrpc": 2}\n\xff\xfe\n'


@contextlib.asynccontextmanager
async def over_lines(fault, path=None):
    """A server on a Unix socket at ``path``, or on a free TCP port; gives its URL."""
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            while fault != "early exit" and (line := await reader.readline()):
                message = json.loads(line)
                reply = answer_well(message)
                if reply is not None:
                    writer.write(reply + b"\n")
                elif message.get("method") == "tools/call" and not misbehave(
                    fault, message, writer
                ):
                    break
        writer.close()

    if path is None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        url = f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    else:
        server = await asyncio.start_unix_server(connected, path)
        url = f"unix://{path}"
    try:
        yield url
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def misbehave(fault, message, writer):
    """Go wrong at a call; whether the connection goes on."""
    if fault == "half":
        writer.write(make_answer(message, {"content": []})[:-8])
    if fault == "reset":
        writer.transport.abort()
    if fault == "garbage":
        writer.write(GARBAGE)
    return fault in {"garbage", "silence"}


@contextlib.asynccontextmanager
async def over_websocket(fault):
    """A server that takes WebSockets on a free port; gives its URL."""
    from aiohttp import web

    async def connected(request):
        if fault == "early exit":
            return web.Response(status=404)
        socket = web.WebSocketResponse(protocols=() if fault == "foreign" else ("mcp",))
        await socket.prepare(request)
        async for frame in socket:
            message = json.loads(frame.data)
            reply = answer_well(message)
            if reply is not None:
                await socket.send_str(reply.decode())
            elif message.get("method") == "tools/call":
                await misbehave_there(fault, socket, request)
        return socket

    app = web.Application()
    app.router.add_get("/mcp", connected)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


async def misbehave_there(fault, socket, request):
    if fault == "drop":
        await socket.close(code=1011, message=b"out of cheese")
    if fault == "reset":
        request.transport.abort()
    if fault == "garbage":
        for line in GARBAGE.splitlines():
            await socket.send_str(line.decode(errors="replace"))
    if fault == "binary":
        await socket.send_bytes(b"{}")
