"""Views: the subsets of a host's servers that a gateway offers at one endpoint, and their names there.

One view has all servers, or those of a profile, under the names of the host's catalog: ``server__tool`` and
``server+uri``. The view of one server has its own names. Both translate both ways.
"""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import structs

from isthmus.gateway.offers.spelling import spell_app_page
from isthmus.host.catalog.names import CatalogItem, Viewer, join_uri, make_name, split_uri
from isthmus.host.model.errors import Unknown
from isthmus.host.model.gateway_options import GatewayProfile
from isthmus.wire import Prompt, Resource, ResourceTemplate, Tool
from isthmus.wire.jsonrpc import shorten

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

    @property
    def profile(self) -> GatewayProfile | None:
        """The profile that it is cut to, as the options have it now; None for none."""
        ...

    @property
    def profile_name(self) -> str:
        """The name of the profile; empty for none."""
        ...

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

    def find_owner(self, name: str) -> str:
        """The server that the name of a tool or prompt can only be of; empty where there is none."""
        ...

    def name_tool(self, server: str, own: str) -> str:
        """The name of a tool in the host's catalog, by its own."""
        ...

    def find_searched(self, name: str, viewer: Viewer) -> str:
        """The name here of a tool that was found under its name in the host's catalog."""
        ...

    def spell_name(self, item: CatalogItem[Any]) -> str:
        """The name of a tool or prompt here."""
        ...

    def spell_uri(self, server: str, uri: str) -> str:
        """The URI of a resource here."""
        ...


# the profile of a view whose own was taken away: it has nothing
NO_OFFER = GatewayProfile(exclude=("*",), servers=("",))


def make_unknown(what: str, name: str) -> Unknown:
    """The error for what is not there for a client, whether or not it is anywhere: the same words."""
    return Unknown(f"Unknown {what}: {shorten(name)}")


class MergedView:
    """All servers of a host, or those of a profile, under the names of the catalog.

    Args:
        host: knows what servers have, and their names.
        find_profile: finds what it is cut to, as the options have it now; None for everything.
        name: of the profile.
    """

    def __init__(
        self,
        host: "Host",
        find_profile: Callable[[], GatewayProfile | None] = lambda: None,
        name: str = "",
    ) -> None:
        self.label = f"profile {name!r}" if name else "all servers"
        self.profile_name = name
        self._find_profile = find_profile
        self._host = host

    @property
    def profile(self) -> GatewayProfile | None:
        """The profile as it is now; one that was taken away has nothing."""
        return (self._find_profile() or NO_OFFER) if self.profile_name else None

    def servers(self) -> Sequence[str]:
        """The names of its servers."""
        profile = self.profile
        globs = () if profile is None else profile.servers
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
        owners = self._host.catalog.view(viewer).tool_names.owners
        return self._check(owners.get(name), name, "tool")

    def find_prompt(self, name: str, viewer: Viewer) -> Owned:
        """The same of a prompt."""
        owners = self._host.catalog.view(viewer).prompt_names.owners
        return self._check(owners.get(name), name, "prompt")

    def _check(self, found: Owned | None, name: str, what: str) -> Owned:
        if found is None or not self.offers(found[0], name):
            raise make_unknown(what, name)
        return found

    def find_resource(self, uri: str, viewer: Viewer) -> Owned:  # noqa: ARG002 - as GatewayView has it
        """The same of a resource: the server stands in its URI."""
        found = split_uri(uri)
        if found is None or found[0] not in self.servers():
            raise make_unknown("resource", uri)
        return found

    def find_owner(self, name: str) -> str:
        """The server whose names begin so, where the view may have this one."""
        owner = self._host.parts.servers.find_owner(name.split("__", 1)[0])
        return owner if owner in self.servers() and self.offers(owner, name) else ""

    def name_tool(self, server: str, own: str) -> str:
        """The name that the catalog makes."""
        return make_name(server, self._host.catalog.choice(server).rename.get(own, own))

    def find_searched(self, name: str, viewer: Viewer) -> str:  # noqa: ARG002 - as GatewayView has it
        """The same name."""
        return name

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

    profile: GatewayProfile | None = None
    profile_name = ""

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
        if (self.server, own) not in self._host.catalog.view(viewer).tool_names.names or (
            own == name and own in rename  # it has another name here
        ):
            raise make_unknown("tool", name)
        return self.server, own

    def find_prompt(self, name: str, viewer: Viewer) -> Owned:
        """The same of a prompt."""
        if (self.server, name) not in self._host.catalog.view(viewer).prompt_names.names:
            raise make_unknown("prompt", name)
        return self.server, name

    def find_resource(self, uri: str, viewer: Viewer) -> Owned:  # noqa: ARG002 - as GatewayView has it
        """The same of a resource."""
        return self.server, uri

    def find_owner(self, name: str) -> str:  # noqa: ARG002 - as GatewayView has it
        """The server."""
        return self.server if self.servers() else ""

    def name_tool(self, server: str, own: str) -> str:
        """The name that the catalog makes."""
        return make_name(server, self._host.catalog.choice(server).rename.get(own, own))

    def find_searched(self, name: str, viewer: Viewer) -> str:
        """The name that the server gives it, or the configuration in its place."""
        found = self._host.catalog.view(viewer).tool_names.owners.get(name)
        if found is None or found[0] != self.server:
            return name
        return self._host.catalog.choice(self.server).rename.get(found[1], found[1])

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
    if tool.meta:
        changes["meta"] = spell_app_page(tool.meta, lambda uri: view.spell_uri(item.server, uri))
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
