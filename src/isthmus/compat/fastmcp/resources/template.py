"""Resource templates under the names of ``fastmcp.resources.template``."""

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, get_args, get_origin

import msgspec
from pydantic import Field, PrivateAttr, field_validator

from isthmus.compat.fastmcp.components.component import FastMCPComponent, drop_none, dump_model
from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.fastmcp.components.functions import DECORATED, OfferedFunction
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.resources.function_resource import make_resource_annotations
from isthmus.compat.fastmcp.resources.model import ResourceResult, make_resource_result
from isthmus.compat.fastmcp.utilities.tasks import drop_task
from isthmus.wire import ResourceTemplate as WireTemplate

INHERITED = "inherited"  # from the server, which refuses what leads out of a folder

QUERY_BLOCK = re.compile(r"\{\?([^}]+)\}")
RESERVED = ":/?#[]@!$&'()*+,;="
TRUE_WORDS, FALSE_WORDS = ("true", "1", "yes"), ("false", "0", "no")


def list_query_names(template: str) -> dict[str, bool]:
    """The names of the query of a template, and whether each may come several times."""
    found = QUERY_BLOCK.search(template)
    names = [name.strip() for name in found[1].split(",")] if found else []
    return {name.removesuffix("*"): name.endswith("*") for name in names}


def list_path_names(template: str) -> list[str]:
    """The names in the path of a template."""
    return re.findall(r"\{(\w[\w-]*)\*?\}", QUERY_BLOCK.sub("", template))


@lru_cache(maxsize=4096)
def build_regex(template: str) -> re.Pattern[str] | None:
    """The pattern of the path of a template; None where the template makes none."""
    pattern = ""
    for part in re.split(r"(\{[^}]+\})", QUERY_BLOCK.sub("", template)):
        if part.startswith("{") and part.endswith("}"):
            name = part[1:-1]
            group = name.removesuffix("*").replace("-", "_")
            pattern += f"(?P<{group}>{'.+' if name.endswith('*') else '[^/]+'})"
        else:
            pattern += "".join(map(_escape_character, part))
    try:
        return re.compile(f"^{pattern}$")
    except re.error:
        return None


def _escape_character(character: str) -> str:
    """A pattern of a character as it is, or percent-encoded where a URI wants that."""
    from urllib.parse import quote

    encoded = quote(character, safe=RESERVED + "%")
    if encoded == character:
        return re.escape(character)
    return f"(?:{re.escape(character)}|(?i:{re.escape(encoded)}))"


def match_uri_template(
    uri: str, template: str, list_names: frozenset[str] = frozenset()
) -> dict[str, Any] | None:
    """The values that a URI has for the names of a template; None where it does not match.

    Args:
        uri: the URI.
        template: the template.
        list_names: the names of the query whose values are lists that commas separate.
    """
    from urllib.parse import parse_qs, unquote

    if "#" not in template:
        uri = uri.partition("#")[0]
    path, _, query = uri.partition("?")
    regex = build_regex(template)
    found = regex.match(path) if regex else None
    if found is None:
        return None
    values: dict[str, Any] = {name: unquote(value) for name, value in found.groupdict().items()}
    fields = parse_qs(query, keep_blank_values=True)
    for name, exploded in list_query_names(template).items():
        key = name.replace("-", "_")
        if name in fields and key not in values:
            first = fields[name][0]
            listed = first.split(",") if first else []
            values[key] = fields[name] if exploded else listed if name in list_names else first
    return values


class ResourceTemplate(FastMCPComponent):
    """Template of resources of a server written for fastmcp; a subclass overrides ``read``.

    Attributes:
        uri_template: the template; ``{name*}`` takes several segments, ``{?a,b}`` the query.
        mime_type: the type of what its resources have.
        parameters: JSON Schema of its names.
        annotations: for whom they are, and how important.
        security: whether values that lead out of a folder are refused; None takes them.
    """

    KEY_PREFIX: ClassVar[str] = "template"

    uri_template: str
    mime_type: str = "text/plain"
    parameters: dict[str, Any] = Field(default_factory=dict)
    annotations: Any = None
    security: Any = INHERITED

    _lists: frozenset[str] = PrivateAttr(default_factory=frozenset)

    @field_validator("mime_type", mode="before")
    @classmethod
    def set_default_mime_type(cls, mime_type: str | None) -> str:
        """The type, plain text if none was given."""
        return mime_type or "text/plain"

    @property
    def identifier(self) -> str:
        """What it is listed by: its template."""
        return self.uri_template

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri_template: str, **options: Any) -> Any:
        """Make a template of a function; the options are those of ``@mcp.resource``."""
        return FunctionResourceTemplate.from_function(fn, uri_template, **options)

    def matches(self, uri: str) -> dict[str, Any] | None:
        """The values that a URI has for its names; None where it does not match."""
        return match_uri_template(uri, self.uri_template, self._lists)

    async def read(self, arguments: dict[str, Any]) -> Any:
        """Read the resource of these values: a subclass does."""
        raise NotImplementedError("Subclasses must implement read()")

    def convert_result(self, value: Any) -> ResourceResult:
        """Make a result of what a function returned."""
        kind = self.mime_type if FLAVOUR.types_templates else None
        return make_resource_result(value, kind, self.meta)

    def to_wire(self, uri_template: str) -> WireTemplate:
        """The template as isthmus lists it."""
        listed = {
            **self.list_shared_members(),
            "uriTemplate": uri_template,
            "mimeType": self.mime_type,
            "annotations": dump_model(self.annotations),
        }
        return msgspec.convert(drop_none(listed), WireTemplate)

    def to_mcp_template(self, **overrides: Any) -> Any:
        """Convert it to ``mcp.types.ResourceTemplate``."""
        listed = msgspec.to_builtins(self.to_wire(self.uri_template))
        return load_types().ResourceTemplate.model_validate({**listed, **overrides})


class FunctionResourceTemplate(ResourceTemplate):
    """Template whose resources a function gives.

    Attributes:
        fn: the function.
    """

    fn: Any

    _function: OfferedFunction = PrivateAttr()

    @classmethod
    def from_function(
        cls, fn: Callable[..., Any], uri_template: str, **options: Any
    ) -> "FunctionResourceTemplate":
        """Make a template of a function.

        Raises:
            ValueError: its names and the parameters of the function do not fit.
        """
        given = {**getattr(fn, DECORATED, {}), **options}
        drop_task(given, "a template")
        given.pop("uri", None)
        function = OfferedFunction(fn, "resource templates")
        check_template(uri_template, function)
        description = given.pop("description", None)
        made = cls(
            fn=function.fn,
            uri_template=uri_template,
            name=given.pop("name", None) or function.name,
            description=inspect.getdoc(function.fn) if description is None else description,
            parameters=function.make_schema(),
            annotations=make_resource_annotations(given.pop("annotations", None)),
            **{key: value for key, value in given.items() if value is not None},
        )
        made._function = function
        made._lists = frozenset(
            name
            for name, exploded in list_query_names(uri_template).items()
            if not exploded and _is_list(function.hints.get(name.replace("-", "_")))
        )
        return made

    async def read(self, arguments: dict[str, Any]) -> Any:
        """Call the function with the values of a URI."""
        values = {
            name: _read_word(name, value, self._function.hints.get(name))
            for name, value in arguments.items()
        }
        return await self._function.call(self._function.bind(values))


def _is_list(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_list(get_args(annotation)[0])
    return annotation is list or get_origin(annotation) is list


def _read_word(name: str, value: Any, annotation: Any) -> Any:
    """A value of a URI as the word that its parameter takes: a number, or yes and no.

    Raises:
        ValueError: it is none.
    """
    if annotation in (int, float) and isinstance(value, str):
        return annotation(value)
    if annotation is bool and isinstance(value, str):
        if value.lower() not in (*TRUE_WORDS, *FALSE_WORDS):
            raise ValueError(f"Invalid boolean value for {name}: {value!r}")
        return value.lower() in TRUE_WORDS
    return value


def check_template(template: str, function: OfferedFunction) -> None:
    """See that the names of a template and the parameters of a function fit.

    Raises:
        ValueError: they do not.
    """
    parameters = function.signature.parameters
    paths = {name.replace("-", "_") for name in list_path_names(template)}
    queries = {name.replace("-", "_") for name in list_query_names(template)}
    if not paths and not queries:
        raise ValueError("URI template must contain at least one parameter")
    required = {name for name, one in parameters.items() if one.default is one.empty}
    if needed := queries & required:
        raise ValueError(
            f"Query parameters {needed} must be optional function parameters with default values"
        )
    if not required <= paths:
        raise ValueError(
            f"Required function arguments {required} must be a subset of the URI path parameters {paths}"
        )
    if not paths | queries <= set(parameters):
        raise ValueError(
            f"URI parameters {paths | queries} must be a subset of the function arguments: {set(parameters)}"
        )
