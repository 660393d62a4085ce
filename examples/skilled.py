"""A server with a skill, and a client that loads it: ``python examples/skilled.py``.

A skill is a folder with a ``SKILL.md``: instructions that a model gets when it needs them. The client
verifies each file against the digest that the server listed.
"""

import asyncio
from pathlib import Path

from isthmus import Client, Server

server = Server("shop", instructions="For refunds, use the skill skill://refunds/SKILL.md.")
server.add_skills(Path(__file__).parent / "skills")


@server.tool
def find_order(number: int) -> dict[str, str | int]:
    """Find an order by its number."""
    return {"number": number, "amount": "12 EUR", "delivered": "2026-11-20"}


async def main() -> None:
    """List the skills, load one, and read a file that it refers to."""
    async with Client(server) as client:
        for skill in await client.skills():
            print(f"{skill.name}: {skill.description}")
            print((await skill.load()).strip())
            for template in await skill.list_directory("templates"):
                print(f"- {template.name}")
            print(await skill.read("templates/refunded.md"))


if __name__ == "__main__":
    asyncio.run(main())
