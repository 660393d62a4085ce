"""An app under uvicorn, with one kind of connection."""

import asyncio
import contextlib

import uvicorn

from isthmus.testing.faults import until


@contextlib.asynccontextmanager
async def serve_uvicorn(target, http, lifespan="off"):
    """A server of uvicorn's with one kind of connection, and its port."""
    server = uvicorn.Server(
        uvicorn.Config(
            target,
            port=0,
            http=http,
            lifespan=lifespan,
            log_level="error",
            ws="none",
            timeout_graceful_shutdown=1,
        )
    )
    task = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started, turns=1_000_000)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task
