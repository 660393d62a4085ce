"""Options of a gateway: the member ``gateway`` of a configuration's ``host``."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from isthmus.host.model.calling_client import Answerer
from isthmus.host.model.units import Rate, Seconds

SearchMode: TypeAlias = Literal["auto", "always", "never"]
"""When a client gets the tools that find tools in place of a list: by its size, always, or never."""


class GatewayProfile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A named subset of what a gateway offers, at ``/mcp/p/NAME``.

    Attributes:
        servers: globs of the servers that it has; none means all.
        include: globs of names, ``server__tool``, that it has; none means all.
        exclude: globs of names that it has not, whatever ``include`` says.
        policy: a file of rules, or the name of one that comes with isthmus, that can only tighten the
            policy of the host.
        search: when its tools are found by searching; None as the gateway has it.
        title: of the profile, for people; empty for none.
        instructions: for models, in place of those of its servers.
    """

    servers: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    policy: str = ""
    search: SearchMode | None = None
    title: str = ""
    instructions: str = ""


class ApprovalOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """Options for calls that a person has to approve while a client waits.

    Attributes:
        hold: seconds that a call is held for a client that gave no progress token.
        hold_with_progress: the same for one that did, and hears of it every ten seconds.
        expiry: seconds that an approval, decided or not, waits for the call that it is for.
        on_leave: whether a question stays open when the client that made the call has left.
    """

    hold: Seconds = 50.0
    hold_with_progress: Seconds = 240.0
    expiry: Seconds = 900.0
    on_leave: Literal["keep", "cancel"] = "keep"


class ParkingOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of calls that wait for their clients to come again with answers.

    Such a call may hold a connection: by default a quarter of the connections that there may be, in all and
    of each principal, is left to other calls (:class:`GatewayLimits`).

    Attributes:
        calls: how many there may be.
        calls_of_principal: how many of them may be of one principal.
        ttl: seconds that each may wait.
    """

    calls: int = 48
    calls_of_principal: int = 12
    ttl: Seconds = 600.0


class GatewayLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of what the clients of a gateway may use.

    Attributes:
        calls: calls a minute of one principal at one server; None for any number. The server's own
            ``limits.calls`` counts in a gateway only where its entry says it.
        connections: connections to servers that belong to one session or principal, in all.
        connections_of_principal: the same of one principal.
        idle: seconds that such a connection is kept when nobody uses it.
    """

    calls: Rate | None = 600.0
    connections: int = 64
    connections_of_principal: int = 16
    idle: Seconds = 300.0


class ConsoleOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """Options of the console that ``isthmus gateway`` serves at ``/console``.

    Attributes:
        login: who signs in: ``local``, the user of this machine, by a token; ``proxy``, users whom a proxy
            names; ``authorization``, users of an authorization server.
        operators: those who see everything; with ``proxy`` the names that it gives, else principals
            such as ``user:ada@login.example``.
        header: the proxy's, which names the user.
        trusted_proxies: the proxy's addresses.
        issuer: the authorization server; with ``proxy`` the one whose users the proxy names, where calls
            come with its tokens.
        operator_scope: whoever's token has this scope is an operator, too.
        resource: the URL that tokens are asked for; by default that of the console.
        client_id: of the console at the issuer; empty where it registers itself.
    """

    login: Literal["local", "proxy", "authorization"] = "local"
    operators: tuple[str, ...] = ()
    header: str = "X-Forwarded-User"
    trusted_proxies: tuple[str, ...] = ()
    issuer: str = ""
    operator_scope: str = ""
    resource: str = ""
    client_id: str = ""


class GatewayOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """Options of a gateway.

    Attributes:
        name: the name that it gives as ``serverInfo``.
        title: the same for people; empty for none.
        version: the same, its version.
        instructions: for models, in place of those of the servers.
        answer: who answers what servers ask, the first who can.
        search: when clients get the tools that find tools in place of all tools.
        access_log: a file that gets a line of JSON about each call, ``-`` for standard error; empty for none.
        profiles: named subsets.
        console: the login of the console; None for the user of this machine, where the gateway's address
            is of this machine, and no console elsewhere.
        approvals: how long calls wait for people to approve them.
        parking: limits of calls that wait for their clients to come again with answers.
        limits: limits of what clients may use.
    """

    name: str = "isthmus-gateway"
    title: str = ""
    version: str = "0"
    instructions: str = ""
    answer: Annotated[tuple[Answerer, ...], Meta(min_length=1, max_length=2)] = (
        "client",
        "gateway",
    )
    search: SearchMode = "auto"
    access_log: str = ""
    profiles: Mapping[str, GatewayProfile] = {}
    console: ConsoleOptions | None = None
    approvals: ApprovalOptions = ApprovalOptions()
    parking: ParkingOptions = ParkingOptions()
    limits: GatewayLimits = GatewayLimits()
