"""Views: the subsets of a host's servers that a gateway offers at one endpoint, and their names there.

One view has all servers, or those of a profile, under the names of the host's catalog: ``server__tool`` and
``server+uri``. The view of one server has its own names. Both translate both ways.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import structs

from isthmus.host.catalog.names import CatalogItem, Viewer, join_uri, split_uri
from isthmus.host.model.errors import Unknown
from isthmus.host.model.gateway_options import GatewayProfile
from isthmus.wire import Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from isthmus.host.host import Host

ItemT = TypeVar("ItemT")

Owned = tuple[str, str]
"""A server, and the name or URI of something as that server spells it."""


class GatewayView(Protocol):
    """The servers that one endpoint of a gateway offers.

    Attributes:
        label: the view as messages call it.
    """

    @property
    def label(self) -> str: ...  # noqa: D102 - an attribute

    def servers(self) -> Sequence[str]:
        """The names of its servers, as the configuration has them now."""
        ...

    def offers(self, server: str, name: str) -> bool:
        """Whether it has a tool or prompt of a server, by its name in the host's catalog."""
        ...

    def find_tool(self, name: str, viewer: Viewer) -> Owned:
        """The server and its own name of a tool.

        Raises:
            Unknown: there is none that is known.
        """
        ...

    def find_prompt(self, name: str, viewer: Viewer) -> Owned:
        """The same of a prompt."""
        ...

    def find_resource(self, uri: str, viewer: Viewer) -> Owned:
        """The same of a resource, or of what a template makes."""
        ...

    def spell_name(self, item: CatalogItem[Any]) -> str:
        """The name of a tool or prompt here."""
        ...

    def spell_uri(self, server: str, uri: str) -> str:
        """The URI of a resource here."""
        ...


class MergedView:
    """All servers of a host, or those of a profile, under the names of the catalog.

    Args:
        host: knows what servers have, and their names.
        profile: what it is cut to; None for everything.
        name: of the profile.
    """

    def __init__(self, host: "Host", profile: GatewayProfile | None = None, name: str = "") -> None:
        self.label = f"profile {name!r}" if name else "all servers"
        self.profile = profile
        self._host = host

    def servers(self) -> Sequence[str]:
        """The names of its servers."""
        globs = () if self.profile is None else self.profile.servers
        return [name for name in self._host.config.servers if not globs or matches_any(name, globs)]

    def offers(self, server: str, name: str) -> bool:
        """Whether the profile has it."""
        profile = self.profile
        if profile is None:
            return True
        if profile.servers and not matches_any(server, profile.servers):
            return False
        if matches_any(name, profile.exclude):
            return False
        return not profile.include or matches_any(name, profile.include)

    def find_tool(self, name: str, viewer: Viewer) -> Owned:
        """The server and its own name of a tool."""
        found = self._host.catalog.resolve(name, viewer)
        return self._check(found, name, "tool")

    def find_prompt(self, name: str, viewer: Viewer) -> Owned:
        """The same of a prompt."""
        found = self._host.catalog.resolve_prompt(name, viewer)
        return self._check(found, name, "prompt")

    def _check(self, found: Owned, name: str, what: str) -> Owned:
        if not self.offers(found[0], name):
            raise Unknown(f"there is no {what} {name!r}")
        return found

    def find_resource(self, uri: str, viewer: Viewer) -> Owned:  # noqa: ARG002 - as GatewayView has it
        """The same of a resource: the server stands in its URI."""
        found = split_uri(uri)
        if found is None or found[0] not in self.servers():
            raise Unknown(f"there is no resource {uri!r}")
        return found

    def spell_name(self, item: CatalogItem[Any]) -> str:
        """The name in the catalog."""
        return item.name

    def spell_uri(self, server: str, uri: str) -> str:
        """The URI with its server."""
        return join_uri(server, uri)


class ServerView:
    """One server of a host, under its own names.

    Args:
        host: knows what it has.
        server: its name in the configuration.
    """

    def __init__(self, host: "Host", server: str) -> None:
        self.label = f"server {server!r}"
        self.server = server
        self._host = host

    def servers(self) -> Sequence[str]:
        """Its name."""
        return [self.server] if self.server in self._host.config.servers else []

    def offers(self, server: str, name: str) -> bool:  # noqa: ARG002 - as GatewayView has it
        """Whether it is of this server."""
        return server == self.server

    def find_tool(self, name: str, viewer: Viewer) -> Owned:
        """The server, and its own name of a tool."""
        rename = self._host.catalog.choice(self.server).rename if self.servers() else {}
        own = next((one for one, shown in rename.items() if shown == name), name)
        self._host.catalog.name_of(self.server, own, viewer)
        return self.server, own

    def find_prompt(self, name: str, viewer: Viewer) -> Owned:
        """The same of a prompt."""
        if not any(
            item.server == self.server and item.what.name == name
            for item in self._host.catalog.prompts(viewer)
        ):
            raise Unknown(f"there is no prompt {name!r}")
        return self.server, name

    def find_resource(self, uri: str, viewer: Viewer) -> Owned:  # noqa: ARG002 - as GatewayView has it
        """The same of a resource."""
        return self.server, uri

    def spell_name(self, item: CatalogItem[Any]) -> str:
        """The name that the server gives it, or the configuration in its place."""
        rename = self._host.catalog.choice(self.server).rename
        own: str = item.what.name
        return rename.get(own, own)

    def spell_uri(self, server: str, uri: str) -> str:  # noqa: ARG002 - as GatewayView has it
        """The URI as it is."""
        return uri


def matches_any(name: str, globs: Sequence[str]) -> bool:
    """Whether a name matches one of several globs."""
    return any(fnmatchcase(name, glob) for glob in globs)


def spell_tool(view: GatewayView, item: CatalogItem[Tool], described: Mapping[str, str]) -> Tool:
    """A tool as a view offers it: with its name there, and the description of the configuration."""
    tool = item.what
    changes: dict[str, Any] = {"name": view.spell_name(item)}
    if tool.name in described:
        changes["description"] = described[tool.name]
    return structs.replace(tool, **changes)


def spell_prompt(view: GatewayView, item: CatalogItem[Prompt]) -> Prompt:
    """A prompt as a view offers it."""
    return structs.replace(item.what, name=view.spell_name(item))


def spell_resource(view: GatewayView, item: CatalogItem[Resource]) -> Resource:
    """A resource as a view offers it."""
    return structs.replace(item.what, uri=view.spell_uri(item.server, item.what.uri))


def spell_template(view: GatewayView, item: CatalogItem[ResourceTemplate]) -> ResourceTemplate:
    """A template of resources as a view offers it."""
    uri = view.spell_uri(item.server, item.what.uri_template)
    return structs.replace(item.what, uri_template=uri)
