"""FastMCP's proxy of ``bench/gateway.py``: ``fastmcp_proxy.py URL PORT`` serves over HTTP."""

import sys

from fastmcp.server import create_proxy

create_proxy(sys.argv[1], name="proxy").run(
    transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False
)
