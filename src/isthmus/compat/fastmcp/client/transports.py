"""Transports of clients under the names of ``fastmcp.client.transports``: each is a target of isthmus' client."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isthmus.compat.fastmcp.server.http import FacadeRunner
from isthmus.transports.command import Command


class ClientTransport:
    """Way to a server.

    Args:
        target: what isthmus' client can be pointed at.
        headers: sent with every request over HTTP.
    """

    def __init__(self, target: Any, headers: Mapping[str, str] | None = None) -> None:
        self.target = target
        self.headers = headers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"


class FastMCPTransport(ClientTransport):
    """Way to a server in this process."""

    def __init__(self, mcp: Any, **_: Any) -> None:
        super().__init__(mcp.server if isinstance(mcp, FacadeRunner) else mcp)


class StreamableHttpTransport(ClientTransport):
    """Way to a server over HTTP."""

    def __init__(
        self, url: Any, headers: Mapping[str, str] | None = None, auth: Any = None, **_: Any
    ) -> None:
        super().__init__(str(url), add_bearer(headers, auth))


class SSETransport(StreamableHttpTransport):
    """Way to a server over HTTP; that it is of 2024-11-05 is found out."""


class StdioTransport(ClientTransport):
    """Way to a server that is launched."""

    def __init__(
        self,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **_: Any,
    ) -> None:
        folder = None if cwd is None else str(cwd)
        super().__init__(Command(command, *args, env=dict(env or {}), cwd=folder))


class PythonStdioTransport(StdioTransport):
    """Way to a server that is a script of Python."""

    def __init__(
        self,
        script_path: str | Path,
        args: Sequence[str] | None = None,
        python_cmd: str = sys.executable,
        **rest: Any,
    ) -> None:
        super().__init__(python_cmd, [str(script_path), *(args or ())], **rest)


class NodeStdioTransport(StdioTransport):
    """Way to a server that is a script of Node."""

    def __init__(
        self,
        script_path: str | Path,
        args: Sequence[str] | None = None,
        node_cmd: str = "node",
        **rest: Any,
    ) -> None:
        super().__init__(node_cmd, [str(script_path), *(args or ())], **rest)


class NpxStdioTransport(StdioTransport):
    """Way to a server that is a package of npm."""

    def __init__(self, package: str, args: Sequence[str] | None = None, **rest: Any) -> None:
        super().__init__("npx", ["--yes", package, *(args or ())], **rest)


class UvxStdioTransport(StdioTransport):
    """Way to a server that is a package of PyPI."""

    def __init__(self, tool_name: str, tool_args: Sequence[str] | None = None, **rest: Any) -> None:
        super().__init__("uvx", [tool_name, *(tool_args or ())], **rest)


class MCPConfigTransport(ClientTransport):
    """Way to the servers of a configuration."""

    def __init__(self, config: Any, **_: Any) -> None:
        super().__init__(config if isinstance(config, dict) else config.to_dict())


def find_transport(given: Any) -> ClientTransport:
    """The way to what ``Client(…)`` was pointed at."""
    if isinstance(given, ClientTransport):
        return given
    if isinstance(given, FacadeRunner):
        return FastMCPTransport(given)
    if isinstance(given, Path):
        given = str(given)
    if isinstance(given, str) and given.endswith(".js"):
        return NodeStdioTransport(given)
    if isinstance(given, str) and given.endswith(".py"):
        return PythonStdioTransport(given)
    return ClientTransport(given if isinstance(given, str | dict) else _find_target(given))


def _find_target(given: Any) -> Any:
    if hasattr(given, "router") or isinstance(given, Command):
        return given
    return str(given)  # a URL that is an object


def add_bearer(headers: Mapping[str, str] | None, auth: Any) -> dict[str, str]:
    """Headers with a token, where ``auth`` is one."""
    added = dict(headers or {})
    token = getattr(auth, "token", auth)
    if hasattr(token, "get_secret_value"):
        token = token.get_secret_value()
    if isinstance(token, str) and token != "oauth":  # noqa: S105 - the word by which fastmcp asks for a login
        added["Authorization"] = f"Bearer {token}"
    return added
