"""What a server offers is declared on it: one decorator for each kind of thing."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from isthmus.core.principal import NO_SCOPES
from isthmus.errors import UsageError
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
from isthmus.server.options import (
    Completable,
    FolderOptions,
    PromptOptions,
    ResourceOptions,
    ToolOptions,
    check_options,
)
from isthmus.server.settings import SharedSettings
from isthmus.wire import TASKS

if TYPE_CHECKING:
    import os

    from isthmus.revisions import Method
    from isthmus.runtime.extension import Extension
    from isthmus.runtime.middleware import Handler
    from isthmus.runtime.router import Needs

__all__ = ["Declarations"]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class Declarations:
    """The tools, resources, prompts, completers and methods of one server.

    Args:
        facilities: the server's.
    """

    def __init__(self, facilities: SharedSettings) -> None:
        self._facilities = facilities
        self._tools = Tools(facilities)
        self._resources = Resources(facilities)
        self._prompts = Prompts(facilities)
        self._completions = Completions(self._prompts, self._resources, facilities)
        self._custom: dict[str, Method] = {}
        self._routes: dict[str, Handler] = {}
        self._needs = self._needs_of_ours()
        self._own_demands: list[ScopeDemand] = []
        self._listeners = NotificationListeners()
        self._extensions: dict[str, dict[str, Any]] = {}

    # Tools

    @overload
    def tool(self, fn: F, /) -> F: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(
        self, fn: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[..., Any]:
        """Decorate a function that a model may call; it stays what it is.

        ``@server.tool`` and ``@server.tool(title="Add", read_only=True)`` both work; for the
        options see :class:`~isthmus.server.options.ToolOptions`. What the function returns is
        the result; it raises ``ToolError`` to tell the model what went wrong.

        Raises:
            UsageError: the name is taken, or the function cannot be a tool; it says why.
        """

        def decorate(fn: F) -> F:
            self.add_tool(fn, **options)
            return fn

        return decorate if fn is None else decorate(fn)

    def add_tool(self, fn: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> None:
        """Offer a function as a tool, also while serving: whoever wants to know is told.

        Raises:
            UsageError: the name is taken, or the function cannot be a tool; it says why.
        """
        self._tools.add(fn, **check_options(options, ToolOptions))
        if options.get("task") and self._tools.tasks is None:
            self._offer_tasks()

    def _offer_tasks(self) -> None:
        """Let calls of tools run as tasks, in whichever way a revision has it."""
        from isthmus.server.features.tasks import Tasks  # most servers have no use for it

        self._tools.tasks = tasks = Tasks(self._tools, self._facilities)
        self._facilities.changes.tasks = tasks
        self._routes.update(tasks.routes)
        self._extensions.setdefault(TASKS, {})

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer.

        Raises:
            UsageError: there is no such tool.
        """
        self._tools.listing.remove(name)

    # Resources

    def resource(
        self, uri: str, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[Callable[P, R]], Completable[P, R]]:
        """Decorate a function that is read at a URI, or at each URI of a template.

        ``@server.resource("notes://{id}")`` makes a template: its variables are the function's
        arguments. For the options see :class:`~isthmus.server.options.ResourceOptions`. None
        says that there is nothing at this URI.

        Raises:
            UsageError: the URI is taken, or the function does not fit it; it says why.
        """
        if callable(uri):
            name = getattr(uri, "__name__", "notes")
            raise UsageError(f"a resource needs a URI: write @server.resource('{name}://all')")

        def decorate(fn: Callable[P, R]) -> Completable[P, R]:
            self.add_resource(fn, uri, **options)
            return self._completable(fn, uri)

        return decorate

    def add_resource(
        self, fn: Callable[..., Any], uri: str, /, **options: Unpack[ResourceOptions]
    ) -> None:
        """Offer a function as a resource or a template, also while serving.

        Raises:
            UsageError: the URI is taken, or the function does not fit it; it says why.
        """
        given: dict[str, Any] = {**check_options(options, ResourceOptions)}
        completers = given.pop("completes", None)
        self._resources.add(fn, uri, **given)
        self._completions.add_all(uri, completers)

    def add_file(
        self,
        path: "str | os.PathLike[str]",
        /,
        uri: str | None = None,
        **options: Unpack[ResourceOptions],
    ) -> None:
        """Offer a file as a resource: text where it is text, and its size and age as they are.

        Args:
            path: where it is; links are followed.
            uri: its URI; its ``file://`` URI by default.
            **options: see :class:`~isthmus.server.options.ResourceOptions`. The name is the
                file's, and the MIME type by its ending, if not given.

        Raises:
            UsageError: the URI is taken.
        """
        from isthmus.server.features.files import offer_file  # most servers offer none

        offer_file(
            self._resources, self._facilities, path, uri, **check_options(options, ResourceOptions)
        )

    def add_directory(
        self,
        root: "str | os.PathLike[str]",
        prefix: str,
        /,
        **options: Unpack[FolderOptions],
    ) -> None:
        """Offer the files of a folder as resources, below a URI of yours.

        ``server.add_directory("docs", "docs://", pattern="**/*.md")`` reads ``docs/a/b.md`` at
        ``docs://a/b.md``, and lists what is in ``docs/a`` at ``docs://a/``. No URI leads out of
        the folder, and no link in it is followed.

        Args:
            root: the folder.
            prefix: what the URIs begin with.
            **options: see :class:`~isthmus.server.options.FolderOptions`.

        Raises:
            UsageError: there is no such folder, the prefix is taken or none, or a pattern is none.
        """
        from isthmus.server.features.files import offer_folder  # most servers offer none

        offered = offer_folder(
            self._resources, self._facilities, root, prefix, **check_options(options, FolderOptions)
        )
        self._completions.add(offered.template, "path", offered.complete)

    def remove_resource(self, uri: str) -> None:
        """Offer a resource, a template or a folder no longer.

        Raises:
            UsageError: there is none of this URI.
        """
        self._resources.remove(uri)

    def notify_resource_updated(self, uri: str) -> None:
        """Tell everybody who subscribed to a resource that it changed; from any thread."""
        self._facilities.changes.updated(uri)

    def notify_elicitation_complete(self, elicitation_id: str) -> None:
        """Tell the client whose user was sent to a page that it was dealt with (2025-11-25).

        Args:
            elicitation_id: what ``ctx.elicit_url`` was given; unknown ones are told to nobody.
        """
        # spec 2025-11-25 client/elicitation: MUST only go to the client that was asked
        self._facilities.changes.completed(elicitation_id)

    # Prompts

    @overload
    def prompt(self, fn: Callable[P, R], /) -> Completable[P, R]: ...

    @overload
    def prompt(
        self, /, **options: Unpack[PromptOptions]
    ) -> Callable[[Callable[P, R]], Completable[P, R]]: ...

    def prompt(
        self, fn: Callable[P, R] | None = None, /, **options: Unpack[PromptOptions]
    ) -> Completable[P, R] | Callable[[Callable[P, R]], Completable[P, R]]:
        """Decorate a function that gives messages to start from.

        ``@server.prompt`` and ``@server.prompt(title="…")`` both work; for the options see
        :class:`~isthmus.server.options.PromptOptions`. It returns text, content, messages, or
        pairs of role and content.

        Raises:
            UsageError: the name is taken, or the function cannot be a prompt; it says why.
        """

        def decorate(fn: Callable[P, R]) -> Completable[P, R]:
            return self._completable(fn, self._add_prompt(fn, options))

        return decorate if fn is None else decorate(fn)

    def add_prompt(self, fn: Callable[..., Any], /, **options: Unpack[PromptOptions]) -> None:
        """Offer a function as a prompt, also while serving.

        Raises:
            UsageError: the name is taken, or the function cannot be a prompt; it says why.
        """
        self._add_prompt(fn, options)

    def _add_prompt(self, fn: Callable[..., Any], options: PromptOptions) -> str:
        given: dict[str, Any] = {**check_options(options, PromptOptions)}
        completers = given.pop("completes", None)
        name = self._prompts.add(fn, **given)
        self._completions.add_all(name, completers)
        return name

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer.

        Raises:
            UsageError: there is no such prompt.
        """
        self._prompts.listing.remove(name)

    # The rest

    def completes(self, ref: str, argument: str, /) -> Callable[[F], F]:
        """Decorate the function that completes an argument.

        Args:
            ref: a prompt's name, or a resource template's URI.
            argument: the argument's name.

        Returns:
            The decorator, for ``fn(typed)`` or ``fn(typed, others)`` that gives strings, or
            ``fn()`` whose strings are filtered by what was typed.

        Raises:
            UsageError: it is completed already, or there is no such argument. What is completed
                may be added later, but must be there when the server begins to serve.
        """

        def decorate(fn: F) -> F:
            self._completions.add(ref, argument, fn)
            return fn

        return decorate

    def method(
        self,
        name: str,
        /,
        *,
        params: type,
        result: type | None = None,
        scopes: OwnScopes = NO_SCOPES,
    ) -> Callable[[F], F]:
        """Decorate a function that serves a method of your own: ``fn(params)`` or with a context.

        Args:
            name: the method, with a prefix of yours: ``"acme/refund"``.
            params: what its params decode to.
            result: what its results decode to, for clients; the function returns it.
            scopes: what its callers must have been granted: a set, or ``(params, principal) -> set``,
                where tokens are.

        Raises:
            UsageError: the name is taken, or the function takes anything else.
        """

        def decorate(fn: F) -> F:
            self._claim(name, make_method_row(name, params, result), scopes)
            self._routes[name] = make_method_handler(fn, self._facilities, params)
            return fn

        return decorate

    def on_notification(
        self, name: str, /, *, params: Any = dict, scopes: OwnScopes = NO_SCOPES
    ) -> Callable[[F], F]:
        """Decorate a function told of a notification of your own: ``fn(params)`` or with a context.

        Nothing is answered, and what it raises is logged. Notifications that do not fit
        ``params`` are ignored.

        Args:
            name: the notification's method, with a prefix of yours: ``"acme/moved"``.
            params: what its params decode to.
            scopes: what whoever sends it must have been granted; as for methods.

        Raises:
            UsageError: the name is taken, or the function takes anything else.
        """

        def decorate(fn: F) -> F:
            self._claim(name, make_notification_row(name, params), scopes)
            self._listeners.add(name, make_method_handler(fn, self._facilities, params))
            return fn

        return decorate

    # What it takes

    def _needs_of_ours(self) -> "dict[str, Needs]":
        """What requests of the specification take to be served, by method."""
        tools, prompts, resources = self._tools, self._prompts, self._resources
        return {
            "tools/call": tools.needs,
            "prompts/get": prompts.needs,
            "completion/complete": self._completions.needs,
            "resources/read": lambda params, who: resources.needs(params.uri, who),
            "resources/subscribe": lambda params, who: resources.needs(params.uri, who),
            "subscriptions/listen": lambda params, who: NO_SCOPES.union(
                *(
                    resources.needs(uri, who)
                    for uri in params.notifications.resource_subscriptions or ()
                )
            ),
        }

    def _known_scopes(self) -> frozenset[str]:
        """Every scope that anything offered takes, whoever asks."""
        return collect_fixed_scopes(self._demands())

    def _demands(self) -> list[ScopeDemand]:
        offered = (
            self._tools.listing,
            self._prompts.listing,
            self._resources.listing,
            self._resources.templates,
        )
        listed = [one for listing in offered for one in listing.demands() if one]
        return [*listed, *self._own_demands]

    def _warn_of_unasked_scopes(self) -> None:
        """Say that scopes were declared, and that nobody is asked for a token."""
        if self._demands():
            import logging  # not needed where all is as it should be

            logging.getLogger("isthmus").warning(
                "some of what this server offers takes scopes, and everybody may use it: over HTTP "
                "nobody is asked for a token without Server(auth=ResourceAuth(…))"
            )

    def _claim(self, name: str, row: "Method", scopes: OwnScopes = NO_SCOPES) -> None:
        if name in self._custom:
            raise UsageError(f"there is a method {name!r} already")
        wanted = parse_scopes(scopes, f"method {name!r}")
        if wanted:
            self._own_demands.append(wanted)
            self._needs[name] = make_params_scopes(wanted, name)
        self._custom[name] = row

    def _extend(self, extension: "Extension") -> None:
        """Declare an extension, serve its methods and hear its notifications."""
        if extension.identifier in self._extensions:
            raise UsageError(f"this server has the extension {extension.identifier!r} already")
        for name, served in extension.methods.items():
            self._claim(name, make_method_row(name, served.params, served.result), served.scopes)
            handler = make_method_handler(served.fn, self._facilities, served.params)
            self._routes[name] = serve_if_declared(extension, handler)
        for name, heard in extension.notices.items():
            self.on_notification(name, params=heard.params)(heard.fn)
        self._extensions[extension.identifier] = extension.settings

    def _completable(self, fn: Callable[P, R], ref: str) -> Completable[P, R]:
        """The function itself, with a decorator for completers on it."""

        def completes(argument: str, /) -> Callable[[F], F]:
            return self.completes(ref, argument)

        function: Any = fn
        # A bound method or a C function takes no attributes: `completes=` does the same.
        with suppress(AttributeError):
            function.completes = completes
        return function  # type: ignore[no-any-return]  # the function, and now completable
