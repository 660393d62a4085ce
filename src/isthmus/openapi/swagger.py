"""Swagger 2.0, converted to OpenAPI 3.0: the same operations, said in the newer form.

Places keep their JSON pointers as far as they can: what moves are definitions, parameters and responses
that are referred to.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.openapi.document import DocumentError, escape_step

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
MOVED = {
    "#/definitions/": "#/components/schemas/",
    "#/responses/": "#/components/responses/",
    "#/parameters/": "#/components/parameters/",
}
STYLES: Mapping[str, tuple[str, bool]] = {
    "multi": ("form", True),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "tsv": ("spaceDelimited", False),
}
SCHEMA_KEYS = (
    "type", "format", "items", "default", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
    "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "enum", "multipleOf",
)  # fmt: skip
FORM, MULTIPART, JSON = (
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/json",
)
FLOWS = {"implicit": "implicit", "password": "password", "application": "clientCredentials", "accessCode": "authorizationCode"}  # fmt: skip


def convert_swagger(root: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a Swagger 2.0 document to OpenAPI 3.0.

    Raises:
        DocumentError: a part of it is of another kind than it must be.
    """
    return SwaggerConverter(root).convert()


class SwaggerConverter:
    """Converts one document.

    Args:
        root: the document.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parameters = _get_mapping(root, "parameters", "#")

    def convert(self) -> dict[str, Any]:
        """The document in the form of 3.0."""
        root = self._root
        paths = _get_mapping(root, "paths", "#")
        responses = _get_mapping(root, "responses", "#")
        plain = {
            name: self._convert_parameter(one)
            for name, one in self._parameters.items()
            if isinstance(one, Mapping) and one.get("in") not in {"body", "formData"}
        }
        return {
            "openapi": "3.0.3",
            "info": root.get("info", {}),
            "servers": list_servers(root),
            "tags": root.get("tags", []),
            "paths": {path: self._convert_path(path, item) for path, item in paths.items()},
            "security": root.get("security", []),
            "components": {
                "schemas": _move_references(_get_mapping(root, "definitions", "#")),
                "parameters": plain,
                "responses": {
                    name: self._convert_response(one, root.get("produces"))
                    for name, one in responses.items()
                },
                "securitySchemes": convert_schemes(root),
            },
        }

    def _convert_path(self, path: str, item: Any) -> Any:
        if not isinstance(item, Mapping) or path.startswith("x-"):
            return item
        pointer = f"#/paths/{escape_step(path)}"
        shared = [*self._list_parameters(item, pointer)]
        converted: dict[str, Any] = {
            "parameters": [self._convert_parameter(one) for one in shared if not _is_body(one)]
        }
        if "$ref" in item:
            converted["$ref"] = item["$ref"]
        for method in METHODS:
            operation = item.get(method)
            if isinstance(operation, Mapping):
                converted[method] = self._convert_operation(
                    operation, shared, f"{pointer}/{method}"
                )
        return converted

    def _convert_operation(
        self, operation: Mapping[str, Any], shared: list[Mapping[str, Any]], pointer: str
    ) -> dict[str, Any]:
        own = [*self._list_parameters(operation, pointer)]
        names = {(one.get("in"), one.get("name")) for one in own}
        bodies = [one for one in own if _is_body(one)]
        bodies += (
            one for one in shared if _is_body(one) and (one.get("in"), one.get("name")) not in names
        )
        produces = operation.get("produces", self._root.get("produces"))
        kept = ("operationId", "summary", "description", "tags", "deprecated", "security")
        converted = {key: operation[key] for key in kept if key in operation}
        converted["parameters"] = [self._convert_parameter(one) for one in own if not _is_body(one)]
        responses = _get_mapping(operation, "responses", pointer)
        converted["responses"] = {
            status: self._convert_response(one, produces) for status, one in responses.items()
        }
        if bodies:
            consumes = operation.get("consumes", self._root.get("consumes"))
            converted["requestBody"] = self._convert_body(bodies, consumes)
        return converted

    def _list_parameters(
        self, node: Mapping[str, Any], pointer: str
    ) -> Iterator[Mapping[str, Any]]:
        """The parameters of a path or an operation, references to bodies and forms followed."""
        listed = node.get("parameters", [])
        if not isinstance(listed, list):
            raise DocumentError(f"{pointer}/parameters", "this must be a list")
        for at, one in enumerate(listed):
            if not isinstance(one, Mapping):
                raise DocumentError(f"{pointer}/parameters/{at}", "a parameter must be an object")
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/parameters/"):
                name = reference.removeprefix("#/parameters/").replace("~1", "/").replace("~0", "~")
                found = self._parameters.get(name)
                if not isinstance(found, Mapping):
                    raise DocumentError(
                        f"{pointer}/parameters/{at}", f"$ref {reference!r} leads nowhere"
                    )
                yield found
            else:
                yield one

    def _convert_parameter(self, one: Mapping[str, Any]) -> dict[str, Any]:
        if "$ref" in one:
            moved: dict[str, Any] = _move_references(dict(one))
            return moved
        kept = ("name", "in", "description", "required", "deprecated")
        converted = {key: one[key] for key in kept if key in one}
        converted["schema"] = _make_schema(one)
        if one.get("type") == "array" or one.get("collectionFormat"):
            place = one.get("in")
            style, explode = STYLES.get(str(one.get("collectionFormat")), ("form", False))
            converted["style"] = style if place == "query" else "simple"
            converted["explode"] = explode and place == "query"
        return converted

    def _convert_body(self, bodies: list[Mapping[str, Any]], consumes: Any) -> dict[str, Any]:
        listed = [str(one) for one in consumes] if isinstance(consumes, list) else []
        for one in bodies:
            if one.get("in") == "body":
                return {
                    "description": one.get("description", ""),
                    "required": one.get("required") is True,
                    "content": {
                        name: {"schema": _move_references(one.get("schema", {}))}
                        for name in listed or [JSON]
                    },
                }
        files = any(_has_file(one) for one in bodies)
        name = MULTIPART if files or (MULTIPART in listed and FORM not in listed) else FORM
        properties, encoding = {}, {}
        for one in bodies:
            schema = _make_schema(one)
            if one.get("description"):
                schema["description"] = one["description"]
            properties[str(one.get("name"))] = schema
            if one.get("type") == "array" and name == FORM:
                style, explode = STYLES.get(str(one.get("collectionFormat")), ("form", False))
                encoding[str(one.get("name"))] = {"style": style, "explode": explode}
        required = [str(one.get("name")) for one in bodies if one.get("required") is True]
        schema = {"type": "object", "properties": properties, "required": required}
        return {
            "required": bool(required),
            "content": {name: {"schema": schema, "encoding": encoding}},
        }

    def _convert_response(self, one: Any, produces: Any) -> Any:
        if not isinstance(one, Mapping) or "$ref" in one:
            return _move_references(one)
        schema = one.get("schema")
        if schema is None:
            return {"description": one.get("description", "")}
        names = [str(name) for name in produces] if isinstance(produces, list) else []
        return {
            "description": one.get("description", ""),
            "content": {name: {"schema": _move_references(schema)} for name in names or [JSON]},
        }


def list_servers(root: Mapping[str, Any]) -> list[dict[str, str]]:
    """The URLs of an API by its host, base path and schemes: those by ``https`` first."""
    host, base = root.get("host"), root.get("basePath", "/")
    base = base if isinstance(base, str) else "/"
    if not isinstance(host, str) or not host:
        return [{"url": base}] if base != "/" else []
    schemes = root.get("schemes")
    named = (
        [one for one in schemes if one in {"http", "https"}] if isinstance(schemes, list) else []
    )
    return [{"url": f"{one}://{host}{base}"} for one in sorted(named or ["https"], reverse=True)]


def convert_schemes(root: Mapping[str, Any]) -> dict[str, Any]:
    """The security schemes as 3.0 has them."""
    found: dict[str, Any] = {}
    for name, one in _get_mapping(root, "securityDefinitions", "#").items():
        if not isinstance(one, Mapping):
            raise DocumentError(
                f"#/securityDefinitions/{escape_step(name)}", "a security scheme must be an object"
            )
        if one.get("type") == "basic":
            found[name] = {"type": "http", "scheme": "basic"}
        elif one.get("type") == "oauth2":
            flow = FLOWS.get(str(one.get("flow")), "implicit")
            found[name] = {"type": "oauth2", "flows": {flow: {"scopes": one.get("scopes", {})}}}
        else:
            found[name] = dict(one)
    return found


def _get_mapping(node: Mapping[str, Any], key: str, pointer: str) -> Mapping[str, Any]:
    found = node.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise DocumentError(f"{pointer}/{key}", "this must be an object")
    return {str(name): one for name, one in found.items()}


def _is_body(one: Mapping[str, Any]) -> bool:
    return one.get("in") in {"body", "formData"}


def _has_file(one: Mapping[str, Any]) -> bool:
    items = one.get("items")
    return one.get("type") == "file" or (isinstance(items, Mapping) and items.get("type") == "file")


def _make_schema(one: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a parameter, which stands in it by its keywords."""
    schema = {key: one[key] for key in SCHEMA_KEYS if key in one}
    if schema.get("type") == "file":
        schema = {"type": "string", "format": "binary"}
    converted: dict[str, Any] = _move_references(schema)
    return converted


def _move_references(node: Any) -> Any:
    """A copy with references to where definitions stand in 3.0, and ``x-nullable`` as it is there."""
    if isinstance(node, list):
        return [_move_references(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    moved = {key: _move_references(one) for key, one in node.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str):
        for old, new in MOVED.items():
            if reference.startswith(old):
                moved["$ref"] = new + reference.removeprefix(old)
    if moved.get("x-nullable") is True:
        moved["nullable"] = True
    return moved
