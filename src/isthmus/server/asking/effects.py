"""Effects of ``ctx.once``: how they are run, recorded, and read back.

What an effect gave is written as JSON even where nothing is kept, so that the author sees the
same value whether it came from the effect or from the record of it. An exception is written
down, too: an effect that failed has happened.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, get_type_hints

import msgspec

from isthmus.core.journal import canonicalize
from isthmus.errors import UsageError
from isthmus.server.schema.custom_types import decode_custom, make_expressible, write_json
from isthmus.server.serve.workers import Workers


class EffectOutcome(msgspec.Struct, array_like=True, omit_defaults=True):
    """The outcome of an effect: a value, or the exception it raised."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    failure: "EffectFailure | None" = None


class EffectFailure(msgspec.Struct, array_like=True):
    """An exception, as far as JSON can hold it."""

    module: str
    name: str
    args: list[Any]
    state: dict[str, Any]
    text: str


_decode_outcome = msgspec.json.Decoder(EffectOutcome).decode


def describe_effect(effect: Callable[..., Any], args: Sequence[Any]) -> tuple[str, bytes]:
    """The name and the arguments, as canonical JSON, that an effect is known by in every run."""
    while isinstance(effect, functools.partial):
        args = (*effect.args, *sorted(effect.keywords.items()), *args)
        effect = effect.func
    named: Any = effect if hasattr(effect, "__qualname__") else type(effect)
    name = f"{named.__module__}.{named.__qualname__}"
    if name.endswith("<lambda>"):
        name += f" at {named.__code__.co_firstlineno}"  # its line is all the name it has
    try:
        written = write_json(args)
    except (TypeError, ValueError):
        written = write_json([_to_plain_data(arg) for arg in args])
    # what holds no object has one spelling only
    return name, canonicalize(written) if b"{" in written else written


def _to_plain_data(value: Any) -> Any:
    """A value that JSON can hold, itself; of any other, only its type lasts between runs."""
    try:
        return msgspec.Raw(write_json(value))
    except (TypeError, ValueError):
        return f"<{type(value).__module__}.{type(value).__qualname__}>"


async def perform_effect(
    effect: Callable[..., Any], args: Sequence[Any], workers: Workers
) -> tuple[bytes, Exception | None]:
    """Run an effect: an async function here, a plain one in a thread.

    Returns:
        The record of what it came to, and the very exception if it raised one.
    """
    try:
        if inspect.iscoroutinefunction(effect):
            value = await effect(*args)
        else:
            value = await workers.run(functools.partial(effect, *args))
            if inspect.isawaitable(value):
                value = await value
        return msgspec.json.encode(EffectOutcome(_write_value(value))), None
    except Exception as error:  # noqa: BLE001 - it is raised again where the effect was asked for
        return msgspec.json.encode(EffectOutcome(failure=_record_failure(error))), error


def recall_effect(record: bytes | msgspec.Raw, effect: Callable[..., Any]) -> Any:
    """Read back the value of a recorded effect, as the type it is annotated to return.

    Raises:
        Exception: the one that the effect raised.
        UsageError: it gave what its annotation does not allow.
    """
    outcome = _decode_outcome(record)
    if outcome.failure is not None:
        raise _restore_exception(outcome.failure)
    try:
        return _find_reader(effect)(outcome.value)
    except (ValueError, TypeError) as error:
        name = getattr(effect, "__qualname__", effect)
        raise UsageError(
            f"{name} returned a value that its annotation does not allow: {error}"
        ) from error


def _write_value(value: Any) -> msgspec.Raw:
    try:
        return msgspec.Raw(write_json(value))
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the result of ctx.once must be stored, and this one cannot: {error}; return plain data, "
            "such as the id of what was made"
        ) from error


def _find_reader(effect: Callable[..., Any]) -> Callable[[msgspec.Raw], Any]:
    """What reads the results of an effect; made once for each return annotation.

    Raises:
        UsageError: nothing can be read as that.
    """
    annotation = _read_return_annotation(effect)
    try:
        return _make_reader(annotation)
    except TypeError:  # an annotation that has no hash
        return _make_reader.__wrapped__(annotation)


@functools.lru_cache(maxsize=256)
def _make_reader(annotation: Any) -> Callable[[msgspec.Raw], Any]:
    return msgspec.json.Decoder(make_expressible(annotation), dec_hook=decode_custom).decode


def _read_return_annotation(effect: Callable[..., Any]) -> Any:
    function = _find_function(effect)
    annotation = getattr(function, "__annotations__", {}).get("return", Any)
    if type(annotation) is type:
        return annotation  # nothing in it has to be looked up
    try:
        return get_type_hints(function, include_extras=True).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any


def _find_function(effect: Any) -> Any:
    if type(effect) is FunctionType:
        return effect
    while isinstance(effect, functools.partial):
        effect = effect.func
    return effect if inspect.isroutine(effect) else type(effect).__call__


def _record_failure(error: Exception) -> EffectFailure:
    kind = type(error)
    state = {key: value for key, value in vars(error).items() if _is_plain(value)}
    args = [arg if _is_plain(arg) else str(arg) for arg in error.args]
    return EffectFailure(kind.__module__, kind.__qualname__, args, state, str(error))


def _is_plain(value: Any) -> bool:
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except (TypeError, ValueError):
        return False


def _restore_exception(failure: EffectFailure) -> Exception:
    """The exception again; of a class that is not to be found, one that names it."""
    kind: Any = sys.modules.get(failure.module)
    for name in failure.name.split("."):
        kind = getattr(kind, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            error = kind.__new__(kind, *failure.args)
        except TypeError:
            pass  # a class that insists on arguments it does not keep
        else:
            vars(error).update(failure.state)
            return error
    return RuntimeError(f"{failure.name}: {failure.text}")
