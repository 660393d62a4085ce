"""Validation by schemas that authors wrote by hand: compiled when first needed."""

from collections.abc import Mapping
from typing import Any

from isthmus.errors import UsageError


class Validator:
    """Checks values against one JSON Schema (2020-12, or what its ``$schema`` says).

    References are followed inside the schema only: nothing is fetched (spec 2026-07-28
    basic#ref-resolution: MUST NOT).

    Args:
        schema: the schema; it is not changed.
    """

    __slots__ = ("_compiled", "_schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._compiled: Any = None

    def problems(self, value: Any) -> list[tuple[str, str]]:
        """List what is wrong with a value: a JSON path and a sentence each; mostly nothing.

        Raises:
            UsageError: the schema itself is none.
        """
        if self._compiled is None:
            self._compiled = _compile_validator(self._schema)
        try:
            self._compiled.validate(value)
        except ValueError as flaw:  # the first one: the library would make all of them at once
            first = _locate_fault(flaw)
        else:
            return []
        from isthmus.server.schema.faults import find_faults

        # The library's patterns take a time that grows with the text, which Python's do not promise.
        return find_faults(self._schema, value, patterns=False) or [first]


def _locate_fault(flaw: ValueError) -> tuple[str, str]:
    steps = (
        f"[{s}]" if isinstance(s, int) else f".{s}" for s in getattr(flaw, "instance_path", ())
    )
    text = str(getattr(flaw, "message", flaw))
    return "$" + "".join(steps), text if len(
        text
    ) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"


MAX_TEXT_CHARS = 400


def _compile_validator(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs

    def offline(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema, and nothing is fetched")

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=offline)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise UsageError(f"the schema cannot be used: {error}") from error
