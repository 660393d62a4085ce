"""A gateway as a program: ``python mounted_gateway.py CONFIG PORT``, with the servers of a configuration mounted."""

import json
import sys
from pathlib import Path

from isthmus import Server


def main(config: str, port: str) -> None:
    servers = json.loads(Path(config).read_text(encoding="utf-8"))["mcpServers"]
    outer = Server("gateway", version="1")
    for name, entry in servers.items():
        outer.mount(Server.proxy(entry["url"], name=name, optional=True), prefix=name)
    outer.run("http", port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
