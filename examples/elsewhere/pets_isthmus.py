"""The tools of an API that is described by OpenAPI, with isthmus."""

import os
from pathlib import Path

from isthmus import Server
from isthmus.openapi import Shape

server = Server.from_openapi(
    Path(__file__).parent / "pets.json",
    base_url=os.environ.get("PETS", "http://127.0.0.1:8001"),
    credentials={"key": os.environ.get("PETS_KEY", "secret")},
    exclude="tag:internal",
    shape={"listPets": Shape(name="find_pets")},
    name="pets",
)

if __name__ == "__main__":
    server.run()
