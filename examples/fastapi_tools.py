"""A FastAPI application whose operations are tools, in process and beside its own pages.

``uvicorn fastapi_tools:app`` serves the application, and its tools at ``/mcp``;
``isthmus run fastapi_tools.py`` serves the tools alone.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from pydantic import BaseModel

from isthmus import Server


class Order(BaseModel):
    """What somebody orders."""

    item: str
    pieces: int = 1


@asynccontextmanager
async def open_stock(_app: FastAPI) -> AsyncIterator[dict[str, dict[str, int]]]:
    """Open the stock of the shop, for as long as it serves."""
    yield {"stock": {"tea": 3, "cups": 12}}


def find_customer(x_customer: Annotated[str, Header()] = "") -> str:
    """The customer, as whoever stands before the application says in a header."""
    if not x_customer:
        raise HTTPException(401, "nobody is logged in")
    return x_customer


app = FastAPI(title="Shop", version="1.0", lifespan=open_stock)


@app.get("/items/{item}")
async def read_item(item: str, request: Request) -> dict[str, str | int]:
    """Say how many there are of an item."""
    return {"item": item, "pieces": request.state.stock.get(item, 0)}


@app.post("/orders", status_code=201)
async def order(wanted: Order, customer: Annotated[str, Depends(find_customer)]) -> dict[str, str]:
    """Order something."""
    if wanted.pieces > 10:
        raise HTTPException(409, "at most 10 pieces: order less, or twice")
    return {"customer": customer, "item": wanted.item}


@app.get("/health", include_in_schema=False)
async def health() -> dict[str, str]:
    """Say that the application is up: no tool."""
    return {"status": "ok"}


# X-Customer comes from the caller's own request to /mcp, and is no argument of any tool
server = Server.from_fastapi(app, pass_headers=["x-customer"])
server.asgi().attach(app, "/mcp")
