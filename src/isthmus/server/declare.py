"""Declarations of a server: its tools, resources, prompts, completers, methods and extensions."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import UsageError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound, RestoreSession
from isthmus.runtime.middleware import find_wrapped
from isthmus.runtime.router import Router
from isthmus.server.asking.logging import set_level
from isthmus.server.features.completion import Completions
from isthmus.server.features.extensions import (
    NotificationListeners,
    make_method_handler,
    make_method_row,
    make_notification_row,
    serve_if_declared,
)
from isthmus.server.features.prompts import Prompts
from isthmus.server.features.resources import Resources
from isthmus.server.features.tools import Tools
from isthmus.server.guard.scopes import (
    OwnScopes,
    ScopeDemand,
    collect_fixed_scopes,
    make_params_scopes,
    parse_scopes,
)
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    TASKS,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)

if TYPE_CHECKING:
    import os

    from isthmus.revisions import Method, Revision
    from isthmus.runtime.extension import Extension
    from isthmus.runtime.middleware import Handler
    from isthmus.runtime.router import Needs, NoticeHandler
    from isthmus.server.composition.composition import Composition
    from isthmus.server.composition.provider import ItemProvider
    from isthmus.server.features.listing import Listing
    from isthmus.server.features.skills import Skills
    from isthmus.server.features.tasks import Tasks
    from isthmus.server.options import (
        FolderOptions,
        PromptOptions,
        ResourceOptions,
        SkillOptions,
        ToolOptions,
    )


class Declarations:
    """The tools, resources, prompts, completers, methods and extensions of one server.

    Args:
        settings: those of the server, shared by all its parts.

    Attributes:
        settings: those of the server, shared by all its parts.
        composition: the providers of what others offer here, or None.
        is_serving: the server has begun to serve.
        mounts_open: how many servers it is mounted in that are open now.
        tools: the tools, of which some may run as tasks.
        resources: the resources and their templates.
        prompts: the prompts.
        completions: the completers of their arguments.
        listings: the tools, prompts, resources and templates by the method that lists them.
        methods: the rows of methods and notifications that are the author's own.
        routes: the handler of each method.
        needs: the scopes that requests take, by method.
        listeners: the functions that are told of the author's own notifications.
        extensions: the settings of each extension that is declared.
    """

    def __init__(self, settings: SharedSettings) -> None:
        self._settings = self.settings = settings
        self.composition: Composition | None = None
        self.mounts_open = 0
        self.tools = Tools(settings)
        self.resources = Resources(settings)
        self.prompts = Prompts(settings)
        self.completions = Completions(self.prompts, self.resources, settings)
        self.listings: dict[str, Listing[Any]] = {
            "tools/list": self.tools.listing,
            "prompts/list": self.prompts.listing,
            "resources/list": self.resources.listing,
            "resources/templates/list": self.resources.templates,
        }
        self.methods: dict[str, Method] = {}
        self.routes = self._list_routes()
        self.needs = self._list_needs()
        self.listeners = NotificationListeners()
        self.extensions: dict[str, dict[str, Any]] = {}
        self._own_demands: list[ScopeDemand] = []
        self._skills: Skills | None = None
        self.is_serving = False

    def add_tool(self, fn: Callable[..., Any], options: "ToolOptions") -> None:
        """Offer a function as a tool; see ``Server.add_tool``."""
        self.tools.add(fn, **options)
        if options.get("task") and self.tools.tasks is None:
            self.offer_tasks()

    def add_resource(self, fn: Callable[..., Any], uri: str, options: "ResourceOptions") -> None:
        """Offer a function as a resource or a template; see ``Server.add_resource``."""
        given: dict[str, Any] = {**options}
        completers = given.pop("completes", None)
        self.resources.add(fn, uri, **given)
        self.completions.add_all(uri, completers)

    def add_file(
        self, path: "str | os.PathLike[str]", uri: str | None, options: "ResourceOptions"
    ) -> None:
        """Offer a file as a resource; see ``Server.add_file``."""
        from isthmus.server.features.files import offer_file  # most servers offer none

        offer_file(self.resources, self._settings, path, uri, **options)

    def add_directory(
        self, root: "str | os.PathLike[str]", prefix: str, options: "FolderOptions"
    ) -> None:
        """Offer the files of a folder as resources; see ``Server.add_directory``."""
        from isthmus.server.features.files import offer_folder  # most servers offer none

        offered = offer_folder(self.resources, self._settings, root, prefix, **options)
        self.completions.add(offered.template, "path", offered.complete)

    def add_skills(
        self, root: "str | os.PathLike[str]", prefix: str, options: "SkillOptions"
    ) -> int:
        """Offer the skills of a folder, and say how many there are; see ``Server.add_skills``."""
        from isthmus.server.features.skills import SKILL_METHODS, Skills  # most servers have none
        from isthmus.skills.entry import SKILLS

        if self._skills is None:
            self._skills = skills = Skills(self._settings)
            self.methods.update({row.name: row for row in SKILL_METHODS})
            self.routes.update(skills.routes)
            resources = self.resources
            for name in ("skills/get", "resources/directory/read"):
                self.needs[name] = lambda params, who: resources.needs(params.uri, who)
        found = self._skills.add(self.resources, root, prefix, **options)
        # SEP-2640 capability declaration: beside resources, which a folder of them declares
        self.extensions[SKILLS] = {"directoryRead": True}
        return found

    def add_prompt(self, fn: Callable[..., Any], options: "PromptOptions") -> str:
        """Offer a function as a prompt, and say its name; see ``Server.add_prompt``."""
        given: dict[str, Any] = {**options}
        completers = given.pop("completes", None)
        name = self.prompts.add(fn, **given)
        self.completions.add_all(name, completers)
        return name

    def add_method(
        self, fn: Callable[..., Any], name: str, params: Any, result: Any, scopes: OwnScopes
    ) -> None:
        """Serve a method of the author's own; see ``Server.method``."""
        self._claim(name, make_method_row(name, params, result), scopes)
        self.routes[name] = make_method_handler(fn, self._settings, params)

    def add_listener(
        self, fn: Callable[..., Any], name: str, params: Any, scopes: OwnScopes = NO_SCOPES
    ) -> None:
        """Hear a notification of the author's own; see ``Server.on_notification``."""
        self._claim(name, make_notification_row(name, params), scopes)
        self.listeners.add(name, make_method_handler(fn, self._settings, params))

    def add_extension(self, extension: "Extension") -> None:
        """Declare an extension, serve its methods and hear its notifications.

        Raises:
            UsageError: it is there already, or one of its names is taken.
        """
        if extension.identifier in self.extensions:
            raise UsageError(f"this server has the extension {extension.identifier!r} already")
        for name, served in extension.methods.items():
            self.add_method(served.fn, name, served.params, served.result, served.scopes)
            self.routes[name] = serve_if_declared(extension, self.routes[name])
        for name, heard in extension.notices.items():
            self.add_listener(heard.fn, name, heard.params)
        self.extensions[extension.identifier] = extension.settings

    def add_provider(self, provider: "ItemProvider") -> None:
        """Offer what a provider has; see ``Server.add_provider``."""
        self.compose().add(provider)

    def add_rule(
        self, names: Sequence[str], tags: Any, *, enables: bool, only: bool = False
    ) -> None:
        """Offer or hide things for everybody; see ``Server.enable``."""
        from isthmus.server.guard.tags import add_rule, make_rule  # few servers hide anything

        rule, settings = make_rule(names, tags, enables=enables, only=only), self.settings
        settings.visibility_rules = add_rule(settings.visibility_rules, rule)
        settings.changes.is_hidden = self.resources.hides
        for listing in self.listings.values():
            listing.apply_rules()
        if self.composition is not None:
            self.composition.announce_lists()

    def restrict(self, fn: Any, *, sessions: bool) -> None:
        """Look for each request at what is there for its sender; see ``Server.visibility``."""
        self.compose().restrict(fn, sessions=sessions)

    def compose(self) -> "Composition":
        """What the server offers beside its own; from the first time on, its routes look there.

        Raises:
            UsageError: the server has begun to serve.
        """
        if self.is_serving:
            raise UsageError(
                "servers are mounted, tools included, providers added and visibility decided before the server "
                "serves"
            )
        if self.composition is None:
            from isthmus.server.composition.composition import Composition  # most servers have none

            self.composition = Composition(self)
        return self.composition

    def owns(self, method: str, key: str) -> bool:
        """Whether something that a request names was declared here.

        Args:
            method: ``tools/call``, ``prompts/get``, ``resources/read`` or ``completion/complete``.
            key: its name or URI.
        """
        match method:
            case "tools/call":
                return self.tools.listing.get(key) is not None
            case "prompts/get":
                return self.prompts.listing.get(key) is not None
            case "resources/read":
                return self.resources.find(key)[0] is not None
            case _:
                return self.completions.knows(key)

    def has(self, method: str, key: str) -> bool:
        """Whether something that a request names is offered here, also by a provider."""
        if self.owns(method, key):
            return True
        return self.composition is not None and self.composition.find(method, key) is not None

    def find_item(self, method: str, key: str) -> Any:
        """Something of the server's own, as it is listed; None for what is not its own.

        Args:
            method: as of :meth:`owns`.
            key: its name or URI.
        """
        match method:
            case "tools/call":
                entry: Any = self.tools.listing.get(key)
            case "prompts/get":
                entry = self.prompts.listing.get(key)
            case "resources/read":
                entry = self.resources.find(key)[0]
            case _:
                entry = (
                    self.prompts.listing.get(key)
                    or self.resources.templates.get(key)
                    or self.resources.listing.get(key)
                )
        return None if entry is None else entry.shown

    def find_versions(
        self, method: str, key: str, principal: Principal | None
    ) -> Mapping[str, Any]:
        """The versions of something as they are listed, the highest first; none where it has none.

        Args:
            method: as of :meth:`owns`.
            key: its name.
            principal: whoever asks: what ``Server.visibility`` hides from them is left out.
        """
        listing = self.prompts.listing if method != "tools/call" else self.tools.listing
        if method == "resources/read":
            return {}
        found: Mapping[str, Any] = {
            version: entry.shown for version, entry in listing.find_versions(key).items()
        }
        if self.composition is None:
            return found
        return self.composition.add_versions(found, method, key, principal)

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:
        """The scopes that every use of something takes, be it a provider's."""
        match method:
            case "tools/call":
                entry: Any = self.tools.listing.get(key)
            case "prompts/get":
                entry = self.prompts.listing.get(key)
            case _:
                entry = self.resources.templates.get(key) or self.resources.find(key)[0]
        if entry is not None:
            return entry.scopes if isinstance(entry.scopes, frozenset) else NO_SCOPES
        provider = None if self.composition is None else self.composition.find(method, key)
        return NO_SCOPES if provider is None else provider.fixed_scopes(method, key)

    def lists(self, method: str, key: str) -> bool:
        """Whether an entry of this name or URI is in the list of a method."""
        return self.listings[method].get(key) is not None

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """The capabilities of what has been offered so far, for the sender of a request."""
        own = self._list_capabilities(inbound)
        if self.composition is None:
            return own
        return await self.composition.add_capabilities(own, inbound)

    def _list_capabilities(self, inbound: Inbound) -> ServerCapabilities:
        tasks = self.tools.tasks
        tools, resources = (
            ToolsCapability(list_changed=True),
            ResourcesCapability(subscribe=True, list_changed=True),
        )
        return ServerCapabilities(
            tools=tools if self.tools.listing.used else UNSET,
            resources=resources if self.resources.listing.used else UNSET,
            prompts=PromptsCapability(list_changed=True) if self.prompts.listing.used else UNSET,
            completions={} if self.completions.used else UNSET,
            logging={},
            tasks=UNSET if tasks is None else tasks.capability(inbound),
            extensions=self.extensions or UNSET,
        )

    def make_router(
        self,
        revisions: Sequence["Revision"],
        middleware: Sequence[Any],
        add_session: "NoticeHandler",
        restore_session: RestoreSession,
    ) -> Router:
        """Make the router of all that was declared.

        Args:
            revisions: the revisions spoken.
            middleware: layers around every handler, outermost first.
            add_session: told of each session that has begun.
            restore_session: told of each session that was opened elsewhere.
        """
        settings = self._settings
        settings.wrapped = find_wrapped(self.routes, middleware)
        notices = {
            "notifications/initialized": add_session,
            "notifications/tasks/status": settings.hear_task,
            **self.listeners.heard,
        }
        for layer in reversed(middleware):
            if (wrap_notices := getattr(layer, "wrap_notices", None)) is not None:
                notices = wrap_notices(notices)
        lifespan, limits = settings.lifespan, settings.limits
        if settings.store is not None:
            lifespan.enclose(settings.join_nodes, settings.leave_nodes)
            if (share := getattr(settings.auth, "share_proofs", None)) is not None:
                share(settings.store.kv, lifespan.open)
        settings.router = router = Router(
            self.routes,
            notices,
            supported=revisions,
            server=settings.info,
            extra=self.methods,
            middleware=middleware,
            first=lifespan.open_first,
            debug=settings.debug,
            depth=limits.depth,
            in_flight=limits.in_flight,
            needs=self.needs,
            known_scopes=self.known_scopes,
            restore=restore_session,
        )
        return router

    def settle(self) -> None:
        """The server begins to serve: what completers and tools take of its settings is fixed.

        Raises:
            UsageError: a completer is for something that does not exist.
        """
        self.completions.settle()
        self.tools.settle()
        if self.composition is not None:
            self.composition.attach()
        self.is_serving = True

    async def close(self) -> None:
        """Cancel tasks, and stop whoever still acts on a notification."""
        if self.tools.tasks is not None:
            await self.tools.tasks.close()
        self.listeners.close()

    def known_scopes(self) -> frozenset[str]:
        """Every scope that anything offered takes, whoever asks."""
        own = collect_fixed_scopes(self._list_demands())
        return own if self.composition is None else own | self.composition.known_scopes()

    def _list_demands(self) -> list[ScopeDemand]:
        offered = self.listings.values()
        listed = [one for listing in offered for one in listing.list_demands() if one]
        return [*listed, *self._own_demands]

    def warn_of_unasked_scopes(self) -> None:
        """Warn that scopes were declared, and that nobody is asked for a token."""
        if self._list_demands():
            log_warning(
                "this server declares scopes but checks no tokens over HTTP, so everybody may use it "
                "all; pass Server(auth=ResourceAuth(…))"
            )

    # Inside

    def _list_routes(self) -> "dict[str, Handler]":
        changes = self._settings.changes
        return {
            **{method: listing.page for method, listing in self.listings.items()},
            "tools/call": self.tools.call,
            "resources/read": self.resources.read,
            "resources/subscribe": changes.subscribe,
            "resources/unsubscribe": changes.unsubscribe,
            "prompts/get": self.prompts.get,
            "completion/complete": self.completions.complete,
            "logging/setLevel": set_level,
            "subscriptions/listen": changes.listen,
        }

    def _list_needs(self) -> "dict[str, Needs]":
        """The scopes that requests of the specification take, by method."""
        tools, prompts, resources = self.tools, self.prompts, self.resources
        return {
            "tools/call": tools.needs,
            "prompts/get": prompts.needs,
            "completion/complete": self.completions.needs,
            "resources/read": lambda params, who: resources.needs(params.uri, who),
            "resources/subscribe": lambda params, who: resources.needs(params.uri, who),
            "subscriptions/listen": lambda params, who: NO_SCOPES.union(
                *(
                    resources.needs(uri, who)
                    for uri in params.notifications.resource_subscriptions or ()
                )
            ),
        }

    def offer_tasks(self) -> "Tasks":
        """Let calls of tools run as tasks, in whichever way a revision has it."""
        from isthmus.server.features import tasks as feature  # most servers have no use for it

        self.tools.tasks = tasks = feature.Tasks(self.tools, self._settings)
        self._settings.changes.tasks = tasks
        if self.is_serving:
            tasks.settle()
        self.routes.update(tasks.routes)
        if self.composition is not None:
            self.composition.adopt_tasks(tasks.routes)
        self.extensions.setdefault(TASKS, {})
        return tasks

    def _claim(self, name: str, row: "Method", scopes: OwnScopes) -> None:
        if name in self.methods:
            raise UsageError(f"there is a method {name!r} already")
        wanted = parse_scopes(scopes, f"method {name!r}")
        if wanted:
            self._own_demands.append(wanted)
            self.needs[name] = make_params_scopes(wanted, name)
        self.methods[name] = row
