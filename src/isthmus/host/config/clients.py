"""Shapes of the entries that MCP clients keep for their servers, as data, and entries made by them.

The files themselves are in :data:`isthmus.host.config.importing.IMPORT_SOURCES`; what reads the
entries back is :mod:`isthmus.host.config.translation`.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from isthmus.core.redaction.forms import may_name_secret
from isthmus.host.config.importing import list_places
from isthmus.host.config.text_edits import format_toml, format_yaml
from isthmus.host.model.errors import ConfigError


class ClientShape(Struct, frozen=True, kw_only=True):
    """The shape of a client's entry for a server.

    Attributes:
        title: the client, as people call it.
        section: the way to the object that has the servers.
        project: its file in a project, from the project's folder; empty where it has none.
        local: members of every entry for a program.
        remote: members of every entry for a URL; None where the file takes no URLs.
        command, env, url: its words for these members; arguments and headers have one word only.
        variable: how it spells a variable of its own environment; empty where it fills in none.
        passed: the member that lists variables to be handed on to the program.
        header_variables: the member that lists variables that headers name.
        token: the member that names the variable that a bearer token is in.
        has_inputs: whether it asks the user for values itself, once (``inputs``).
        has_name: whether an entry repeats the name.
        reload: what has to be done for it to read the file.
        advice: what to do for a URL, or a variable, that the file cannot have.
        source: the page that says all this.
        read: when that page was read.
    """

    title: str
    section: tuple[str, ...]
    project: str = ""
    local: Mapping[str, Any] = {}
    remote: Mapping[str, Any] | None = {}
    command: str = "command"
    env: str = "env"
    url: str = "url"
    variable: str = ""
    passed: str = ""
    header_variables: str = ""
    token: str = ""
    has_inputs: bool = False
    has_name: bool = False
    reload: str
    advice: str = ""
    source: str
    read: str


CLIENTS: Mapping[str, ClientShape] = {
    "claude-code": ClientShape(
        title="Claude Code",
        section=("mcpServers",),
        project=".mcp.json",
        local={"type": "stdio"},
        remote={"type": "http"},
        variable="${%s}",
        reload="start a new session; /mcp lists the server",
        source="https://code.claude.com/docs/en/mcp",
        read="2026-11-23",
    ),
    "claude": ClientShape(
        title="Claude Desktop",
        section=("mcpServers",),
        remote=None,
        reload="quit Claude Desktop and open it again",
        advice="a URL is added under Settings, Connectors; a bundle (isthmus bundle) keeps secrets in the keychain",
        source="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        read="2026-11-23",
    ),
    "cursor": ClientShape(
        title="Cursor",
        section=("mcpServers",),
        project=".cursor/mcp.json",
        local={"type": "stdio"},
        variable="${env:%s}",
        reload="switch the server on under Settings, Tools & MCP",
        source="https://cursor.com/docs/context/mcp",
        read="2026-11-23",
    ),
    "vscode": ClientShape(
        title="VS Code",
        section=("servers",),
        project=".vscode/mcp.json",
        local={"type": "stdio"},
        remote={"type": "http"},
        variable="${env:%s}",
        has_inputs=True,
        reload="start the server from the editor of mcp.json, or by MCP: List Servers",
        source="https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
        read="2026-11-23",
    ),
    "codex": ClientShape(
        title="Codex",
        section=("mcp_servers",),
        project=".codex/config.toml",
        passed="env_vars",
        token="bearer_token_env_var",  # noqa: S106 - the name of a member
        reload="start a new session; /mcp lists the server",
        advice="Codex has no variables in headers: give --token-env",
        source="https://developers.openai.com/codex/mcp",
        read="2026-11-23",
    ),
    "gemini": ClientShape(
        title="Gemini CLI",
        section=("mcpServers",),
        project=".gemini/settings.json",
        url="httpUrl",
        variable="${%s}",
        reload="start Gemini CLI again; /mcp lists the server",
        source="https://geminicli.com/docs/tools/mcp-server",
        read="2026-11-23",
    ),
    "goose": ClientShape(
        title="goose",
        section=("extensions",),
        local={"enabled": True, "type": "stdio"},
        remote={"enabled": True, "type": "streamable_http"},
        command="cmd",
        env="envs",
        url="uri",
        variable="${%s}",
        passed="env_keys",
        header_variables="env_keys",
        has_name=True,
        reload="start a new session",
        source="https://goose-docs.ai/docs/guides/config-files",
        read="2026-11-23",
    ),
    "windsurf": ClientShape(
        title="Windsurf",
        section=("mcpServers",),
        url="serverUrl",
        variable="${env:%s}",
        reload="refresh the servers in Cascade's MCP panel",
        source="https://docs.windsurf.com/windsurf/cascade/mcp",
        read="2026-11-23",
    ),
    "cline": ClientShape(
        title="Cline",
        section=("mcpServers",),
        local={"disabled": False},
        remote={"type": "streamableHttp", "disabled": False},
        variable="${env:%s}",
        reload="Cline reads the file by itself; see its MCP Servers panel",
        source="https://docs.cline.bot/mcp/mcp-overview",
        read="2026-11-23",
    ),
    "zed": ClientShape(
        title="Zed",
        section=("context_servers",),
        project=".zed/settings.json",
        reload="Zed reads the file by itself; see the settings of its agent panel",
        advice="Zed fills in no variables: give --env NAME=VALUE, and keep the file to yourself",
        source="https://zed.dev/docs/ai/mcp",
        read="2026-11-23",
    ),
}


class NewServer(Struct, frozen=True, kw_only=True):
    """A server that is to be written into clients' files.

    Attributes:
        name: what it is called there.
        command: the program and its arguments; empty for a URL.
        url: where it listens; empty for a program.
        env: variables with their values.
        wanted: variables that the client takes from its own environment, or from the user.
        headers: sent with every request.
        token_env: the variable that holds a bearer token; empty for none.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = {}
    wanted: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    token_env: str = ""


class ClientEntry(Struct, frozen=True):
    """An entry of a client's file, and the inputs that it refers to."""

    value: dict[str, Any]
    inputs: tuple[dict[str, Any], ...] = ()


def find_client_file(
    client: str, environ: Mapping[str, str], folder: Path | None, platform: str = sys.platform
) -> Path:
    """Find the file that a client keeps its servers in, whether it is there yet or not.

    Args:
        client: a name of :data:`CLIENTS`.
        environ: the environment, which says where home is.
        folder: the project; None for the user's own file.
        platform: as :data:`sys.platform` names it.

    Raises:
        ConfigError: the client has no file in a project.
    """
    shape = CLIENTS[client]
    if folder is None:
        return list_places(client, environ, platform)[0]
    if not shape.project:
        raise ConfigError(f"{shape.title} has no file in a project: leave --project out")
    return folder / shape.project


def make_client_entry(client: str, server: NewServer) -> ClientEntry:
    """Make the entry of a server in a client's own words.

    Raises:
        ConfigError: its file has no words for this.
    """
    shape = CLIENTS[client]
    named = {"name": server.name, "description": ""} if shape.has_name else {}
    if server.url:
        return _make_remote_entry(shape, server, named)
    env = dict(server.env)
    passed: list[str] = []
    inputs: list[dict[str, Any]] = []
    for variable in server.wanted:
        if shape.passed:
            passed.append(variable)
        else:
            env[variable] = _refer_to(shape, server, variable, inputs)
    value = {
        **shape.local,
        **named,
        shape.command: server.command[0],
        "args": list(server.command[1:]),
        **({shape.env: env} if env else {}),
        **({shape.passed: passed} if passed else {}),
    }
    return ClientEntry(value, tuple(inputs))


def _make_remote_entry(
    shape: ClientShape, server: NewServer, named: Mapping[str, Any]
) -> ClientEntry:
    """Make the entry of a server that listens at a URL."""
    if shape.remote is None:
        raise ConfigError(f"{shape.title} reads no URL from its file: {shape.advice}")
    headers = dict(server.headers)
    more: dict[str, Any] = {}
    inputs: list[dict[str, Any]] = []
    if server.token_env and shape.token:
        more[shape.token] = server.token_env
    elif server.token_env:
        headers["Authorization"] = f"Bearer {_refer_to(shape, server, server.token_env, inputs)}"
        if shape.header_variables:
            more[shape.header_variables] = [server.token_env]
    word = "http_headers" if shape.token else "headers"
    value = {**shape.remote, **named, shape.url: server.url, **({word: headers} if headers else {})}
    return ClientEntry({**value, **more}, tuple(inputs))


def _refer_to(
    shape: ClientShape, server: NewServer, variable: str, inputs: list[dict[str, Any]]
) -> str:
    """Spell a variable as the client fills it in; an input is noted where it asks the user.

    Raises:
        ConfigError: it fills in none.
    """
    if shape.has_inputs:
        found = make_input_id(server.name, variable)
        inputs.append(
            {
                "type": "promptString",
                "id": found,
                "description": f"{variable} of {server.name}",
                "password": bool(server.url) or may_name_secret(variable),
            }
        )
        return f"${{input:{found}}}"
    if not shape.variable:
        raise ConfigError(
            f"{shape.title} fills in no variables, and --env {variable} has no value: {shape.advice}"
        )
    return shape.variable % variable


def make_input_id(name: str, variable: str) -> str:
    """The id of the input that asks for a server's variable."""
    return f"{name}-{variable}".lower()


def format_client_file(client: str, name: str, entry: ClientEntry) -> str:
    """Format a whole file that has an entry and nothing else: what there is to paste."""
    section = CLIENTS[client].section
    if client == "codex":
        return format_toml((*section, name), entry.value)
    if client == "goose":
        return format_yaml({section[0]: {name: entry.value}})
    whole: dict[str, Any] = {section[0]: {name: entry.value}}
    whole |= {"inputs": list(entry.inputs)} if entry.inputs else {}
    return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"
