"""FastMCP's proxy as a gateway: ``python fastmcp_gateway.py CONFIG PORT``."""

import json
import sys
from pathlib import Path

from fastmcp.server import create_proxy


def main(config: str, port: str) -> None:
    servers = json.loads(Path(config).read_text(encoding="utf-8"))
    proxy = create_proxy(servers, name="fastmcp gateway")
    proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
