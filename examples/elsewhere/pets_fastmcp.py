"""The tools of an API that is described by OpenAPI, with fastmcp."""

import json
import os
from pathlib import Path

import httpx2
from fastmcp import FastMCP
from fastmcp.server.providers.openapi import MCPType, RouteMap

mcp = FastMCP.from_openapi(
    json.loads((Path(__file__).parent / "pets.json").read_text()),
    client=httpx2.AsyncClient(
        base_url=os.environ.get("PETS", "http://127.0.0.1:8001"),
        headers={"X-Key": os.environ.get("PETS_KEY", "secret")},
    ),
    route_maps=[RouteMap(tags={"internal"}, mcp_type=MCPType.EXCLUDE)],
    mcp_names={"listPets": "find_pets"},
    name="pets",
)

if __name__ == "__main__":
    mcp.run()
