"""Several servers as one client. Run it: ``python examples/group.py``."""

import asyncio
import sys
from pathlib import Path

from isthmus import Client

HERE = Path(__file__).parent
CONFIG = {
    "mcpServers": {
        "hello": {"command": sys.executable, "args": [str(HERE / "hello.py")]},
        "gone": {"url": "http://127.0.0.1:9/mcp"},
    }
}


async def main() -> None:
    """Print what there is, and which server cannot be reached."""
    async with Client(CONFIG) as client:
        for tool in await client.list_tools():
            print(tool.name)
        for name, failure in client.servers.items():
            print(name, "is", "there" if failure is None else f"not there: {failure}")


if __name__ == "__main__":
    asyncio.run(main())
