"""Viewed host: the part of a host that a view needs."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.approvals.broker import Broker
    from isthmus.host.approvals.grants import Grants
    from isthmus.host.audit.log import AuditLog
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.model.attempt import Action, Origin
    from isthmus.host.model.calling_client import Callers
    from isthmus.host.model.entries import HostConfig
    from isthmus.host.model.events import HostEvent
    from isthmus.host.model.trace import Trace
    from isthmus.host.pipeline.calls import HostCalls
    from isthmus.host.pipeline.runs import Run
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.host.traffic.recorder import TrafficRecorder


class ExplainedPolicy(Protocol):
    """The policy of a host, which says what it would answer."""

    async def explain(
        self,
        *,
        action: "Action" = "tool.call",
        server: str,
        tool: str = "",
        args: Mapping[str, Any] | None = None,
        principal: str = "user:local",
        run: str = "",
        origin: "Origin" = "local",
        profile: str = "",
    ) -> "Trace":
        """Explain what policy would say to an attempt."""
        ...


class ViewedHost(Protocol):
    """The part of a host that a view needs."""

    @property
    def config(self) -> "HostConfig":
        """The configuration in force."""
        ...

    @property
    def servers(self) -> "Mapping[str, HostedServer]":
        """The servers by name."""
        ...

    @property
    def strikes(self) -> Mapping[str, int]:
        """The strikes of each server."""
        ...

    @property
    def catalog(self) -> "HostCatalog":
        """Knows what servers have."""
        ...

    @property
    def broker(self) -> "Broker":
        """Puts questions to people."""
        ...

    @property
    def grants(self) -> "Grants":
        """What was said yes to for longer than once."""
        ...

    @property
    def audit(self) -> "AuditLog":
        """The audit log."""
        ...

    @property
    def calls(self) -> "HostCalls":
        """Makes attempts."""
        ...

    @property
    def accounts(self) -> "Accounts":
        """The accounts at servers."""
        ...

    @property
    def policy(self) -> ExplainedPolicy:
        """The policy in force."""
        ...

    @property
    def traffic(self) -> "TrafficRecorder":
        """Records calls while somebody watches."""
        ...

    @property
    def callers(self) -> "Callers | None":
        """Facts of a gateway; None where there is none."""
        ...

    def events(self) -> "AsyncIterator[HostEvent]":
        """Events from now on."""
        ...

    def run(self, principal: str) -> "Run":
        """A run for what belongs together."""
        ...

    def find_config_file(self) -> str:
        """The file that a server is written into."""
        ...

    async def reread(self) -> None:
        """Read the files of the configuration again."""
        ...
