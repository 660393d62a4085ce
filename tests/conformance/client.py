"""The client that the official suite tests: ``client.py URL``, with the scenario in the environment.

``MCP_CONFORMANCE_SCENARIO`` names what to do; a name that is not known here ends with 64. With
``MCP_CONFORMANCE_PROTOCOL_VERSION`` up to 2025-11-25 the revision is pinned; from 2026-07-28 on the
client finds out by itself, as users' programs do. ``MCP_CONFORMANCE_CONTEXT`` has a scenario's data.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import logins

from isthmus import Accepted, Client
from isthmus.errors import AuthError, AuthUnsafe, IsthmusError, ScopeShortfall
from isthmus.revisions import BY_NAME, Feature
from isthmus.skills.verification import SkillUnverified
from isthmus.types import Tool

UNKNOWN = 64
"""The exit code for a scenario that this program does not know (``EX_USAGE``)."""

SAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}

Scenario = Callable[[Client], Awaitable[object]]


async def look(client: Client) -> list[Tool]:
    """List the tools, where there are any to list."""
    return await client.list_tools() if client.capabilities.tools else []


async def add(client: Client) -> None:
    """List the tools and add two numbers."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def take_defaults(client: Client) -> None:
    """Be asked, and leave every blank to its default."""
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


async def reconnect(client: Client) -> None:
    """Call a tool whose stream breaks off before the answer."""
    await client.call_tool("test_reconnection")


async def call_each(client: Client) -> None:
    """Call every tool that the client shows, with arguments of the right kinds."""
    for tool in await look(client):
        await client.call_tool(tool.name, sample(tool))


async def visit_all(client: Client) -> None:
    """Use every method that names its target in a header."""
    await call_each(client)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        arguments = prompt.arguments or []
        await client.get_prompt(prompt.name, {a.name: "text" for a in arguments if a.required})


async def call_as_told(client: Client) -> None:
    """Make exactly the calls that the context lists."""
    await client.list_tools()
    for call in context()["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def echo_schema(client: Client) -> None:
    """Send a schema back as it came."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    schema = tools["json_schema_2020_12_tool"].input_schema
    await client.call_tool("json_schema_echo", {"schema": schema})


async def carry_state(client: Client) -> None:
    """Answer questions that come with a state, without one, and not at all."""
    await client.list_tools()
    for kind in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{kind}")


async def call_first(client: Client) -> None:
    """List the tools and call the first."""
    for tool in (await look(client))[:1]:
        await client.call_tool(tool.name, {})


async def list_skills(client: Client) -> None:
    """List the skills, and load none."""
    await client.skills()


async def load_skill(client: Client) -> None:
    """Load a skill that was tampered with, and go on to its other files only if it loads."""
    for skill in await client.skills():
        try:
            await skill.load()
        except SkillUnverified as error:
            print(error, file=sys.stderr)
            continue
        for path in skill.files:
            await skill.read(path)


SCENARIOS: dict[str, Scenario] = {
    "initialize": look,
    "tools_call": add,
    "elicitation-sep1034-client-defaults": take_defaults,
    "sse-retry": reconnect,
    "request-metadata": call_each,
    "http-standard-headers": visit_all,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_each,
    "json-schema-ref-no-deref": look,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2322-client-request-state": carry_state,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": load_skill,
    "sep-2640-client-verify-size": load_skill,
    "sep-2640-client-verify-frontmatter": load_skill,
}

AUTHORIZED = "auth/"
"""How the names of scenarios begin that are about authorization; :mod:`logins` logs in for them."""

REFUSED: dict[str, type[AuthError]] = {
    "auth/iss-normalized": AuthUnsafe,
    "auth/iss-supported-missing": AuthUnsafe,
    "auth/iss-unexpected": AuthUnsafe,
    "auth/iss-wrong-issuer": AuthUnsafe,
    "auth/metadata-issuer-mismatch": AuthUnsafe,
    "auth/resource-mismatch": AuthUnsafe,
    "auth/scope-retry-limit": ScopeShortfall,
}
"""How scenarios end in which a client must not go on."""

FORMS: dict[str, dict[str, Any]] = {"sep-2322-client-request-state": {"confirmed": True}}
"""What the user fills into forms; nothing elsewhere, so that defaults show."""


def sample(tool: Tool) -> dict[str, Any]:
    """Arguments that a tool's schema requires."""
    schema = tool.input_schema
    properties = schema.get("properties", {})
    return {
        name: SAMPLES.get(properties.get(name, {}).get("type", "string"), "text")
        for name in schema.get("required", [])
    }


def context() -> Any:
    """The scenario's data."""
    return json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


async def run(url: str, name: str) -> None:
    """Play one scenario."""
    stated = BY_NAME.get(os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", ""))
    revision = stated if stated and not stated.has(Feature.EXTENSIONS) else None
    form = FORMS.get(name, {})
    play, auth = SCENARIOS.get(name), None
    if play is None:
        scenario = name.removeprefix(AUTHORIZED)
        play, auth = call_first, await logins.authorization(scenario, url, context())
    async with Client(
        url,
        name="isthmus-conformance",
        revision=revision,
        auth=auth,
        elicit=lambda _question: Accepted(form),
        sample=lambda _request: "A sampled answer.",
        roots=[],
    ) as client:
        await play(client)


def main() -> int:
    """Play the scenario that the environment names."""
    name = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    known = name in SCENARIOS or name.removeprefix(AUTHORIZED) in logins.LOGINS
    if len(sys.argv) < 2 or not known:
        print(f"no such scenario: {name!r}", file=sys.stderr)
        return UNKNOWN
    expected = REFUSED.get(name)
    try:
        asyncio.run(run(sys.argv[-1], name))
        ended = expected is None
    except IsthmusError as error:
        print(f"{name}: {error!r}", file=sys.stderr)
        ended = expected is not None and isinstance(error, expected)
    if not ended:
        return 1
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
