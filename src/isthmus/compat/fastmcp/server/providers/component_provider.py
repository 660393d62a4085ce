"""Base of what gives a server its components, under the name of ``fastmcp.server.providers.base``."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from isthmus.compat.fastmcp.server.registry import (
    ComponentRegistry,
    Kind,
    MountedFacade,
    VisibilityControl,
)
from isthmus.errors import UsageError


class Provider(VisibilityControl):
    """Provider of components; a subclass overrides ``_list_tools`` and its like.

    What it gives is the server's own: called in its context, checked and masked as the server does it.

    Attributes:
        registry: what is hidden, and in :class:`LocalProvider` the components.
    """

    def __init__(self) -> None:
        super().__init__(ComponentRegistry("error"))

    def attach(self, server: Any, prefix: str | None) -> None:
        """Let a server offer its components.

        Args:
            server: the server.
            prefix: what their names begin with there; none for None.
        """
        server.registry.sources.append(MountedFacade(self, prefix, provides=True))
        self.registry.followers.append(server.registry)
        if any(one.task_config.supports_tasks() for one in self.registry.own["tool"].values()):
            self.registry.announce_tasks()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open what it needs, as long as its server is served: a subclass does."""
        yield

    # Overridden

    async def _list_tools(self) -> Sequence[Any]:
        """The tools."""
        return ()

    async def _list_resources(self) -> Sequence[Any]:
        """The resources."""
        return ()

    async def _list_resource_templates(self) -> Sequence[Any]:
        """The templates."""
        return ()

    async def _list_prompts(self) -> Sequence[Any]:
        """The prompts."""
        return ()

    async def _get_tool(self, name: str, version: Any = None) -> Any:  # noqa: ARG002 - as fastmcp has it
        """A tool; None for none."""
        return _find(await self._list_tools(), name)

    async def _get_resource(self, uri: str, version: Any = None) -> Any:  # noqa: ARG002 - same
        """A resource; None for none."""
        return _find(await self._list_resources(), uri)

    async def _get_resource_template(self, uri: str, version: Any = None) -> Any:  # noqa: ARG002 - same
        """A template that a URI matches; None for none."""
        listed = await self._list_resource_templates()
        return next((one for one in listed if one.matches(uri) is not None), None)

    async def _get_prompt(self, name: str, version: Any = None) -> Any:  # noqa: ARG002 - same
        """A prompt; None for none."""
        return _find(await self._list_prompts(), name)

    # For its servers

    async def list_tools(self) -> Sequence[Any]:
        """The tools that are not hidden."""
        return self._cut(await self._list_tools())

    async def list_resources(self) -> Sequence[Any]:
        """The resources that are not hidden."""
        return self._cut(await self._list_resources())

    async def list_resource_templates(self) -> Sequence[Any]:
        """The templates that are not hidden."""
        return self._cut(await self._list_resource_templates())

    async def list_prompts(self) -> Sequence[Any]:
        """The prompts that are not hidden."""
        return self._cut(await self._list_prompts())

    async def list_components(self, kind: Kind) -> Sequence[Any]:
        """The components of a kind that are not hidden."""
        listings: Mapping[Kind, Callable[[], Awaitable[Sequence[Any]]]] = {
            "tool": self.list_tools,
            "resource": self.list_resources,
            "template": self.list_resource_templates,
            "prompt": self.list_prompts,
        }
        return await listings[kind]()

    async def find_component(self, kind: Kind, key: str) -> Any:
        """A component that is not hidden; None for none. Of a template the key is a URI that it matches."""
        finders: Mapping[Kind, Callable[[str], Awaitable[Any]]] = {
            "tool": self._get_tool,
            "resource": self._get_resource,
            "template": self._get_resource_template,
            "prompt": self._get_prompt,
        }
        found = await finders[kind](key)
        return found if found is not None and self.registry.is_visible(found) else None

    def _cut(self, listed: Sequence[Any]) -> Sequence[Any]:
        return [one for one in listed if self.registry.is_visible(one)]

    def add_transform(self, transform: Any) -> NoReturn:
        """Transforms are isthmus' own.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"add_transform({type(transform).__name__}(…)) is not offered by isthmus.compat.fastmcp: use Server.include of "
            "isthmus; see docs/guide/composition.md"
        )


def _find(listed: Sequence[Any], key: str) -> Any:
    return next((one for one in listed if one.identifier == key), None)
