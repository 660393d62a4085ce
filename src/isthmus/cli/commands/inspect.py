"""``isthmus list`` and ``isthmus inspect``: a server, what it can do, and what it offers."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from isthmus.cli.arguments import list_kinds
from isthmus.cli.declarations import Argument, CommandSet, Invocation
from isthmus.cli.exit_codes import Exit
from isthmus.cli.options import (
    AsJson,
    EnvWords,
    EraOption,
    HeaderWords,
    LogLevelOption,
    RevisionOption,
    Timeout,
    TokenEnv,
)
from isthmus.cli.output import format_size, print_json
from isthmus.cli.targets import TARGET_HELP
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient, run_with_target
from isthmus.client.client import Client
from isthmus.core.text import clean_text
from isthmus.wire import UNSET, Prompt, Resource, ResourceTemplate, Tool
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

app = CommandSet()


@app.command("list", epilog=TARGET_HELP.format("list"))
def list_(
    context: Invocation,
    target: Annotated[list[str] | None, Argument(metavar="TARGET")] = None,
    *,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
    header: HeaderWords = None,
    env: EnvWords = None,
    log_level: LogLevelOption = None,
) -> None:
    """List the tools, resources and prompts of a server."""
    options = ConnectOptions(
        as_json, revision, timeout, token_env, era, tuple(header or ()), tuple(env or ()), log_level
    )
    run_with_target(context, target or [], options, lambda client, _: print_list(client))


@app.command("inspect", epilog=TARGET_HELP.format("list"))
def inspect(
    context: Invocation,
    target: Annotated[list[str] | None, Argument(metavar="TARGET")] = None,
    *,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    era: EraOption = None,
    header: HeaderWords = None,
    env: EnvWords = None,
    log_level: LogLevelOption = None,
) -> None:
    """Describe a server: tools, resources, prompts, all parameters."""
    options = ConnectOptions(
        as_json, revision, timeout, token_env, era, tuple(header or ()), tuple(env or ()), log_level
    )
    run_with_target(context, target or [], options, lambda client, _: print_inspection(client))


class ServerOffer(Wire, frozen=True, kw_only=True):
    """Everything a server lists, under the names the lists have on the wire."""

    tools: list[Tool]
    resources: list[Resource]
    resource_templates: list[ResourceTemplate]
    prompts: list[Prompt]


async def fetch_offer(client: Client) -> ServerOffer:
    """Fetch the lists of a server; one that it does not declare is not asked for."""
    can = client.capabilities
    resources = can.resources is not UNSET
    return ServerOffer(
        tools=await client.list_tools() if can.tools is not UNSET else [],
        resources=await client.list_resources() if resources else [],
        resource_templates=await client.list_resource_templates() if resources else [],
        prompts=await client.list_prompts() if can.prompts is not UNSET else [],
    )


async def print_list(terminal: TerminalClient) -> Exit:
    """Print what a server offers: a line each."""
    async with terminal.client() as client:
        offer = await fetch_offer(client)
    if terminal.options.as_json:
        print_json(offer)
    else:
        _print_clean(_list_sections(offer, whole=False))
    return Exit.OK


async def print_inspection(terminal: TerminalClient) -> Exit:
    """Print what a server is, what it can do, and all it offers with every parameter."""
    async with terminal.client() as client:
        offer = await fetch_offer(client)
        about: dict[str, Any] = {
            "target": terminal.target.label,
            "revision": str(client.revision),
            "server": client.info,
            "capabilities": client.capabilities,
            "instructions": client.instructions,
        }
    left_out = [line.removeprefix(LEFT_OUT) for line in terminal.heard if line.startswith(LEFT_OUT)]
    if terminal.options.as_json:
        print_json({**about, "offer": offer, **({"leftOut": left_out} if left_out else {})})
    else:
        _print_clean([*_describe_server(about), "", *_list_sections(offer, whole=True)])
        if left_out:
            more = " or more" if len(terminal.heard) == terminal.heard.maxlen else ""
            _print_clean([f"{LEFT_OUT}{len(left_out)}{more}", *(f"  {line}" for line in left_out)])
    return Exit.OK


LEFT_OUT = "left out: "  # as the server of an OpenAPI document says it to standard error


def _print_clean(lines: Iterable[str]) -> None:
    """Lines for a person, cleaned wherever they go: they end on a terminal in the end."""
    for line in lines:
        print(clean_text(line))


def _describe_server(about: dict[str, Any]) -> Iterator[str]:
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


def _list_sections(offer: ServerOffer, *, whole: bool) -> Iterator[str]:
    """The sections of a listing; each says how many there are and how much they weigh."""
    sections: tuple[tuple[str, list[Any], Any], ...] = (
        ("tools", offer.tools, _format_tool),
        ("resources", offer.resources, _format_resource),
        ("resource templates", offer.resource_templates, _format_template),
        ("prompts", offer.prompts, _format_prompt),
    )
    for title, items, shown in sections:
        if not items:
            yield f"{title}: none"
            continue
        yield f"{title}: {len(items)}, {format_size(len(encode(items)))}"
        for item in items:
            yield from shown(item, whole)


def _format_tool(tool: Tool, whole: bool) -> Iterator[str]:
    yield f"  {format_signature(tool)}"
    yield from _format_description(tool.description or "", whole)
    if whole:
        for name, part in tool.input_schema.get("properties", {}).items():
            if isinstance(part, dict) and part.get("description"):
                yield f"        {name}: {part['description']}"
        hints = tool.annotations
        if hints:
            yield f"      hints: {encode(hints).decode()}"


def format_signature(tool: Tool) -> str:
    """A tool as a call: ``book(date: string, seats?: integer)``."""
    schema = tool.input_schema
    required = set(schema.get("required", ()))
    parameters = [
        f"{name}{'' if name in required else '?'}: {'|'.join(sorted(list_kinds(part, schema))) or 'any'}"
        for name, part in schema.get("properties", {}).items()
    ]
    return f"{tool.name}({', '.join(parameters)})"


def _format_resource(resource: Resource, whole: bool) -> Iterator[str]:
    kind = f"  ({resource.mime_type})" if resource.mime_type else ""
    yield f"  {resource.uri}{kind}"
    yield from _format_description(resource.description or resource.name, whole)


def _format_template(template: ResourceTemplate, whole: bool) -> Iterator[str]:
    yield f"  {template.uri_template}"
    yield from _format_description(template.description or template.name, whole)


def _format_prompt(prompt: Prompt, whole: bool) -> Iterator[str]:
    blanks = [f"{a.name}{'' if a.required else '?'}" for a in prompt.arguments or ()]
    yield f"  {prompt.name}({', '.join(blanks)})"
    yield from _format_description(prompt.description or "", whole)


def _format_description(text: str, whole: bool) -> Iterator[str]:
    """A description, indented; its first line only where a line has to do."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    for line in lines if whole else lines[:1]:
        yield f"      {line}"
