"""Tools of an API: each operation of a document as a tool of a server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from isthmus.errors import ToolError, UsageError
from isthmus.openapi.document import Document, DocumentError
from isthmus.openapi.operation import (
    Operation,
    OperationHead,
    clean_media_type,
    list_operations,
    read_operation,
)
from isthmus.openapi.request import BaseUrl, PreparedRequest, build_request, parse_base_url
from isthmus.openapi.sending import ApiResponse, Sender
from isthmus.openapi.tools.answers import find_answer_schema, make_result
from isthmus.openapi.tools.arguments import ArgumentPlan, plan_arguments
from isthmus.openapi.tools.credentials import ApiCredentials, hide_secrets, read_schemes
from isthmus.openapi.tools.schemas import Schema, SchemaConverter, shorten
from isthmus.openapi.tools.selection import (
    check_shapes,
    find_shape,
    make_tool_name,
    reshape,
    select_operations,
)
from isthmus.runtime.failures import log_warning
from isthmus.server.openapi_options import OpenApiOptions, Shape
from isthmus.server.schema.functions import ArgumentError
from isthmus.server.schema.validation import Validator
from isthmus.wire import CallToolResult

if TYPE_CHECKING:
    from isthmus.server.asking.context import Context
    from isthmus.server.server import Server

MAX_DESCRIPTION_CHARS = 2_000
MAX_TITLE_CHARS = 120
TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 1024 * 1024
MAX_LOGGED_PLACES = 5  # of a difference between an answer and its schema
READ_ONLY_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
IDEMPOTENT_METHODS = frozenset({"PUT", "DELETE"})
NO_SHAPE = Shape()


class LeftOut(Struct, frozen=True):
    """An operation that is not offered, and the reason.

    Attributes:
        what: method and path, or the place in the document.
        reason: why.
    """

    what: str
    reason: str


class ApiTool:
    """One operation as a tool.

    Args:
        name: of the tool.
        operation: the operation.
        plan: how its arguments become those of a request.
        shape: as the author wants it.
        api: the API that it is of.
    """

    __slots__ = ("_admits", "_answers", "_api", "_warned", "name", "operation", "plan", "shape")

    def __init__(
        self, name: str, operation: Operation, plan: ArgumentPlan, shape: Shape, api: "ApiTools"
    ) -> None:
        self.name = name
        self.operation = operation
        self.plan = plan
        self.shape = shape
        self._api = api
        self._admits: Validator | None = None
        self._answers: dict[int, tuple[Schema, Validator] | None] = {}
        self._warned = False

    @property
    def title(self) -> str:
        """A name for people; empty for none."""
        return shorten(self.shape.title or self.operation.summary, MAX_TITLE_CHARS)

    @property
    def description(self) -> str:
        """What it does, for a model."""
        own = self.shape.description
        if own is not None:
            return own
        said = [self.operation.summary.strip(), self.operation.description.strip()]
        parts = [part for at, part in enumerate(said) if part and part not in said[:at]]
        return shorten("\n\n".join(parts) or self.operation.title, MAX_DESCRIPTION_CHARS)

    def options(self) -> dict[str, Any]:
        """The options of ``Server.add_tool``."""
        method = self.operation.method
        reads = method in READ_ONLY_METHODS
        return {
            "name": self.name,
            "title": self.title or None,
            "description": self.description,
            "read_only": reads,
            "destructive": True if method == "DELETE" else False if reads else None,
            "idempotent": True if reads or method in IDEMPOTENT_METHODS else None,
            "open_world": True,
            "input_schema": self.plan.schema,
            "output_schema": self.output_schema() if self._api.strict else None,
        }

    def output_schema(self) -> Schema | None:
        """The schema of its structured content, by what the document says of a success."""
        for one in self.operation.answers:
            if one.status.startswith("2"):
                status = int(one.status) if one.status.isdecimal() else 200
                found = self._find_answer(status, "application/json")
                return None if found is None else found[0]
        return None

    def check_arguments(self, arguments: Mapping[str, Any]) -> None:
        """See that arguments fit, for a call that comes by way of another tool.

        Raises:
            ToolError: they do not.
        """
        self._admits = self._admits or Validator(self.plan.schema)
        problems = self._admits.problems(arguments)
        if problems:
            raise ArgumentError(self.name, problems)

    async def call(self, context: "Context", arguments: Mapping[str, Any]) -> CallToolResult:
        """Call the operation, with arguments that fit its schema.

        Raises:
            ToolError: an argument cannot be sent, or the API refused, failed or gave no answer.
        """
        api, operation = self._api, self.operation
        values = self.plan.sort(arguments)
        request = build_request(
            operation, values, api.find_base(operation), reserved=api.credentials.reserved
        )
        complete, secrets = await api.credentials.apply(operation, request, context)
        answer = await api.send(complete, context)
        if answer.status == 401 and api.credentials.can_renew(operation):  # it did nothing
            again, more = await api.credentials.apply(operation, request, context, secrets)
            if again != complete:
                secrets, answer = [*secrets, *more], await api.send(again, context)
        answer = hide_secrets(answer, secrets)
        result = make_result(operation, answer)
        self._check_result(answer, result)
        return result

    def _check_result(self, answer: ApiResponse, result: CallToolResult) -> None:
        """Hold a result against what the document says of it.

        Raises:
            ToolError: it differs, and must not.
        """
        kind = clean_media_type(answer.headers.get("content-type", ""))
        strict = self._api.strict
        if result.structured_content is UNSET:
            if strict and self.output_schema() is not None:
                raise ToolError("the API's answer is not the JSON that its description says")
            return
        found = self._find_answer(answer.status, kind or "application/json")
        if found is None or (self._warned and not strict):
            return
        problems = found[1].problems(result.structured_content)
        if not problems:
            return
        places = ", ".join(path for path, _ in problems[:MAX_LOGGED_PLACES])
        if strict:
            raise ToolError(f"the API's answer is not what its description says, at {places}")
        self._warned = True  # without the values, which are somebody's
        log_warning("%s answered what its description does not say, at %s", self.name, places)

    def _find_answer(self, status: int, kind: str) -> tuple[Schema, Validator] | None:
        """The schema of an answer, as structured content has it, and what checks it."""
        if status not in self._answers:
            place = find_answer_schema(self.operation, status, kind)
            self._answers[status] = None
            if place is not None:
                schema = self._api.convert_answer(place)
                self._answers[status] = schema, Validator(schema)
        return self._answers[status]


class ApiTools:
    """The operations of one document as tools.

    Args:
        document: the document.
        sender: sends the requests.
        options: those of ``Server.from_openapi``.
        base: where the API is, where it is not for the document to say.

    Attributes:
        tools: by name.
        left_out: operations that cannot be had, where that is put up with.

    Raises:
        DocumentError: an operation cannot be had.
        UsageError: an option does not fit the document.
    """

    def __init__(
        self,
        document: Document,
        sender: Sender,
        options: OpenApiOptions,
        *,
        base: BaseUrl,
    ) -> None:
        self.sender = sender
        self.strict = options.get("strict", False)
        self.timeout = options.get("timeout", TIMEOUT_S)
        self.max_bytes = options.get("max_bytes", MAX_ANSWER_BYTES)
        self.tools: dict[str, ApiTool] = {}
        self.left_out: list[LeftOut] = []
        self._document = document
        self._base = base
        self._fixed_base = "base_url" in options
        self._hosts = frozenset(
            parse_base_url(url).origin for url in options.get("allow_hosts", ())
        )
        self._lenient = options.get("lenient", False)
        self._converter = SchemaConverter(document)
        self.credentials = ApiCredentials(
            read_schemes(document), options.get("credentials"), options.get("headers")
        )
        self._read(options)

    def __iter__(self) -> Iterator[ApiTool]:
        return iter(self.tools.values())

    def register(self, server: "Server") -> None:
        """Offer each operation as a tool of a server.

        Raises:
            DocumentError: a schema cannot be that of a tool.
        """
        for tool in list(self.tools.values()):
            with self._naming(tool.operation.pointer):
                server.add_tool(make_function(tool), **tool.options())

    async def send(self, request: PreparedRequest, context: "Context") -> ApiResponse:
        """Send a request within the bounds that the author set."""
        return await self.sender.send(
            request, limit=self.max_bytes, timeout=self.timeout, context=context
        )

    def find_base(self, operation: Operation) -> BaseUrl:
        """The URL of an operation: the API's base, or a server of its own that is allowed.

        Raises:
            DocumentError: it is at a host that is not.
        """
        if not operation.servers:
            return self._base
        first = operation.servers[0]
        if "://" not in first:
            from urllib.parse import urljoin

            found = parse_base_url(urljoin(f"{self._base.origin}/", first))
            if found.origin == self._base.origin:
                return found  # else it began with two slashes: a host of its own
            bases = [found]
        else:
            bases = [parse_base_url(url) for url in operation.servers if "://" in url]
        for one in bases:
            if one.origin in self._hosts:
                return one
        if self._fixed_base or not bases:
            return self._base
        for one in bases:
            if one.origin == self._base.origin:
                return one
        raise DocumentError(
            operation.pointer,
            f"it is at {bases[0].origin}, which no request goes to: allow_hosts=[{bases[0].origin!r}], or base_url=",
        )

    def convert_answer(self, place: Any) -> Schema:
        """The schema of an answer as structured content, which is an object."""
        converted = self._converter.convert(place, "response")
        schema = converted.schema
        objects = _is_object(self._converter.resolve(place).node)
        wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
        if objects is None:  # an object is as it is, and anything else in one
            schema = (
                {"type": "object", "anyOf": [schema, wrapped]} if schema else {"type": "object"}
            )
        elif not objects:
            schema = wrapped
        elif schema.get("type") != "object":
            schema = {"type": "object", "allOf": [schema]}
        return self._converter.complete(schema, converted.uses, "response")

    # Inside

    def _read(self, options: OpenApiOptions) -> None:
        heads = [*list_operations(self._document, self._leave_out if self._lenient else None)]
        shapes = options.get("shape", {})
        check_shapes(heads, shapes)
        names: dict[str, OperationHead] = {}
        for head in select_operations(heads, options.get("include"), options.get("exclude")):
            shape = find_shape(head, shapes) or NO_SHAPE
            name = shape.name or make_tool_name(head)
            with self._naming(head.place.pointer):
                if name in names:
                    raise _make_clash(name, names[name], head)
                self.tools[name] = self._make_tool(name, head, shape)
                names[name] = head
        if not self.tools:
            reason = f": {self.left_out[0].reason}" if self.left_out else ""
            raise DocumentError("#/paths", f"there is no operation that could be a tool{reason}")

    def _make_tool(self, name: str, head: OperationHead, shape: Shape) -> ApiTool:
        operation = read_operation(self._document, head)
        self.find_base(operation)
        plan = plan_arguments(
            operation,
            self._converter,
            reserved=self.credentials.reserved,
            split_body=shape.split_body,
        )
        return ApiTool(
            name, operation, reshape(plan, shape) if shape is not NO_SHAPE else plan, shape, self
        )

    @contextmanager
    def _naming(self, pointer: str) -> Iterator[None]:
        """Name the place of what is refused; note it down instead, where that is put up with."""
        try:
            yield
        except DocumentError as error:
            if not self._lenient:
                raise
            self._leave_out(error)
        except UsageError as error:
            if not self._lenient:
                raise DocumentError(pointer, str(error)) from None
            self._leave_out(DocumentError(pointer, str(error)))

    def _leave_out(self, error: DocumentError) -> None:
        pointer, _, reason = str(error).partition(": ")
        self.left_out.append(LeftOut(pointer, reason))
        log_warning("left out: %s", error)

    def warn_of_missing(self) -> None:
        """Warn of security schemes that operations need, and that there is no credential for."""
        missing = self.credentials.find_missing(tool.operation for tool in self.tools.values())
        if missing:
            log_warning(
                "no credentials for %s: the API will refuse what needs them; pass credentials={%r: …}",
                ", ".join(missing), missing[0],
            )  # fmt: skip


def _is_object(node: Any) -> bool | None:
    """Whether a schema is of objects; None where it is of them and of others, or does not say."""
    if not isinstance(node, Mapping):
        return None
    kind = node.get("type")
    if kind is None:
        return True if "properties" in node else None
    if kind in ("object", ["object"]):
        return True
    return None if isinstance(kind, list) and "object" in kind else False


def _make_clash(name: str, first: OperationHead, second: OperationHead) -> DocumentError:
    why = (
        f"the operationId {second.id!r}"
        if first.id == second.id and first.id
        else f"the name {name!r}"
    )
    return DocumentError(
        f"{second.place.pointer}/operationId" if second.id else second.place.pointer,
        f"{second.method} {second.path} and {first.method} {first.path} ({first.place.pointer}) both "
        f"have {why}: give one another, with shape={{'{second.method} {second.path}': Shape(name=…)}}",
    )


def make_function(tool: ApiTool) -> Any:
    """The function that a server calls for a tool."""
    from isthmus.server.asking.context import Context

    # of this name, which no argument has: it gets all arguments
    async def call(ctx: Context, isthmus__arguments: dict[str, Any]) -> CallToolResult:
        return await tool.call(ctx, isthmus__arguments)

    return call


def settle_base(document: Document, options: OpenApiOptions) -> tuple[BaseUrl, bool]:
    """The address of an API, and whether the author said so.

    Raises:
        DocumentError: nobody says.
    """
    from isthmus.openapi.operation import fill_server_url

    given = options.get("base_url")
    if given is not None:
        return parse_base_url(given), True
    servers = [*document.start.items("servers")]
    variables = options.get("server_variables", {})
    url = fill_server_url(servers[0], variables) if servers else ""
    if "://" not in url and document.url:
        from urllib.parse import urljoin

        found = parse_base_url(urljoin(document.url, url or "/"))
        if found.origin == parse_base_url(document.url.partition("?")[0]).origin:
            return found, True
    if "://" not in url:
        what = f"its URL {url!r} is relative" if url else "it has none"
        raise DocumentError(
            "#/servers", f'{what}: say where the API is: base_url="https://…" (--base-url)'
        )
    try:
        base = parse_base_url(url)
    except UsageError as error:
        raise DocumentError("#/servers/0/url", str(error)) from None
    if base.origin.startswith("http:"):
        raise DocumentError(
            "#/servers/0/url", f"{url!r} is plain http: if that is meant, pass base_url={url!r}"
        )
    return base, False


def choose_search(search: Any, number: int) -> bool:
    """Whether so many tools are found by searching.

    Raises:
        UsageError: the option is none.
    """
    if search not in {True, False, "auto"}:
        raise UsageError(f"search= takes True, False or 'auto', not {search!r}")
    return number > MAX_LISTED_TOOLS if search == "auto" else bool(search)


MAX_LISTED_TOOLS = 60

__all__: Sequence[str] = [
    "ApiTool", "ApiTools", "LeftOut", "choose_search", "make_function", "settle_base",
]  # fmt: skip
