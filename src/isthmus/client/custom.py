"""What is sent to a server as it is, and what is not of the specification."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from msgspec import Struct, structs

from isthmus.client.connection import Connection, OnProgress, with_facts
from isthmus.client.extensions import Additions
from isthmus.client.limits import Limits
from isthmus.client.tasks import TaskRoom
from isthmus.client.tasks_methods import TaskMethods
from isthmus.client.tracing import traced
from isthmus.core.extensions import settings_of
from isthmus.core.opening import states_facts
from isthmus.errors import CapabilityMissing
from isthmus.revisions import METHODS
from isthmus.wire import DiscoverParams, PingParams

__all__ = ["Custom"]

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

NEEDS = (
    ("tools/", "tools"),
    ("prompts/", "prompts"),
    ("resources/", "resources"),
    ("completion/", "completions"),
    ("logging/", "logging"),
)
"""The capability that methods need, by how they begin."""


class Custom(TaskMethods):
    """Requests and notifications of the program's own, and of the server's own.

    Args:
        connection: carries the calls.
        limits: how much a list may hold.
        tasks: where calls that run as tasks are followed.
        additions: what serves and hears what is the server's own.
    """

    def __init__(
        self, connection: Connection, limits: Limits, tasks: TaskRoom, additions: Additions
    ) -> None:
        super().__init__(connection, limits, tasks)
        self._additions = additions

    async def ping(self, *, timeout: float | None = None) -> None:
        """See whether the server answers: ``ping``, or since 2026-07-28 ``server/discover``."""
        if states_facts(self._connection.settled().revision):
            params = DiscoverParams(meta=self._connection.meta)
            await self._connection.ask("server/discover", params, timeout=timeout)
        else:
            await self._connection.ask("ping", PingParams(), timeout=timeout)

    async def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        result: type[R] = dict,  # type: ignore[assignment]  # R is dict where nothing is given
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> R:
        """Send a request of your own, as it is: no question of the server's is answered.

        Args:
            method: any method; one of the specification's must be in the revision.
            params: a struct or plain data; what the revision wants in ``_meta`` is added.
            result: what to read the answer into.
            timeout: seconds without answer or progress; None for the client's.
            on_progress: told of progress.

        Raises:
            NotInRevision: the revision has no such method.
            CapabilityMissing: the server does not offer what it needs.
        """
        connection = self._connection
        for start, capability in NEEDS:
            if method.startswith(start):
                # spec 2025-11-25 basic/lifecycle#operation: both parties MUST only use
                # capabilities that were negotiated
                connection.require(capability, method)
        return await connection.send(
            method,
            traced(with_facts(params, connection.meta)),
            result,
            timeout=timeout,
            on_progress=on_progress,
            name=_name_in(method, params),
        )

    async def notify(self, method: str, params: Struct | Mapping[str, Any] | None = None) -> None:
        """Send a notification of your own.

        Args:
            method: any notification; one of the specification's must be in the revision.
            params: a struct or plain data.
        """
        await self._connection.live().note(method, params)

    def held(self) -> AbstractContextManager[None]:
        """Let no call on this connection time out meanwhile: ``with client.held():``.

        For who answers a server's question and asks a person, which takes as long as it takes; a
        time limit for that is theirs.
        """
        return self._connection.clocks.held()

    @property
    def is_held(self) -> bool:
        """Whether a person is asked on the server's behalf just now; see :meth:`held`."""
        return self._connection.clocks.still

    def on_undeclared(self, fn: F) -> F:
        """Decorate a function told of each question that this client did not offer to answer.

        The server was told what the client answers, and is refused: ``fn(method)``.
        """
        self._connection.answering.on_undeclared = fn
        return fn

    def on_notification(self, name: str, /, *, params: Any = dict) -> Callable[[F], F]:
        """Decorate a function told of a notification of the server's own: ``fn(params)``.

        Args:
            name: the notification's method.
            params: what its params decode to; what does not fit is ignored.

        Raises:
            UsageError: the name is taken, or the specification's: see ``on_log`` and ``on_change``.
        """
        return self._additions.on_notification(name, params)

    def method(self, name: str, /, *, params: Any = dict, result: Any = None) -> Callable[[F], F]:
        """Decorate what serves a request of a server's own, up to 2025-11-25: ``fn(params)``.

        Since 2026-07-28 servers send no requests.

        Args:
            name: the method.
            params: what its params decode to.
            result: the type of what the function returns; None where it returns nothing.

        Raises:
            UsageError: the name is taken, or the specification's.
        """
        return self._additions.method(name, params, result)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings the server declared for an extension, or None where it has it not."""
        return settings_of(self._connection.settled().capabilities, identifier)

    def require_extension(self, identifier: str) -> Mapping[str, Any]:
        """The settings the server declared for an extension.

        Raises:
            CapabilityMissing: it did not declare it.
        """
        settings = self.extension(identifier)
        if settings is None:
            raise CapabilityMissing(
                f"the server does not offer the extension {identifier}",
                {"extensions": {identifier: {}}},
            )
        return settings


def _name_in(method: str, params: Struct | Mapping[str, Any] | None) -> str | None:
    """What the ``Mcp-Name`` header of a request says: a tool's name, a URI, a task's id; or None."""
    row = METHODS.get(method)
    if row is None or row.named_by is None or params is None:
        return None
    if isinstance(params, Mapping):
        name = params.get(row.named_by)
    else:
        fields = {field.encode_name: field.name for field in structs.fields(params)}
        name = getattr(params, fields.get(row.named_by, ""), None)
    return name if isinstance(name, str) else None
