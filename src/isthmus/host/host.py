"""The host: many servers, and one user who is in charge of them."""

from collections.abc import AsyncIterator, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from isthmus.client.settings import OnProgress
from isthmus.client.targets import ClientTarget
from isthmus.host.config.entries import HostConfig
from isthmus.host.events import HostEvent
from isthmus.host.interaction import Approver

if TYPE_CHECKING:
    from isthmus.client.results import ToolResult
    from isthmus.wire import Completion, GetPromptResult, ReadResourceResult, Reference

__all__ = ["Host"]


class Host:
    """Many servers, and one user who decides what they see and do.

    Args:
        config: the servers and settings; None for none.
        approver: who is asked: surfaces, or functions that get an ``Interaction``; more can be
            attached later. Without any, what has to be asked is denied.
        policy: the name of a policy that comes with isthmus, a file, or a policy.
        models, providers: what servers that sample may use.
        state: the folder for what lasts; None keeps it in memory.
    """

    def __init__(
        self,
        config: HostConfig | None = None,
        *,
        approver: Approver | Any | None = None,
        policy: Any = None,
        models: Any = None,
        providers: Mapping[str, Any] | None = None,
        state: str | PathLike[str] | None = None,
    ) -> None:
        raise NotImplementedError

    @classmethod
    def from_config(cls, *paths: str | PathLike[str], **options: Any) -> Self:
        """A host with the servers of these files, or of the usual ones."""
        raise NotImplementedError

    def add(self, name: str, target: ClientTarget, **options: Any) -> None:
        """Add a server that stands in no file; options are those of ``ServerOptions``."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        principal: str = "user:local",
        run: Any = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> "ToolResult":
        """Call a tool, by the name it has in the catalog."""
        raise NotImplementedError

    async def read(
        self, uri: str, *, server: str | None = None, principal: str = "user:local", run: Any = None
    ) -> "ReadResourceResult":
        """Read a resource."""
        raise NotImplementedError

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        principal: str = "user:local",
        run: Any = None,
    ) -> "GetPromptResult":
        """Get a prompt, by the name it has in the catalog."""
        raise NotImplementedError

    async def complete(
        self,
        server: str,
        ref: "Reference",
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        principal: str = "user:local",
    ) -> "Completion":
        """What might go into a blank."""
        raise NotImplementedError

    def events(self) -> AsyncIterator[HostEvent]:
        """What happens from now on."""
        raise NotImplementedError
