"""Settings, keys, threads and state that all parts of one server share."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.core.redaction.messages import Redact
from isthmus.errors import UsageError
from isthmus.runtime.warning_limit import WarningLimit
from isthmus.server.guard.caching import CacheHints
from isthmus.server.guard.limits import Limiters, Limits
from isthmus.server.guard.sanitise import Sanitise
from isthmus.server.guard.scopes import ScopeVisibility
from isthmus.server.serve.lifespan import Lifespan
from isthmus.server.serve.workers import Workers
from isthmus.server.subscriptions import Subscriptions
from isthmus.wire import Implementation

if TYPE_CHECKING:
    from isthmus.nodes.node import Node
    from isthmus.runtime.inbound import Inbound
    from isthmus.runtime.router import Router
    from isthmus.server.asking.session_state import StatePlaces
    from isthmus.server.guard.tags import VisibilityRule
    from isthmus.server.routes import CustomRoute
    from isthmus.store.kv import KV
    from isthmus.store.store import Store
    from isthmus.tasks.requestor import TaskRequestor
    from isthmus.transports.http.authorizer import Authorizer
    from isthmus.wire import TaskStatusParams

MIN_SECRET_BYTES = 16


class SharedSettings:
    """The settings of one server, and the things it makes when they are first needed.

    Args:
        info: who the server says it is.
        secret: what journals and cursors are sealed with, 16 random bytes or more; a list has
            the one to seal with first and others that are still accepted after it. None makes
            one up, which lasts as long as the process.
        lifespan: what the server needs as long as it runs.
        changes: everybody who hears of changes.
        debug: let the text of unexpected exceptions out.
        page_size: the most items in a page of a list, or None for all.
        caching: how long clients may keep lists, and who may share them.
        max_rounds: how often one call may ask.
        state_ttl: seconds in which a question must be answered.
        limits: how much callers may ask for.
        sanitise: how tool output is made safe, or None.
        redact: takes secrets out of log messages, or None.
        task_store: keeps what is known of tasks; None for this process's memory.
        state_store: keeps what is too large for ``requestState``; None keeps nothing.
        store: what the processes of this server share, or None.
        auth: says who may do what; None lets everybody do everything.

    Attributes:
        limiters: those of the limits that are rates.
        upstreams: gives tokens for services behind the server, or None: its ``auth``, or that of the
            server in which it is mounted.
        visible: what of a list its reader sees; None where everybody sees everything.
        has_session_rules: sessions may have rules of their own.
        visibility_rules: what is offered and hidden for everybody.
        has_joined: this process is one of the nodes.
        on_join: functions that are called when this process has joined the others.
        has_tasks: calls of some tool may run as tasks, which must outlive every process.
        routes: HTTP routes of the author's own, by path.
        router: what serves requests, once the server has begun to.
        injected: the functions that some parameter takes its value of (``Inject``).
        overrides: functions that stand in place of these, in tests.
        override_layers: these of each block that is open.
        state_warnings: writes what is wrong with a ``requestState`` that a caller sent.
        state_places: where ``ctx.session`` keeps its values, once it has been asked for some.
        wrapped: the methods whose results a middleware may want to look into, so that they are
            not made into bytes before.

    Raises:
        UsageError: a secret is too short.
    """

    def __init__(
        self,
        info: Implementation,
        *,
        secret: bytes | Sequence[bytes] | None,
        lifespan: Lifespan,
        changes: Subscriptions,
        debug: bool,
        page_size: int | None,
        caching: CacheHints,
        max_rounds: int,
        state_ttl: float,
        limits: Limits,
        sanitise: Sanitise | None,
        redact: Redact | None,
        task_store: "KV | None" = None,
        state_store: "KV | None" = None,
        store: "str | Store | None" = None,
        auth: "Authorizer | None" = None,
    ) -> None:
        self.info = info
        self.lifespan = lifespan
        self.changes = changes
        self.debug = debug
        self.page_size = page_size
        self.caching = caching
        self.max_rounds = max_rounds
        self.state_ttl = state_ttl
        self.limits = limits
        self.sanitise = sanitise
        self.redact = redact
        self.task_store = task_store
        self.state_store = state_store
        self.auth = self.upstreams = auth
        self.visible = ScopeVisibility(auth) if auth is not None and auth.hides else None
        self.wrapped: frozenset[str] = frozenset()
        self.visibility_rules: Sequence[VisibilityRule] = ()
        self.has_session_rules = False
        self.has_tasks = False
        self.routes: dict[str, CustomRoute] = {}
        self.router: Router | None = None
        self.injected: set[Any] = set()
        self.overrides: dict[Any, Any] = {}
        self.override_layers: list[dict[Any, Any]] = []
        self.state_warnings = WarningLimit()
        self.state_places: StatePlaces | None = None
        self.workers = Workers(limits.threads)
        self._client_tasks: TaskRequestor | None = None
        self._secrets = _check_secrets(secret)
        self._heir: Callable[[], list[bytes]] | None = None
        self._is_made_up = False
        self._derived: dict[str, list[bytes]] = {}
        self._store = _open_store(store)
        self.limiters = Limiters(limits, self._store)
        self._node: Node | None = None
        self.on_join: list[Callable[[], Awaitable[None]]] = []
        self.has_joined = False

    @property
    def store(self) -> "Store | None":
        """What the processes of this server share, or None."""
        return self._store

    @property
    def is_settled(self) -> bool:
        """Whether there is a secret, or a store that processes agree on one by."""
        return bool(self._secrets) or self._store is not None or self._heir is not None

    @property
    def node(self) -> "Node":
        """This process among those that serve together."""
        if self._node is None:
            from isthmus.nodes.node import Node  # a server over stdio is alone

            self._node = Node(
                self._store, name=self.info.name, secrets=self._secrets, durable=self.has_tasks
            )
        return self._node

    async def leave_nodes(self) -> None:
        """Be none of the nodes any more."""
        await self.changes.leave()
        await self.node.leave()

    async def join_nodes(self) -> None:
        """Be one of the nodes that serve together, and take the secrets they have agreed on.

        Raises:
            UsageError: the others are something else, or the store is not set up for this.
            StoreUnavailable: the store cannot be reached.
        """
        await self.node.join()
        self._secrets = self.node.secrets
        self._derived.clear()
        await self.changes.join(self.node)
        self.has_joined = True
        for callback in self.on_join:
            await callback()

    def inherit(self, outer: "SharedSettings", label: str, *, began: bool) -> bool:
        """Take over what a server has in which this one is mounted, where it was given none itself.

        Its keys are derived from those of the outer server, so that no state of one opens in the other.

        Args:
            outer: the settings of the outer server.
            label: tells it from others that are mounted there.
            began: it serves already, by itself or mounted elsewhere.

        Returns:
            False where it cannot any more.
        """
        if self._store is not None or self._heir is not None:
            return True
        if (self._secrets and self._is_made_up) or (began and outer.store is not None):
            return False
        if self.state_store is None:
            self.state_store = outer.state_store
        if self.upstreams is None:
            self.upstreams = outer.upstreams
        if outer.store is not None:
            from isthmus.store.section import StoreSection  # most servers are one process

            self.configure({"store": StoreSection(outer.store, f"mount/{label}/")})
        if not self._secrets:
            self._heir = lambda: outer.derive_secrets(label)
        return True

    def derive_secrets(self, label: str) -> list[bytes]:
        """The secrets of a server that is mounted in this one, the one that seals first."""
        return self._keys(f"mount {label}")

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Change settings before anything is served with them.

        Raises:
            UsageError: a secret is too short.
        """
        if "secret" in settings:
            self._secrets = _check_secrets(settings["secret"])
            self._derived.clear()
            self._node = None
        if "store" in settings:
            self._store = _open_store(settings["store"])
            self._node = None
        for name in ("debug", "page_size", "max_rounds", "state_ttl", "sanitise", "redact"):
            if name in settings:
                setattr(self, name, settings[name])
        if "limits" in settings:
            self.limits = settings["limits"]
            self.workers.limit_threads(self.limits.threads)
        self.state_places = None
        if "limits" in settings or "store" in settings:
            self.limiters = Limiters(self.limits, self._store)

    @property
    def state(self) -> Any:
        """The value of the lifespan, or None."""
        return self.lifespan.value

    def client_tasks(self) -> "TaskRequestor":
        """The questions that clients have made tasks of."""
        if self._client_tasks is None:
            from isthmus.tasks.requestor import TaskRequestor  # most servers ask no such thing

            self._client_tasks = TaskRequestor()
        return self._client_tasks

    def hear_task(self, params: "TaskStatusParams", inbound: "Inbound") -> None:
        """Take what a client says about one of its tasks."""
        if self._client_tasks is not None:
            self._client_tasks.hear(params, inbound)

    @property
    def journal_keys(self) -> list[bytes]:
        """The keys of journals, 32 bytes each: the first one seals, all of them open."""
        return self._keys("journal")

    @property
    def session_keys(self) -> list[bytes]:
        """The keys of session ids, 32 bytes each: the first one seals, all of them open."""
        return self._keys("session")

    @property
    def task_keys(self) -> list[bytes]:
        """The keys of calls that may be made again, 32 bytes each: the first one seals."""
        return self._keys("task")

    @property
    def state_keys(self) -> list[bytes]:
        """The keys of session state in a store, 32 bytes each: the first one seals, all of them open."""
        return self._keys("session state")

    @property
    def cursor_secret(self) -> bytes:
        """The key that cursors are sealed with."""
        return self._keys("cursor")[0]

    def _keys(self, purpose: str) -> list[bytes]:
        """Keys for one purpose, so that no secret is used for two things."""
        keys = self._derived.get(purpose)
        if keys is None:
            from hmac import digest

            if not self._secrets:
                self._is_made_up = self._heir is None
                self._secrets = [os.urandom(32)] if self._heir is None else self._heir()
            keys = [
                digest(known, b"isthmus " + purpose.encode(), "sha256") for known in self._secrets
            ]
            self._derived[purpose] = keys
        return keys


def _open_store(store: "str | Store | None") -> "Store | None":
    """The store that an option names; nothing is connected yet."""
    if store is None:
        return None
    from isthmus.store.store import open_store  # most servers are one process

    return open_store(store)


def _check_secrets(secret: bytes | Sequence[bytes] | None) -> list[bytes]:
    """The secrets as a list, the one that seals first.

    Raises:
        UsageError: one is too short.
    """
    secrets = [secret] if isinstance(secret, bytes) else list(secret or ())
    if any(len(known) < MIN_SECRET_BYTES for known in secrets):
        raise UsageError(
            f"a secret needs {MIN_SECRET_BYTES} random bytes or more: make one with os.urandom(32), "
            "and keep it where every process of this server can read it"
        )
    return secrets
