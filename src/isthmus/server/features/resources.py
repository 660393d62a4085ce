"""Resources: what can be read at a URI, and families of them at URI templates."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET
from msgspec.structs import replace

from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.core.template_index import TemplateIndex
from isthmus.core.uri_template import MAX_URI_CHARS, UriTemplate, quote_uri
from isthmus.errors import Refuse, UsageError
from isthmus.revisions import resource_not_found_code
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.context import Context
from isthmus.server.features.invocation import Run, make_runner, run_refusing, to_result
from isthmus.server.features.listing import Listing, make_meta
from isthmus.server.guard.caching import check_cache_hints
from isthmus.server.guard.scopes import Scopes, find_required_scopes, parse_scopes
from isthmus.server.schema.custom_types import write_json
from isthmus.server.schema.functions import ArgumentError, UserFunction
from isthmus.server.schema.results import to_resource_contents
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    Annotations,
    Icon,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
)
from isthmus.wire.jsonrpc import shorten
from isthmus.wire.results import CacheScope
from isthmus.wire.struct import Meta, Wire

if TYPE_CHECKING:
    from isthmus.server.features.files import FolderUris

MAX_REPEATED_URI_CHARS = 2_000

EMPTY_ARGUMENTS = b"{}"


class RegisteredResource:
    """A function that is read at a URI, or at all URIs of a template.

    Args:
        function: the function.
        shown: how it is listed.
        run: runs the function.
        template: what its URIs look like; None for a single one.
        ttl_ms: milliseconds a client may keep what it read.
        scope: who may share what was read.
        now: says what of the listing has changed by itself, or None.
        scopes: what its reader must have been granted.

    Raises:
        UsageError: a hint on caching is none, or would share it with whoever may not read it.
    """

    __slots__ = ("_now", "_shown", "function", "mime_type", "run", "scope", "scopes", "template",
                 "ttl_ms")  # fmt: skip

    def __init__(
        self,
        function: UserFunction,
        shown: Resource | ResourceTemplate,
        run: Run,
        template: "UriTemplate | FolderUris | None",
        *,
        ttl_ms: int,
        scope: CacheScope,
        now: Callable[[Any], dict[str, Any]] | None = None,
        scopes: Scopes = NO_SCOPES,
    ) -> None:
        check_cache_hints(ttl_ms, scope, f"resource {function.name!r}")
        self.scopes = parse_scopes(scopes, f"resource {function.name!r}", scope)
        self.function = function
        self._shown = shown
        self._now = now
        self.run = run
        self.template = template
        self.mime_type = shown.mime_type or None
        self.ttl_ms = ttl_ms
        self.scope: CacheScope = scope

    @property
    def shown(self) -> Resource | ResourceTemplate:
        """The resource or template as it is listed."""
        return self._shown if self._now is None else replace(self._shown, **self._now(self._shown))


class ReadableFolder(Protocol):
    """A folder whose files are resources."""

    def read(self, path: str = "", after: str = "") -> Any:
        """Read a file, or list a folder; None where there is neither."""
        ...

    def list_resources(self) -> Iterable[Resource]:
        """The files in it, as they are listed."""
        ...


class Resources:
    """The resources and resource templates of one server.

    Args:
        settings: those of the server, shared by all its parts.
    """

    def __init__(self, settings: SharedSettings) -> None:
        announce = settings.changes.announce_resources
        self.listing: Listing[RegisteredResource] = Listing(
            "resource",
            "resources/list",
            show=lambda resource: resource.shown,
            result=lambda items, cursor: ListResourcesResult(resources=items, next_cursor=cursor),
            settings=settings,
            announce=announce,
        )
        self.templates: Listing[RegisteredResource] = Listing(
            "resource template",
            "resources/templates/list",
            show=lambda resource: resource.shown,
            result=lambda items, cursor: ListResourceTemplatesResult(
                resource_templates=items, next_cursor=cursor
            ),
            settings=settings,
            announce=announce,
        )
        self._settings = settings
        self._folders: dict[str, str] = {}
        self._index: TemplateIndex[RegisteredResource] = TemplateIndex()
        self._indexed: set[str] = set()
        self.templates.on_move = self._move_template

    def add(
        self,
        fn: Callable[..., Any],
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        tags: Collection[str] = (),
        ttl_ms: int = 0,
        cache_scope: CacheScope = "private",
        blocking: bool | None = None,
        now: Callable[[Any], dict[str, Any]] | None = None,
        scopes: Scopes = NO_SCOPES,
    ) -> None:
        """Offer a function as a resource; see ``Server.resource`` for the arguments.

        ``now`` says what of the listing has changed by itself.
        """
        function = UserFunction.of(
            fn, context_type=Context, name=name, description=description, blocking=blocking
        )
        template = UriTemplate(uri)
        _check_uri(uri, template)
        _check_parameters(function, template)
        common: dict[str, Any] = {
            "name": function.name,
            "title": title or UNSET,
            "description": function.description or UNSET,
            "mime_type": mime_type or UNSET,
            "annotations": annotations or UNSET,
            "icons": list(icons) if icons else UNSET,
            "meta": make_meta(meta, tags, f"resource {function.name!r}") or UNSET,
        }
        run = make_runner(function, self._settings)
        said: dict[str, Any] = {"ttl_ms": ttl_ms, "scope": cache_scope, "scopes": scopes}
        shown: Resource | ResourceTemplate
        if template.names:
            shown = ResourceTemplate(uri_template=uri, **common)
            entry = RegisteredResource(function, shown, run, template, **said)
            self._add_template(uri, entry)
        else:
            shown = Resource(uri=uri, size=UNSET if size is None else size, **common)
            entry = RegisteredResource(function, shown, run, None, now=now, **said)
            self.listing.live = self.listing.live or now is not None
            self.listing.add(uri, entry)
        self.listing.used = self.templates.used = True  # one capability stands for both

    def add_folder(
        self, offered: "ReadableFolder", uris: "FolderUris", prefix: str, **options: Any
    ) -> None:
        """Offer the files of a folder; see ``Server.add_directory`` for the options."""
        ttl_ms, scope = options.pop("ttl_ms", 0), options.pop("cache_scope", "private")
        listed, scopes = options.pop("listed", True), options.pop("scopes", NO_SCOPES)
        options["meta"] = make_meta(options.get("meta"), options.pop("tags", ())) or None
        function = UserFunction.of(offered.read, context_type=Context, name=options["name"])
        given: Any = {key: UNSET if value is None else value for key, value in options.items()}
        shown = ResourceTemplate(uri_template=uris.template, **given)
        run = make_runner(function, self._settings)
        entry = RegisteredResource(
            function, shown, run, uris, ttl_ms=ttl_ms, scope=scope, scopes=scopes
        )
        self._add_template(uris.template, entry)
        self.listing.used = True
        self._folders[prefix] = uris.template
        if listed:
            self.listing.add_source(uris.template, offered.list_resources, entry.scopes)

    def remove(self, uri: str) -> None:
        """Offer it no longer.

        Raises:
            UsageError: there is no resource, template or folder of this URI.
        """
        template = self._folders.pop(uri, None)
        if template is not None:
            self.listing.remove_source(template)
            uri = template
        template_entry = self.templates.peek(uri)
        if template_entry is None:
            self.listing.remove(uri)
        else:
            self._move_template(uri, template_entry, offered=False)
            self.templates.remove(uri)

    def hides(self, uri: str) -> bool:
        """Whether rules of visibility hide what is at a URI."""
        if self.listing.peek(uri) is not None:
            return self.listing.get(uri) is None
        if self.find(uri)[0] is not None:
            return False
        hidden = (entry.template for entry in self.templates.list_withheld())
        return any(one is not None and one.match(uri) is not None for one in hidden)

    def _add_template(self, uri: str, entry: RegisteredResource) -> None:
        self.templates.add(uri, entry)
        self._move_template(uri, entry, offered=self.templates.get(uri) is not None)

    def _move_template(self, uri: str, entry: RegisteredResource, *, offered: bool) -> None:
        """Find URIs by a template from now on, or no longer; the files of a folder are listed as it is."""
        if offered and entry.template is not None:
            self._index.add(uri, entry.template.literals, entry)
            self.listing.silent_sources.discard(uri)
        else:
            if uri in self._indexed:
                self._index.remove(uri)
            self.listing.silent_sources.add(uri)
        (self._indexed.add if offered else self._indexed.discard)(uri)

    def needs(self, uri: str, principal: Principal | None) -> frozenset[str]:
        """The scopes that reading a resource takes, or hearing of its changes."""
        entry, values = self.find(uri)
        if entry is None or not entry.scopes:
            return NO_SCOPES
        function = entry.function

        def arguments() -> dict[str, Any] | None:
            try:
                return function.name_arguments(
                    function.bind(write_json(values) if values else EMPTY_ARGUMENTS)
                )
            except ArgumentError:
                return None

        return find_required_scopes(entry.scopes, principal, f"resource {uri!r}", arguments)

    async def read(self, params: ReadResourceParams, inbound: Inbound) -> Wire:
        """Handle ``resources/read``.

        Raises:
            Refuse: there is no such resource, or its function refused.
        """
        uri = params.uri
        entry, values = self.find(uri)
        if entry is None:
            raise make_not_found(inbound, uri)
        try:
            bound = entry.function.bind(write_json(values) if values else EMPTY_ARGUMENTS)
        except ArgumentError as error:
            # A URI whose parts do not fit names no resource: there is nothing to mend.
            raise make_not_found(inbound, uri) from error

        async def body(context: Context) -> Any:
            return await entry.run(bound, context)

        value = await run_refusing(body, inbound, params, uri, self._settings)
        if value is None:
            raise make_not_found(inbound, uri)
        if isinstance(value, InputRequiredResult | ReadResourceResult):
            return value
        readable = (
            "resources/read" in self._settings.wrapped
        )  # a middleware may want to look into it
        contents = to_result(
            lambda: to_resource_contents(value, uri, entry.mime_type, readable=readable),
            f"resource {entry.function.name!r}",
            entry.function.fn,
        )
        return ReadResourceResult(
            contents=contents,
            ttl_ms=entry.ttl_ms,
            cache_scope=entry.scope,
        )

    def find(self, uri: str) -> tuple[RegisteredResource | None, dict[str, Any] | None]:
        """The resource at a URI, or the first template that has it, with the values in it."""
        entry = self.listing.get(uri)
        if entry is not None:
            return entry, None
        for entry in self._index.find(quote_uri(uri[:MAX_URI_CHARS])):
            values = entry.template.match(uri) if entry.template else None
            if values is not None:
                return entry, values
        return None, None


def _check_parameters(function: UserFunction, template: UriTemplate) -> None:
    """See to it that a function takes what its template has.

    Raises:
        UsageError: it does not; the message says what is missing on which side.
    """
    names = {parameter.wire: parameter.required for parameter in function.parameters}
    unknown = [name for name in template.names if name not in names]
    if unknown:
        raise UsageError(
            f"{function.name}: {template.template!r} has {', '.join(unknown)}, which the function "
            "does not take"
        )
    lacking = [
        name
        for name, required in names.items()
        if required and (name not in template.names or name in template.optional)
    ]
    if lacking:
        raise UsageError(
            f"{function.name}: {template.template!r} may leave out {', '.join(lacking)}, which "
            "the function needs: put it into the URI, or give it a default"
        )


URI_SCHEME_PATTERN = r"(?s)[A-Za-z][A-Za-z0-9+.-]*:.+"


def _check_uri(uri: str, template: UriTemplate) -> None:
    """See to it that what is offered is a URI, or a template of URIs.

    Raises:
        UsageError: it is none.
    """
    # spec 2026-07-28 server/resources#custom-uri-schemes: MUST be in accordance with RFC 3986
    if not re.match(URI_SCHEME_PATTERN, uri) and not uri.startswith("{"):
        raise UsageError(f"{uri!r} is no URI: it begins with a scheme, as in 'notes://all'")
    if not template.names and template.expand({}) != uri:
        raise UsageError(f"{uri!r} is no URI: write {template.expand({})!r}")


def make_not_found(inbound: Inbound, uri: str) -> Refuse:
    """Make the refusal of a URI at which there is nothing, or nothing for its reader."""
    # spec 2026-07-28 server/resources#error-handling: -32602 with the URI; -32002 before
    code = resource_not_found_code(inbound.caller.revision)
    return Refuse(
        code, f"Resource not found: {shorten(uri)}", {"uri": shorten(uri, MAX_REPEATED_URI_CHARS)}
    )
