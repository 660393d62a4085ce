"""Declarations of a server: its tools, resources, prompts, completers, methods and extensions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.core.principal import NO_SCOPES
from isthmus.errors import UsageError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
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

    from isthmus.revisions import Method
    from isthmus.runtime.extension import Extension
    from isthmus.runtime.middleware import Handler
    from isthmus.runtime.router import Needs
    from isthmus.server.options import FolderOptions, PromptOptions, ResourceOptions, ToolOptions


class Declarations:
    """The tools, resources, prompts, completers, methods and extensions of one server.

    Args:
        settings: those of the server, shared by all its parts.

    Attributes:
        tools: the tools, of which some may run as tasks.
        resources: the resources and their templates.
        prompts: the prompts.
        completions: the completers of their arguments.
        methods: the rows of methods and notifications that are the author's own.
        routes: the handler of each method.
        needs: the scopes that requests take, by method.
        listeners: the functions that are told of the author's own notifications.
        extensions: the settings of each extension that is declared.
    """

    def __init__(self, settings: SharedSettings) -> None:
        self._settings = settings
        self.tools = Tools(settings)
        self.resources = Resources(settings)
        self.prompts = Prompts(settings)
        self.completions = Completions(self.prompts, self.resources, settings)
        self.methods: dict[str, Method] = {}
        self.routes = self._list_routes()
        self.needs = self._list_needs()
        self.listeners = NotificationListeners()
        self.extensions: dict[str, dict[str, Any]] = {}
        self._own_demands: list[ScopeDemand] = []
        self._is_serving = False

    def add_tool(self, fn: Callable[..., Any], options: "ToolOptions") -> None:
        """Offer a function as a tool; see ``Server.add_tool``."""
        self.tools.add(fn, **options)
        if options.get("task") and self.tools.tasks is None:
            self._offer_tasks()

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

    def capabilities(self, inbound: Inbound) -> ServerCapabilities:
        """The capabilities of what has been offered so far, for the sender of a request."""
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

    def settle(self) -> None:
        """The server begins to serve: what completers and tools take of its settings is fixed.

        Raises:
            UsageError: a completer is for something that does not exist.
        """
        self.completions.settle()
        self.tools.settle()
        self._is_serving = True

    async def close(self) -> None:
        """Cancel tasks, and stop whoever still acts on a notification."""
        if self.tools.tasks is not None:
            await self.tools.tasks.close()
        self.listeners.close()

    def known_scopes(self) -> frozenset[str]:
        """Every scope that anything offered takes, whoever asks."""
        return collect_fixed_scopes(self._list_demands())

    def _list_demands(self) -> list[ScopeDemand]:
        offered = (
            self.tools.listing,
            self.prompts.listing,
            self.resources.listing,
            self.resources.templates,
        )
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
            "tools/list": self.tools.listing.page,
            "tools/call": self.tools.call,
            "resources/list": self.resources.listing.page,
            "resources/templates/list": self.resources.templates.page,
            "resources/read": self.resources.read,
            "resources/subscribe": changes.subscribe,
            "resources/unsubscribe": changes.unsubscribe,
            "prompts/list": self.prompts.listing.page,
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

    def _offer_tasks(self) -> None:
        """Let calls of tools run as tasks, in whichever way a revision has it."""
        from isthmus.server.features.tasks import Tasks  # most servers have no use for it

        self.tools.tasks = tasks = Tasks(self.tools, self._settings)
        self._settings.changes.tasks = tasks
        if self._is_serving:
            tasks.settle()
        self.routes.update(tasks.routes)
        self.extensions.setdefault(TASKS, {})

    def _claim(self, name: str, row: "Method", scopes: OwnScopes) -> None:
        if name in self.methods:
            raise UsageError(f"there is a method {name!r} already")
        wanted = parse_scopes(scopes, f"method {name!r}")
        if wanted:
            self._own_demands.append(wanted)
            self.needs[name] = make_params_scopes(wanted, name)
        self.methods[name] = row
