"""A server that has a model write, and a host whose user reads along.

Run it: ``python examples/host_sampling.py``. A script plays the model; with ``models.toml`` and a
provider it is a real one. The user sees the request first and makes it shorter, then the answer.
"""

import asyncio

from isthmus import Context, Server
from isthmus.host import Advertise, Decision, Host, Interaction
from isthmus.host.providers import Scripted
from isthmus.host.sampling import Model, Models, edits

server = Server("notes", version="1.0")


@server.tool
async def headline(text: str, ctx: Context) -> str:
    """Write a headline for a text, with the user's own model."""
    written = await ctx.sample(f"A headline for: {text}", max_tokens=50, model="small")
    return written.text


def user(interaction: Interaction) -> Decision:
    """Read along: fewer tokens for the model, the rest as it is."""
    attempt, payload = interaction.attempt, interaction.payload
    print(f"{attempt.principal} {attempt.action} {attempt.object}")
    if attempt.action == "sampling.request":
        return Decision(verdict="allow", edited=edits(payload, maxTokens=4))
    return Decision(verdict="allow")


MODELS = Models(
    [
        Model(id="small-1", provider="script", cost_in=0.1, cost_out=0.4, intelligence=30),
        Model(id="large-1", provider="script", cost_in=3.0, cost_out=15.0, intelligence=80),
    ]
)


async def main() -> None:
    """Call the tool through the host."""
    script = Scripted("Sea levels rise faster than ever", name="script")
    host = Host(approver=user, models=MODELS, providers={"script": script})
    host.add("notes", server, advertise=Advertise(sampling=True))
    async with host:
        result = await host.call("notes__headline", {"text": "The sea is rising."})
        print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
