"""A server inside a FastAPI application: ``uvicorn mounted:app``, then connect to ``/tools``."""

from fastapi import FastAPI

from isthmus import Context, Server

server = Server("clerk", version="1.0")


@server.tool
def whoami(ctx: Context) -> str:
    """Say what the request's own headers say."""
    return ctx.headers.get("x-user", "nobody")


app = FastAPI()


@app.get("/health")
def health() -> dict[str, str]:
    """Say that the application is up."""
    return {"status": "ok"}


app.mount("/tools", server.asgi())
