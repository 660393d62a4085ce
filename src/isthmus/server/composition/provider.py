"""Provider: tools, resources and prompts that a server offers beside its own.

A mounted server is one, and so is a server behind a proxy. A server looks at its providers only when a
name is not its own; what its providers list follows its own items. Everything here is said in the
names that the clients of the outer server see: a provider translates on both sides.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Raw

from isthmus.core.principal import Principal
from isthmus.runtime.inbound import Inbound
from isthmus.wire import ServerCapabilities, Task
from isthmus.wire.struct import Meta, Wire

if TYPE_CHECKING:
    from isthmus.server.change_broadcast import Change

Changed: TypeAlias = "Callable[[Change], None]"
"""Told of ``(notification, uri or None)``: a changed list, or a resource that was updated."""

LISTED_BY = {
    "tools/call": "tools/list",
    "prompts/get": "prompts/list",
    "resources/read": "resources/list",
}
"""The method that lists what another one uses."""


class ProvidedTasks(Protocol):
    """The tasks that calls of a provider's tools have become."""

    async def knows(self, id: str, inbound: Inbound) -> bool:
        """Whether a task of this id is the provider's, and its caller's."""
        ...

    async def list_all(self, inbound: Inbound) -> Sequence[Task]:
        """All tasks of a caller (2025-11-25)."""
        ...

    async def granted(self, ids: Sequence[str], inbound: Inbound) -> Sequence[str]:
        """The tasks of these ids that a stream of changes may be told of (since 2026-07-28)."""
        ...

    async def follow(self, ids: Sequence[str], inbound: Inbound, meta: Meta) -> Callable[[], None]:
        """Tell a stream how tasks stand, now and whenever that changes; returns what ends it."""
        ...


class ItemProvider(Protocol):
    """Tools, resources and prompts that a server offers beside its own.

    Handlers of ``serve`` are ``tools/call``, ``prompts/get``, ``resources/read``,
    ``completion/complete``, and where there are ``tasks`` also ``tasks/get``, ``tasks/result``,
    ``tasks/cancel`` and ``tasks/update``. It is also told ``resources/subscribe`` and
    ``resources/unsubscribe``: of sessions, and of each resource of a stream of changes as it begins and
    ends; the outer server itself remembers who subscribed and tells them what ``attach`` was told.

    It may have ``find_item(method, key)``, too: something as it is listed, if that is known without waiting. Rules
    of visibility look at it, and otherwise into the lists.

    Attributes:
        label: the provider as messages call it: ``"mounted server 'weather'"``.
        tasks: its tasks, where calls of its tools may become some.
    """

    @property
    def label(self) -> str: ...  # noqa: D102 - an attribute
    @property
    def tasks(self) -> ProvidedTasks | None: ...  # noqa: D102 - an attribute

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """The capabilities of what it has now, for the sender of a request."""
        ...

    def serves(self, method: str, key: str) -> bool:
        """Whether something may be one of its: it is looked for nowhere else then.

        It is quick, and as exact as it can be without waiting.

        Args:
            method: ``tools/call``, ``prompts/get``, ``resources/read`` or ``completion/complete``.
            key: a tool's or prompt's name, a resource's URI; of a completion the prompt's name, or
                the URI of a template or resource.
        """
        ...

    def guesses(self, method: str, key: str) -> bool:
        """Whether :meth:`serves` says yes for lack of a list: a provider that is sure goes first."""
        ...

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """All items that a method lists, in one page; those of ``ProvidedItems`` are encoded once."""
        ...

    def serve(self, method: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        """Serve a request.

        Args:
            method: the method.
            params: its decoded params.
            inbound: the request; its raw params are the outer server's.

        Raises:
            Refuse: it is refused, as a handler does it.
        """
        ...

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:
        """The scopes that a request takes; none for what is not its."""
        ...

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:
        """The scopes that every use of something takes, by which lists are cut for their reader."""
        ...

    def known_scopes(self) -> frozenset[str]:
        """Every scope that anything it has takes, whoever asks."""
        ...

    def attach(self, changed: Changed) -> None:
        """Tell of changes from now on, from any thread: the outer server begins to serve."""
        ...

    async def open(self) -> None:
        """Begin: the lifespan of the outer server is open.

        Raises:
            Exception: it cannot begin; the outer server cannot, either.
        """
        ...

    async def close(self) -> None:
        """End: the lifespan of the outer server is closed afterwards."""
        ...
