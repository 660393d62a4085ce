"""Registry of a server written for fastmcp: its components, those of mounted servers, and what is hidden."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from isthmus.compat.fastmcp.components.component import FastMCPComponent
from isthmus.compat.fastmcp.exceptions import NotFoundError
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.utilities.authorization import check_auth, may_use

Kind = Literal["tool", "resource", "template", "prompt"]

KINDS: tuple[Kind, ...] = ("tool", "resource", "template", "prompt")

LIST_METHODS: dict[Kind, str] = {
    "tool": "tools/list",
    "resource": "resources/list",
    "template": "resources/templates/list",
    "prompt": "prompts/list",
}

NOTIFICATIONS: dict[Kind, str] = {
    "tool": "notifications/tools/list_changed",
    "resource": "notifications/resources/list_changed",
    "template": "notifications/resources/list_changed",
    "prompt": "notifications/prompts/list_changed",
}

Duplicates = Literal["warn", "error", "replace", "ignore"]

logger = logging.getLogger("fastmcp.server")


@dataclass(frozen=True)
class VisibilityRule:
    """Rule that enables or disables components; the last one that fits decides.

    Attributes:
        enables: whether it enables them.
        names, keys, tags: which; all of them where none is named.
        kinds: of which kinds; of all where none is named.
    """

    enables: bool
    names: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def fits(self, component: FastMCPComponent) -> bool:
        """Whether it is about a component."""
        if self.kinds and component.KEY_PREFIX not in self.kinds:
            return False
        if not (self.names or self.keys or self.tags):
            return True
        return (
            component.name in self.names
            or component.identifier in self.names
            or component.key in self.keys
            or component.key.removesuffix("@") in self.keys
            or not self.tags.isdisjoint(component.tags)
        )


@dataclass
class MountedFacade:
    """Server or provider that another server offers, under a prefix.

    Attributes:
        server: the server or provider.
        prefix: what its names begin with; none for None.
        tool_names: names that single tools have instead.
        provides: it is a provider, whose components are the outer server's own.
    """

    server: Any
    prefix: str | None
    tool_names: dict[str, str] = field(default_factory=dict)
    provides: bool = False

    def to_outer(self, kind: Kind, name: str) -> str:
        """The name or URI that clients of the outer server see."""
        if kind == "tool" and name in self.tool_names:
            return self.tool_names[name]
        if not self.prefix:
            return name
        if kind in ("tool", "prompt"):
            return f"{self.prefix}_{name}"
        scheme, separator, rest = name.partition("://")
        return f"{scheme}{separator}{self.prefix}/{rest}" if separator else name

    def to_inner(self, kind: Kind, name: str) -> str | None:
        """The name or URI that the mounted server knows; None for what cannot be its."""
        for inner, outer in self.tool_names.items():
            if kind == "tool" and outer == name:
                return inner
        if not self.prefix:
            return name
        if kind in ("tool", "prompt"):
            start = f"{self.prefix}_"
            return name[len(start) :] if name.startswith(start) else None
        scheme, separator, rest = name.partition("://")
        start = f"{self.prefix}/"
        return f"{scheme}{separator}{rest[len(start) :]}" if rest.startswith(start) else None

    def rename(self, kind: Kind, component: Any) -> Any:
        """A component as clients of the outer server see it."""
        outer = self.to_outer(kind, component.identifier)
        if outer == component.identifier:
            return component
        member = {"resource": "uri", "template": "uri_template"}.get(kind, "name")
        changes = {member: outer}
        if FLAVOUR.prefixes_resources and kind in ("resource", "template"):
            changes["name"] = f"{self.prefix}_{component.name}"
        return component.model_copy(update=changes)


class ComponentRegistry:
    """Components of one server, by kind and identifier.

    Args:
        duplicates: what is done about a second one of a name.

    Attributes:
        own: its own components.
        sources: servers mounted in it and providers; the first one that has a name wins.
        followers: registries that tell of its changes, too.
        rules: what is hidden.
        on_change: told of the notification for a list that changed.
        on_tasks: told that there is a tool which may run as a task.
    """

    def __init__(self, duplicates: Duplicates = "warn") -> None:
        self.duplicates = duplicates
        self.own: dict[Kind, dict[str, Any]] = {kind: {} for kind in KINDS}
        self.sources: list[MountedFacade] = []
        self.followers: list[ComponentRegistry] = []
        self.rules: list[VisibilityRule] = []
        self.on_change: Callable[[str], None] | None = None
        self.on_tasks: Callable[[], None] | None = None

    def add(self, kind: Kind, component: Any) -> Any:
        """Add a component; gives the one that is there afterwards.

        Raises:
            ValueError: there is one of its name, and that is an error here.
            UsageError: its authorization check is none.
        """
        if component.auth is not None:
            check_auth(component.auth, f"the {kind} {component.identifier!r}")
        key, known = component.identifier, self.own[kind]
        if key in known:
            if self.duplicates == "error":
                raise ValueError(f"Component already exists: {component.key}")
            if self.duplicates == "ignore":
                return known[key]
            if self.duplicates == "warn":
                logger.warning("Component already exists: %s", component.key)
        known[key] = component
        if component.task_config.supports_tasks():
            self.announce_tasks()
        self.announce(kind)
        return component

    def remove(self, kind: Kind, key: str) -> None:
        """Remove a component.

        Raises:
            NotFoundError: there is none of this name.
        """
        if self.own[kind].pop(key, None) is None:
            raise NotFoundError(f"Unknown {kind}: {key!r}")
        self.announce(kind)

    def announce(self, kind: Kind) -> None:
        """Tell that a list changed."""
        if self.on_change is not None:
            self.on_change(NOTIFICATIONS[kind])
        for one in self.followers:
            one.announce(kind)

    def announce_tasks(self) -> None:
        """Tell that there is a tool which may run as a task."""
        if self.on_tasks is not None:
            self.on_tasks()
        for one in self.followers:
            one.announce_tasks()

    def add_rule(self, rule: VisibilityRule) -> None:
        """Enable or disable components from now on."""
        self.rules.append(rule)
        for kind in KINDS:
            self.announce(kind)

    def is_visible(self, component: Any) -> bool:
        """Whether a component is offered."""
        if not component.enabled:
            return False
        for rule in reversed(self.rules):
            if rule.fits(component):
                return rule.enables
        return True

    def find_own(self, kind: Kind, key: str) -> Any:
        """A component of the server itself that is offered; None for none."""
        component = self.own[kind].get(key)
        return component if component is not None and self.is_visible(component) else None

    async def find_admitted(self, kind: Kind, key: str) -> Any:
        """A component of the server itself that its caller may use; None for none.

        Raises:
            NotFoundError: its check does not admit the caller, for whom it does not exist, and nothing in its place.
        """
        found = self.find_own(kind, key) or await self._find_provided(kind, key)
        if found is not None and not await may_use(found):
            raise NotFoundError(f"Unknown {kind}: {key!r}")
        return found

    @property
    def mounts(self) -> list[MountedFacade]:
        """The servers mounted in it."""
        return [one for one in self.sources if not one.provides]

    @property
    def providers(self) -> list[MountedFacade]:
        """The providers."""
        return [one for one in self.sources if one.provides]

    async def _find_provided(self, kind: Kind, key: str) -> Any:
        """A component of a provider; None for none."""
        for one in self.providers:
            inner = one.to_inner(kind, key)
            found = None if inner is None else await one.server.find_component(kind, inner)
            if found is not None:
                renamed = one.rename(kind, found)
                return renamed if self.is_visible(renamed) else None
        return None

    async def match_template(self, uri: str) -> tuple[Any, dict[str, Any]] | None:
        """The template that a URI matches, its own or one of a provider, and the values of its names."""
        for template in self.own["template"].values():
            values = template.matches(uri) if self.is_visible(template) else None
            if values is not None:
                return template, values
        for one in self.providers:
            inner = one.to_inner("resource", uri)
            found = None if inner is None else await one.server.find_component("template", inner)
            if found is not None and self.is_visible(one.rename("template", found)):
                return found, found.matches(inner)
        return None

    async def list_all(self, kind: Kind, *, checked: bool = True) -> list[Any]:
        """All components of a kind that are offered, those of mounted servers after its own.

        Args:
            kind: the kind.
            checked: only those that the caller may use.
        """
        found = {
            key: one
            for key, one in self.own[kind].items()
            if self.is_visible(one) and (not checked or await may_use(one))
        }
        for source in self.sources:
            for one in await self._list_source(source, kind, checked=checked):
                renamed = source.rename(kind, one)
                if renamed.identifier not in found and self.is_visible(renamed):
                    found[renamed.identifier] = renamed
        return [*found.values()]

    async def _list_source(
        self, source: MountedFacade, kind: Kind, *, checked: bool
    ) -> Sequence[Any]:
        inner = source.server
        if not (source.provides or checked):
            unchecked: Sequence[Any] = await inner.registry.list_all(kind, checked=False)
            return unchecked
        listed: Sequence[Any] = await inner.list_components(kind)
        if source.provides and checked:
            return [one for one in listed if await may_use(one)]
        return listed

    async def find_mount(self, kind: Kind, key: str) -> tuple[MountedFacade, str] | None:
        """The mounted server that has a component, and the name that it has there."""
        for mount in self.mounts:
            inner = mount.to_inner(kind, key)
            if inner is not None and await mount.server.find_component(kind, inner) is not None:
                return mount, inner
        return None


def make_rule(
    enables: bool,
    names: Collection[str] | None,
    keys: Collection[str] | None,
    tags: Collection[str] | None,
    components: Collection[str] | None,
) -> VisibilityRule:
    """Make a rule of the arguments of ``mcp.enable`` and ``mcp.disable``."""
    return VisibilityRule(
        enables,
        frozenset(names or ()),
        frozenset(keys or ()),
        frozenset(tags or ()),
        frozenset(components or ()),
    )


class VisibilityControl:
    """Holder of a registry, some of whose components may be hidden from everybody.

    Args:
        registry: has the components.

    Attributes:
        registry: has the components.
    """

    def __init__(self, registry: ComponentRegistry) -> None:
        self.registry = registry

    def enable(
        self,
        *,
        names: Collection[str] | None = None,
        keys: Collection[str] | None = None,
        tags: Collection[str] | None = None,
        components: Collection[str] | None = None,
        only: bool = False,
        **_: Any,
    ) -> Self:
        """Offer what was disabled; ``only`` hides all else."""
        if only:
            self.registry.add_rule(make_rule(False, None, None, None, components))
        self.registry.add_rule(make_rule(True, names, keys, tags, components))
        return self

    def disable(
        self,
        *,
        names: Collection[str] | None = None,
        keys: Collection[str] | None = None,
        tags: Collection[str] | None = None,
        components: Collection[str] | None = None,
        **_: Any,
    ) -> Self:
        """Hide components from everybody."""
        self.registry.add_rule(make_rule(False, names, keys, tags, components))
        return self
