"""Schemas that authors wrote by hand: compiled when first needed, and kept as they are."""

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.errors import UsageError

__all__ = ["Validator"]


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
        """What is wrong with a value: where, as a JSON path, and what; mostly nothing.

        Raises:
            UsageError: the schema itself is none.
        """
        return list(self._problems(value))

    def _problems(self, value: Any) -> Iterator[tuple[str, str]]:
        if self._compiled is None:
            self._compiled = _compiled(self._schema)
        for flaw in self._compiled.iter_errors(value):
            steps = (f"[{s}]" if isinstance(s, int) else f".{s}" for s in flaw.instance_path)
            yield "$" + "".join(steps), flaw.message


def _compiled(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs

    def offline(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema, and nothing is fetched")

    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=offline)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise UsageError(f"the schema cannot be used: {error}") from error
