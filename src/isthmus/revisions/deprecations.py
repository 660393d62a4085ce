"""Deprecated features of the protocol: what each is, until when it stays, and what replaces it.

The table is the registry of the specification (2026-07-28 ``deprecated``, under the policy of SEP-2596) with
the places where isthmus tells of it. A deprecated feature works as before in every revision that has it.
"""

from collections.abc import Mapping

import msgspec


class Deprecation(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that new programs should not use.

    Attributes:
        id: its short name.
        feature: what it is, for people.
        since: the revision that deprecates it.
        sep: the proposal that decided it.
        removal: the day from which a revision may remove it.
        instead: what replaces it, as the specification says.
        how: how that is done with isthmus.
        clause: where the specification says so.
        names: public names whose docstrings tell of it.
        pages: pages of ``docs/`` that tell of it.
    """

    id: str
    feature: str
    since: str
    sep: str
    removal: str
    instead: str
    how: str
    clause: str
    names: tuple[str, ...]
    pages: tuple[str, ...]

    @property
    def notice(self) -> str:
        """The notice for people, in a sentence."""
        return (
            f"Deprecated since {self.since} ({self.sep}); "
            f"a revision from {self.removal} on may remove it."
        )


_NEXT_YEAR = "2027-07-28"  # twelve months after the revision that deprecates them

_ROWS = (
    Deprecation(
        id="roots",
        feature="Roots",
        since="2026-07-28",
        sep="SEP-2577",
        removal=_NEXT_YEAR,
        instead="pass directories or files via tool parameters, resource URIs, or server configuration",
        how="a parameter of the tool, or an argument or environment variable of the server's command",
        clause="2026-07-28 client/roots",
        names=("isthmus.Context.roots",),
        pages=("guide/client-roots.md", "guide/asking-the-user.md"),
    ),
    Deprecation(
        id="sampling",
        feature="Sampling",
        since="2026-07-28",
        sep="SEP-2577",
        removal=_NEXT_YEAR,
        instead="integrate directly with LLM provider APIs",
        how="call the provider's API in the tool, with a key of the server's own",
        clause="2026-07-28 client/sampling",
        names=("isthmus.Context.sample",),
        pages=("guide/client-sampling.md", "guide/asking-the-user.md", "guide/host-sampling.md"),
    ),
    Deprecation(
        id="include-context",
        feature='`includeContext: "thisServer"` and `"allServers"`',
        since="2025-11-25",
        sep="SEP-2596",
        removal=_NEXT_YEAR,
        instead='omit the field or use "none"',
        how="leave `include_context=` out, and put what the model needs into the messages",
        clause="2026-07-28 client/sampling#capabilities",
        names=("isthmus.Context.sample",),
        pages=("guide/client-sampling.md",),
    ),
    Deprecation(
        id="logging",
        feature="Logging",
        since="2026-07-28",
        sep="SEP-2577",
        removal=_NEXT_YEAR,
        instead="log to stderr for stdio transports; use OpenTelemetry for observability",
        how="Python's `logging`, which goes to stderr, and `isthmus.telemetry`",
        clause="2026-07-28 server/utilities/logging",
        names=("isthmus.Context.log",),
        pages=("guide/logging-and-progress.md",),
    ),
    Deprecation(
        id="dynamic-registration",
        feature="Dynamic Client Registration",
        since="2026-07-28",
        sep="PR #2858",
        removal=_NEXT_YEAR,
        instead="Client ID Metadata Documents",
        how="`OAuth(client_metadata_url=…)` in clients; servers: `RegistrationPolicy(cimd=…)`, and `DcrPolicy(enabled=False)` once no client needs it",
        clause="2026-07-28 basic/authorization/client-registration#dynamic-client-registration",
        names=("isthmus.auth.DcrPolicy",),
        pages=("guide/auth-clients.md", "guide/auth-authorization-server.md"),
    ),
    Deprecation(
        id="http-sse",
        feature="HTTP+SSE",
        since="2025-03-26",
        sep="SEP-2596",
        removal="2026-09-03",  # three months after SEP-2596 became final, on 2026-06-03
        instead="Streamable HTTP",
        how="`Server.asgi()` and `Client(url)` speak it; leave `sse=` out once no client needs it",
        clause="2026-07-28 deprecated",
        names=("isthmus.HttpSse",),
        pages=("guide/http-sse.md",),
    ),
)

DEPRECATIONS: Mapping[str, Deprecation] = {row.id: row for row in _ROWS}  # by their ids
