"""Mcp-Session-Id as a sealed record: what a handshake settled, carried by the client.

Any process that has the key opens it and serves the session, also one that was started since. It
proves that a session was opened here, and nothing else: who may use it is judged with each request,
and whether it has ended is told by whoever keeps that.

Randomness and time arrive as arguments, as everywhere in the core.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, structs

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.core.sealing import SEAL_BYTES, SealBroken, decrypt, encrypt
from isthmus.wire import ClientCapabilities, Implementation

# Of an id: some balancers and proxies take a head of 8 KiB in all, and every request carries it
MAX_SESSION_ID_CHARS = 599

MAX_FACTS_BYTES = MAX_SESSION_ID_CHARS * 3 // 4 - SEAL_BYTES

MAX_NAME_BYTES = 64  # of a client's name, and of its version, where there is no room for all

MARK_BYTES = 10

ID_KIND = b"\x21"

# What msgpack cannot carry, though JSON can: of that, nothing fits
_UNFIT = (OverflowError, RecursionError, TypeError, ValueError)


class SessionFacts(msgspec.Struct, frozen=True, array_like=True):
    """What a session is, from its handshake to its end.

    Attributes:
        revision: the revision agreed on, by name.
        capabilities: what the client can do.
        info: who it says it is.
        owner: a digest of the principal it belongs to, from
            :func:`~isthmus.core.principal.digest_owner`; None for nobody.
        mark: random: names its streams and records, and is no secret.
        birth: when it was opened, in seconds since the epoch.
        node: the node that opened it.
    """

    revision: str
    capabilities: ClientCapabilities
    info: Implementation | None
    owner: bytes | None
    mark: str
    birth: int
    node: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SessionFacts).decode


def seal_session_id(facts: SessionFacts, keys: Sequence[bytes], nonce: bytes, server: str) -> str:
    """A session's id: visible ASCII, and shorter than 600 characters whatever its client says.

    What does not fit is left out: first the icons, description, website and title of the client,
    then experimental capabilities, the settings of extensions and those of other capabilities,
    then the extensions, and at last the ends of the client's name and version.

    Args:
        facts: what it says.
        keys: secrets of 16 bytes or more; the first one seals.
        nonce: 12 random bytes, never used before.
        server: the server's name: the id opens for no other.

    Raises:
        UsageError: no key, or a nonce of another length.
    """
    content = _encode_fitting(facts)
    # spec 2025-11-25 basic/transports#session-management: MUST only contain visible ASCII
    # characters (0x21 to 0x7E); SHOULD be globally unique and cryptographically secure
    return encode_base64url(encrypt(ID_KIND, content, keys, nonce, _bind(server)))


def unseal_session_id(id: str, keys: Sequence[bytes], server: str) -> SessionFacts:
    """The facts that an id says.

    Args:
        id: as it came.
        keys: the secrets it may have been sealed with.
        server: the server's name.

    Raises:
        SealBroken: it was changed, belongs to another server, or was never ours.
    """
    if len(id) > MAX_SESSION_ID_CHARS:
        raise SealBroken(f"{len(id)} characters long")
    content = decrypt(ID_KIND, decode_base64url(id) or b"", keys, _bind(server))
    try:
        return _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SealBroken(f"sealed by an incompatible server: {error}") from None


def _bind(server: str) -> bytes:
    return b"session " + server.encode("utf-8", "surrogatepass")


def _encode_fitting(facts: SessionFacts) -> bytes:
    """The facts as bytes, as many of them as fit."""
    content = _try_encode(facts)
    if content is not None:
        return content
    for shorter in _shorten_stepwise(facts):
        content = _try_encode(shorter)
        if content is not None:
            return content
    return _encode(structs.replace(facts, capabilities=ClientCapabilities(), info=None))


def _try_encode(facts: SessionFacts) -> bytes | None:
    try:
        content = _encode(facts)
    except _UNFIT:
        return None
    return content if len(content) <= MAX_FACTS_BYTES else None


def _shorten_stepwise(facts: SessionFacts) -> Iterator[SessionFacts]:
    """The facts with less and less of what the client says."""
    if facts.info is not None:
        info = Implementation(name=facts.info.name, version=facts.info.version)
        facts = structs.replace(facts, info=info)
        yield facts
    for shorten in _CAPABILITY_CUTS:
        facts = structs.replace(facts, capabilities=shorten(facts.capabilities))
        yield facts
    if facts.info is not None:
        name, version = _cut_text(facts.info.name), _cut_text(facts.info.version)
        yield structs.replace(facts, info=Implementation(name=name, version=version))


def _drop_experimental(told: ClientCapabilities) -> ClientCapabilities:
    return structs.replace(told, experimental=UNSET)


def _empty_extensions(told: ClientCapabilities) -> ClientCapabilities:
    if told.extensions is UNSET:
        return told
    return structs.replace(told, extensions={name: {} for name in told.extensions})


def _empty_settings(told: ClientCapabilities) -> ClientCapabilities:
    """The capabilities without what the specification leaves open inside of them."""
    named = {name: getattr(told, name) for name in ("roots", "sampling", "elicitation", "tasks")}
    return structs.replace(told, **{name: _empty_objects(value) for name, value in named.items()})


def _empty_objects(value: Any) -> Any:
    """A capability whose objects of any content are empty ones."""
    if isinstance(value, dict):
        return {}
    if not isinstance(value, msgspec.Struct):
        return value
    members = {name: getattr(value, name) for name in value.__struct_fields__}
    return structs.replace(value, **{n: _empty_objects(member) for n, member in members.items()})


def _drop_extensions(told: ClientCapabilities) -> ClientCapabilities:
    return structs.replace(told, extensions=UNSET)


_CAPABILITY_CUTS: tuple[Callable[[ClientCapabilities], ClientCapabilities], ...] = (
    _drop_experimental,
    _empty_extensions,
    _empty_settings,
    _drop_extensions,
)


def _cut_text(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_NAME_BYTES].decode("utf-8", "ignore")
