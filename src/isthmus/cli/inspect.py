"""``inspect`` and ``list``: what a server is and offers."""

from collections.abc import Iterable, Iterator
from typing import Any

from isthmus.cli.arguments import kinds
from isthmus.cli.exits import Exit
from isthmus.cli.output import print_json, size
from isthmus.cli.talk import Talk
from isthmus.client.client import Client
from isthmus.core.plain_text import clean
from isthmus.wire import UNSET, Prompt, Resource, ResourceTemplate, Tool
from isthmus.wire.base import Wire
from isthmus.wire.jsonrpc import encode

__all__ = ["Offer", "inspect", "listing", "offer_of", "signature"]


class Offer(Wire, frozen=True, kw_only=True):
    """Everything a server lists, under the names the lists have on the wire."""

    tools: list[Tool]
    resources: list[Resource]
    resource_templates: list[ResourceTemplate]
    prompts: list[Prompt]


async def offer_of(client: Client) -> Offer:
    """What the server lists; what it does not declare is not asked for."""
    can = client.capabilities
    resources = can.resources is not UNSET
    return Offer(
        tools=await client.list_tools() if can.tools is not UNSET else [],
        resources=await client.list_resources() if resources else [],
        resource_templates=await client.list_resource_templates() if resources else [],
        prompts=await client.list_prompts() if can.prompts is not UNSET else [],
    )


async def listing(talk: Talk) -> Exit:
    """Print what a server offers: a line each."""
    async with talk.client() as client:
        offer = await offer_of(client)
    if talk.options.as_json:
        print_json(offer)
    else:
        _print(_lines(offer, whole=False))
    return Exit.OK


async def inspect(talk: Talk) -> Exit:
    """Print what a server is, what it can do, and all it offers with every parameter."""
    async with talk.client() as client:
        offer = await offer_of(client)
        about: dict[str, Any] = {
            "target": talk.target.label,
            "revision": str(client.revision),
            "server": client.info,
            "capabilities": client.capabilities,
            "instructions": client.instructions,
        }
    if talk.options.as_json:
        print_json({**about, "offer": offer})
    else:
        _print([*_about(about), "", *_lines(offer, whole=True)])
    return Exit.OK


def _print(lines: Iterable[str]) -> None:
    """Lines for a person, cleaned wherever they go: they end on a terminal in the end."""
    for line in lines:
        print(clean(line))


def _about(about: dict[str, Any]) -> Iterator[str]:
    server = about["server"]
    name = f"{server.title or server.name} {server.version}".strip()
    yield name or about["target"]
    yield f"  revision      {about['revision']}"
    declared = about["capabilities"]
    # An empty object declares a capability as well as a full one does.
    can = [n for n in declared.__struct_fields__ if getattr(declared, n) is not UNSET]
    yield f"  capabilities  {', '.join(can) or 'none'}"
    if about["instructions"]:
        yield f"  instructions  {about['instructions']}"


def _lines(offer: Offer, *, whole: bool) -> Iterator[str]:
    """The sections of a listing; each says how many there are and how much they weigh."""
    sections: tuple[tuple[str, list[Any], Any], ...] = (
        ("tools", offer.tools, _tool),
        ("resources", offer.resources, _resource),
        ("resource templates", offer.resource_templates, _template),
        ("prompts", offer.prompts, _prompt),
    )
    for title, items, shown in sections:
        if not items:
            yield f"{title}: none"
            continue
        yield f"{title}: {len(items)}, {size(len(encode(items)))}"
        for item in items:
            yield from shown(item, whole)


def _tool(tool: Tool, whole: bool) -> Iterator[str]:
    yield f"  {signature(tool)}"
    yield from _description(tool.description or "", whole)
    if whole:
        for name, part in tool.input_schema.get("properties", {}).items():
            if isinstance(part, dict) and part.get("description"):
                yield f"        {name}: {part['description']}"
        hints = tool.annotations
        if hints:
            yield f"      hints: {encode(hints).decode()}"


def signature(tool: Tool) -> str:
    """A tool as a call: ``book(date: string, seats?: integer)``."""
    schema = tool.input_schema
    required = set(schema.get("required", ()))
    parameters = [
        f"{name}{'' if name in required else '?'}: {'|'.join(sorted(kinds(part, schema))) or 'any'}"
        for name, part in schema.get("properties", {}).items()
    ]
    return f"{tool.name}({', '.join(parameters)})"


def _resource(resource: Resource, whole: bool) -> Iterator[str]:
    kind = f"  ({resource.mime_type})" if resource.mime_type else ""
    yield f"  {resource.uri}{kind}"
    yield from _description(resource.description or resource.name, whole)


def _template(template: ResourceTemplate, whole: bool) -> Iterator[str]:
    yield f"  {template.uri_template}"
    yield from _description(template.description or template.name, whole)


def _prompt(prompt: Prompt, whole: bool) -> Iterator[str]:
    blanks = [f"{a.name}{'' if a.required else '?'}" for a in prompt.arguments or ()]
    yield f"  {prompt.name}({', '.join(blanks)})"
    yield from _description(prompt.description or "", whole)


def _description(text: str, whole: bool) -> Iterator[str]:
    """A description, indented; its first line only where a line has to do."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    for line in lines if whole else lines[:1]:
        yield f"      {line}"
