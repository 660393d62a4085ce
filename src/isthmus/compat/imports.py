"""Import hook: ``mcp``, ``mcp_types`` and ``fastmcp`` are the façades, in a process of ``--compat``.

A module of theirs is the module of ours that the tables name, under both names, so that each class exists once.
One that the façades lack cannot be imported: half of a library is never mixed with half of another one.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

FASTMCP = "isthmus.compat.fastmcp"

# Modules of fastmcp's logins that are refused by name
LOGIN_PROVIDERS = (
    *("auth0", "aws", "azure", "clerk", "descope", "discord", "github", "google", "huggingface"),
    *(
        "in_memory",
        "introspection",
        "keycloak",
        "oci",
        "propelauth",
        "scalekit",
        "supabase",
        "workos",
    ),
)
LOGIN_SERVERS = ("oauth_proxy", "oauth_proxy.proxy", "oidc_proxy", "identity_assertion")

# The package of ours below which the modules of another library's package have the same names.
OWN_ROOTS = {
    "mcp": "isthmus.compat.mcp",
    "mcp_types": "isthmus.compat.types",
    "fastmcp": FASTMCP,
    "fastmcp_tasks": f"{FASTMCP}.utilities.tasks",
}

# Modules of ours that stand elsewhere than below :data:`OWN_ROOTS`.
MOVED = {
    **dict.fromkeys(("fastmcp.tools.base", "fastmcp.tools.tool"), f"{FASTMCP}.tools.model"),
    **dict.fromkeys(("fastmcp.prompts.base", "fastmcp.prompts.prompt"), f"{FASTMCP}.prompts.model"),
    **dict.fromkeys(
        ("fastmcp.resources.base", "fastmcp.resources.resource"), f"{FASTMCP}.resources.model"
    ),
    **{f"mcp_types.{name}": "isthmus.compat.types" for name in ("_types", "jsonrpc", "version")},
    **{f"mcp.types.{name}": "isthmus.compat.types" for name in ("jsonrpc", "version")},
    **dict.fromkeys(
        (f"fastmcp.server.auth.providers.{name}" for name in LOGIN_PROVIDERS),
        f"{FASTMCP}.server.auth.providers",
    ),
    **dict.fromkeys(
        (f"fastmcp.server.auth.{name}" for name in LOGIN_SERVERS),
        f"{FASTMCP}.server.auth.providers",
    ),
    "fastmcp.server.providers.base": f"{FASTMCP}.server.providers.component_provider",
    **{
        f"fastmcp.server.providers.skills.{name}": f"{FASTMCP}.server.providers.skills"
        for name in (
            *("skill_provider", "directory_provider", "claude_provider", "vendor_providers"),
        )
    },
    "fastmcp.server.providers.proxy": f"{FASTMCP}.server.proxy",
    "fastmcp.server.providers.fastmcp_provider": f"{FASTMCP}.server.providers.servers",
    **dict.fromkeys(
        ("fastmcp.server.tasks", "fastmcp.server.tasks.config", "fastmcp_tasks.extension"),
        f"{FASTMCP}.utilities.tasks",
    ),
    "fastmcp.server.auth.authorization": f"{FASTMCP}.utilities.authorization",
    "fastmcp.server.auth.providers.bearer": f"{FASTMCP}.server.auth.providers.jwt",
    "mcp.types": "isthmus.compat.types",
    "mcp.server": "isthmus.compat.mcp",
    "mcp.server.mcpserver": "isthmus.compat.mcp",
    "mcp.server.fastmcp": "isthmus.compat.mcp",
    **{
        f"mcp.server.{package}.{name}": f"isthmus.compat.{own}"
        for package in ("mcpserver", "fastmcp")
        for name, own in {
            "server": "mcp.mcpserver",
            "context": "mcp.context",
            "exceptions": "exceptions",
            "tools": "mcp.mcpserver",
            "tools.base": "mcp.mcpserver",
            "prompts": "mcp.prompts",
            "prompts.base": "mcp.prompts",
            "resources": "mcp.resources",
            "resources.base": "mcp.resources",
            "resources.types": "mcp.resources",
            "utilities": "mcp",
            "utilities.types": "media",
            "utilities.logging": "mcp.logging",
        }.items()
    },
    "mcp.server.lowlevel": "isthmus.compat.mcp.lowlevel",
    "mcp.server.lowlevel.server": "isthmus.compat.mcp.lowlevel",
    "mcp.server.lowlevel.helper_types": "isthmus.compat.mcp.lowlevel",
    **{
        f"mcp.server.auth{name}": "isthmus.compat.mcp.auth"
        for name in ("", ".provider", ".settings", ".middleware", ".middleware.auth_context")
    },
    "mcp.server.models": "isthmus.compat.mcp.lowlevel",
    "mcp.server.stdio": "isthmus.compat.mcp.stdio",
    "mcp.server.caching": "isthmus.compat.caching",
    "mcp.server.context": "isthmus.compat.session",
    "mcp.server.session": "isthmus.compat.session",
    "mcp.server.elicitation": "isthmus.compat.mcp.context",
    "mcp.server.transport_security": "isthmus.compat.mcp.http",
    "mcp.server.streamable_http_manager": "isthmus.compat.mcp.http",
    "mcp.server.sse": "isthmus.compat.mcp.sse",
    "mcp.shared": "isthmus.compat.mcp",
    "mcp.shared.exceptions": "isthmus.compat.exceptions",
    "mcp.shared.version": "isthmus.compat.types",
    "mcp.shared.memory": "isthmus.compat.mcp.client.memory",
    "mcp.client._memory": "isthmus.compat.mcp.client.memory",
    "mcp.client.context": "isthmus.compat.mcp.client.session",
    "mcp.shared.context": "isthmus.compat.session",
    "mcp.shared.session": "isthmus.compat.session",
}

# Names of ours to use for modules that the façades lack, by the beginning of theirs.
REPLACEMENTS = {
    "mcp.client.auth": "isthmus.auth.OAuth",
    "mcp.client": "isthmus.Client",
    "mcp.shared.message": "isthmus.Client or Server.run",
    "mcp.shared._httpx_utils": "the headers of isthmus.Client",
    "mcp.server.auth": "isthmus.auth.ResourceAuth",
    "mcp.cli": "the commands of isthmus",
    "mcp.shared.auth": "isthmus.auth",
    "fastmcp.client": "isthmus.Client",
    "fastmcp.Client": "isthmus.Client",
    "fastmcp.server.auth": "isthmus.auth.ResourceAuth",
    "fastmcp.server.providers.openapi": "isthmus.Server.from_openapi",
    "fastmcp.server.providers.OpenAPIProvider": "isthmus.Server.from_openapi",
    "fastmcp.server.providers": "isthmus.Server.add_provider",
    "fastmcp.server.openapi": "isthmus.Server.from_openapi",
    "fastmcp.server.tasks": "isthmus' own tasks, task= of a tool",
    "fastmcp_tasks": "isthmus' own tasks, task= of a tool",
    "fastmcp.server.proxy": "isthmus.Server.proxy",
}

GUIDE = "docs/guide/compat.md"


def find_own_name(name: str) -> str | None:
    """The module of ours that stands for one of theirs; None where there is none."""
    moved = MOVED.get(name)
    if moved is not None:
        return moved
    root, _, rest = name.partition(".")
    own = f"{OWN_ROOTS[root]}.{rest}" if rest else OWN_ROOTS[root]
    try:
        return own if own in sys.modules or find_spec(own) is not None else None
    except ModuleNotFoundError:
        return None


def describe_missing(name: str) -> str:
    """The message for a name of another library that the façades lack."""
    found = [own for start, own in REPLACEMENTS.items() if f"{name}.".startswith(f"{start}.")]
    instead = f"use {found[0]} instead; " if found else ""
    return f"isthmus has no {name} among its façades: {instead}{GUIDE} lists what there is"


class FacadeFinder(MetaPathFinder, Loader):
    """Finder and loader of the other libraries' modules; the first one that Python asks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module of another library; None for a module of anybody else.

        Raises:
            ModuleNotFoundError: the façades lack it.
        """
        del path, target
        if fullname.partition(".")[0] not in OWN_ROOTS:
            return None
        own = find_own_name(fullname)
        if own is None:
            raise ModuleNotFoundError(describe_missing(fullname), name=fullname)
        return ModuleSpec(fullname, self, origin=own)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module of ours itself."""
        module = import_module(str(spec.origin))
        spec.loader_state = module.__spec__  # which the import system overwrites next
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the module's own specification back, and have names that it lacks say what to use."""
        spec = module.__spec__
        if spec is None:
            return
        name, module.__spec__ = spec.name, spec.loader_state
        if not hasattr(
            module, "__path__"
        ):  # of theirs it is a package, and may have modules below it
            module.__path__ = []
        if not hasattr(module, "__getattr__"):
            vars(module)["__getattr__"] = make_missing_getattr(name)


def make_missing_getattr(module: str) -> Any:
    """The ``__getattr__`` of a façade: ``from module import name`` says what to use instead."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        try:  # a module below it, as `import mcp; mcp.types` may ask for
            return import_module(f"{module}.{name}")
        except ModuleNotFoundError:
            raise ImportError(describe_missing(f"{module}.{name}"), name=module) from None

    return find


def install_facades() -> None:
    """Have every later import of ``mcp``, ``mcp_types`` and ``fastmcp`` in this process get the façades.

    Raises:
        ImportError: one of the libraries themselves was imported before.
    """
    if any(isinstance(finder, FacadeFinder) for finder in sys.meta_path):
        return
    present = [root for root in OWN_ROOTS if root in sys.modules]
    if present:
        raise ImportError(
            f"{', '.join(present)} was imported before the façades were put in its place; start the "
            "program by isthmus run --compat"
        )
    sys.meta_path.insert(0, FacadeFinder())
