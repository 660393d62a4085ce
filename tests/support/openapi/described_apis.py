"""OpenAPI documents as the echo server reads them: by rules of its own, and nothing of isthmus.

What isthmus reads of a document and what is read here are made independently of each other, so that
one mistake does not hide another.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
COLLECTIONS = {
    "csv": ("form", False), "ssv": ("spaceDelimited", False), "tsv": ("tab", False),
    "pipes": ("pipeDelimited", False), "multi": ("form", True),
}  # fmt: skip


@dataclass
class Described:
    """A parameter as the document describes it."""

    name: str
    place: str
    schema: Any
    style: str
    explode: bool
    media: str = ""


@dataclass
class Api:
    """A document, and what a reference in it means."""

    root: Any
    swagger: bool = field(init=False)

    def __post_init__(self):
        self.swagger = "swagger" in self.root

    def follow(self, node):
        """What a reference means; what is none is itself."""
        for _ in range(50):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                return node
            found = self.root
            for step in node["$ref"].removeprefix("#").split("/")[1:]:
                key = unquote(step).replace("~1", "/").replace("~0", "~")
                found = found[int(key)] if isinstance(found, list) else found[key]
            node = found
        raise AssertionError("a reference leads in a circle")

    def kinds(self, schema, depth=0):  # noqa: PLR0911 - a case a line
        """The types that a value of a schema may have; None where it may have any."""
        schema = self.follow(schema)
        if not isinstance(schema, dict) or depth > 12:
            return None
        said = schema.get("type")
        if said == "string" and not any(isinstance(v, str) for v in schema.get("enum", [""])):
            return {_kind(value) for value in schema["enum"]}  # a mistake: no text is one of these
        if said is not None:
            found = {said} if isinstance(said, str) else set(said)
            return found | ({"null"} if schema.get("nullable") else set())
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            return {_kind(value) for value in values} or None
        known = [found for one in schema.get("allOf", ()) if (found := self.kinds(one, depth + 1))]
        if known:
            return set.intersection(*known)
        for key in ("oneOf", "anyOf"):
            if schema.get(key):
                each = [self.kinds(one, depth + 1) for one in schema[key]]
                return None if None in each else set.union(*each)
        if "properties" in schema or "additionalProperties" in schema:
            return {"object"}
        return {"array"} if "items" in schema else None

    def members(self, schema, depth=0):
        """The schemas of an object's members, those of its parts as well."""
        schema = self.follow(schema)
        found: dict[str, Any] = {}
        if not isinstance(schema, dict) or depth > 12:
            return found
        for key in ("allOf", "oneOf", "anyOf"):
            for one in schema.get(key, ()):
                found.update(self.members(one, depth + 1))
        found.update(schema.get("properties", {}))
        return found

    def items(self, schema, depth=0):
        """The schema of a list's items."""
        schema = self.follow(schema)
        if not isinstance(schema, dict) or depth > 12:
            return {}
        if "items" in schema:
            return schema["items"]
        for key in ("allOf", "oneOf", "anyOf"):
            for one in schema.get(key, ()):
                found = self.items(one, depth + 1)
                if found:
                    return found
        return {}


@dataclass
class DescribedOperation:
    """An operation as the document describes it."""

    api: Api
    method: str
    path: str
    base: str
    parameters: list[Described]
    media: dict[str, Any]
    form: dict[str, Any] | None = None
    """The parameters in ``formData`` of Swagger 2, as the schema of an object."""


def _kind(value):
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def load_api(path: Path) -> Api:
    """Read a document: JSON, YAML, or one of them with gzip."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if data.lstrip().startswith(b"{"):
        return Api(json.loads(data))
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        """Dates stay texts."""

    Loader.yaml_implicit_resolvers = {
        sign: [pair for pair in pairs if not pair[0].endswith(("timestamp", ":value"))]
        for sign, pairs in Loader.yaml_implicit_resolvers.items()
    }
    return Api(yaml.load(data, Loader))  # noqa: S506 - a safe loader


def list_described(api: Api) -> Iterator[DescribedOperation]:
    """Every operation of a document."""
    for path, found in api.root.get("paths", {}).items():
        if path.startswith("x-"):
            continue
        item = api.follow(found)
        pairs = [(key, item[key]) for key in METHODS if key in item]
        pairs += item.get("additionalOperations", {}).items()
        for method, operation in pairs:
            yield _describe(api, method.upper(), path, item, operation)


def _describe(api, method, path, item, operation):
    merged = {}
    for source in (item, operation):
        for one in map(api.follow, source.get("parameters", ())):
            merged[one["in"], one["name"]] = one
    plain = [one for (place, _), one in merged.items() if place not in ("body", "formData")]
    bodies = [one for (place, _), one in merged.items() if place == "body"]
    fields = {name: one for (place, name), one in merged.items() if place == "formData"}
    parameters = [_describe_parameter(api, one) for one in plain]
    base = _find_base(api, item, operation)
    if not api.swagger:
        media = api.follow(operation.get("requestBody", {})).get("content", {})
        media = {name: api.follow(one) for name, one in media.items()}
        return DescribedOperation(api, method, path, base, parameters, media)
    takes = operation.get("consumes", api.root.get("consumes")) or ["application/json"]
    media = {name: {"schema": bodies[0].get("schema", {})} for name in takes} if bodies else {}
    form = {"type": "object", "properties": fields} if fields else None
    return DescribedOperation(api, method, path, base, parameters, media, form)


def _find_base(api, item, operation):
    return urlsplit(find_url(api, item, operation)).path.rstrip("/")


def find_url(api: Api, *places: Any) -> str:
    """The first server's URL, of an operation or its path where these have some of their own."""
    if api.swagger:
        scheme = (api.root.get("schemes") or ["https"])[0]
        return f"{scheme}://{api.root.get('host', 'echo.example')}{api.root.get('basePath', '')}"
    found = [one["servers"] for one in (*reversed(places), api.root) if one.get("servers")]
    server = found[0][0] if found else {"url": ""}
    url = server["url"]
    for name, variable in server.get("variables", {}).items():
        url = url.replace(f"{{{name}}}", str(variable["default"]))
    return url if "://" in url else f"http://echo.example{url}"


def _describe_parameter(api, one):
    place = one["in"]
    style = one.get("style", "simple" if place in ("path", "header") else "form")
    explode = one.get("explode", style in ("form", "cookie"))
    schema, media = one.get("schema", {}), ""
    if "content" in one:
        media, found = next(iter(one["content"].items()))
        schema = found.get("schema", {})
    if api.swagger:
        schema = one
        style, explode = COLLECTIONS[one.get("collectionFormat", "csv")]
        style = "simple" if place in ("path", "header") else style
    return Described(one["name"], place, schema, style, explode, media)
