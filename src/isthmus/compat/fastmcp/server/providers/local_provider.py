"""Provider whose components are declared on it, under the name of ``fastmcp.server.providers.local_provider``."""

from collections.abc import Sequence
from typing import Any

from isthmus.compat.fastmcp.server.component_holder import ComponentHolder
from isthmus.compat.fastmcp.server.providers.component_provider import Provider
from isthmus.compat.fastmcp.server.registry import ComponentRegistry, Duplicates


class LocalProvider(ComponentHolder, Provider):
    """Provider with the decorators of a server: ``@provider.tool``; several servers may have it.

    Args:
        on_duplicate: what is done about a second component of a name.
    """

    def __init__(self, on_duplicate: Duplicates = "error") -> None:
        super().__init__()
        self.registry = ComponentRegistry(on_duplicate)

    async def _list_tools(self) -> Sequence[Any]:
        return [*self.registry.own["tool"].values()]

    async def _list_resources(self) -> Sequence[Any]:
        return [*self.registry.own["resource"].values()]

    async def _list_resource_templates(self) -> Sequence[Any]:
        return [*self.registry.own["template"].values()]

    async def _list_prompts(self) -> Sequence[Any]:
        return [*self.registry.own["prompt"].values()]
