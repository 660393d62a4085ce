"""The journal of one call: what was asked and answered so far, sealed into a token.

Since 2026-07-28 a server asks by answering with its questions; the client then sends the whole
request again, with the answers (basic/patterns/mrtr). The server keeps nothing meanwhile. What
it must remember, the :class:`Journal`, travels in ``requestState``: encrypted, so that results
of side effects stay secret, and bound to the call it belongs to, so that it opens for nothing
else. What is too large for that is sealed in the same way into segments, which a server may keep.

The body of the call runs anew in each round. A :class:`Replay` is one such run: it recognises
the steps of earlier rounds by their content, and notes what is new.

Randomness and time arrive as arguments, as everywhere in the core.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

import msgspec
from msgspec import Raw

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.core.sealing import SealBroken, decrypt, encrypt
from isthmus.errors import IsthmusError

# The longest token by default, in characters: it travels in every further request of the call
MAX_TOKEN_CHARS = 1024 * 1024

# What the other side is told of every token that does not open, whatever the reason
UNUSABLE_STATE = (
    "Invalid params: this requestState cannot be used here; send the request without it"
)


class Unsealed(IsthmusError):
    """A token that does not open. The reason is for the log; the wire gets ``UNUSABLE_STATE``."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"requestState refused: {reason}")
        self.reason = reason


class JournalTooLarge(IsthmusError):
    """A journal that does not fit into a token.

    Attributes:
        size: how long the token would be, in characters.
    """

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"the answers and effects of this call make a token of {size} characters, "
            f"more than the {most} allowed (Limits.request_state)"
        )
        self.size = size


class JournalSegment(msgspec.Struct, frozen=True, array_like=True):
    """A part of a journal that the server keeps; the token holds this in its place.

    Attributes:
        id: what it is kept under: 16 random bytes.
        until: when the store lets go of it, in seconds since the epoch.
        size: the bytes it takes there.
    """

    id: bytes
    until: float
    size: int


class Journal(msgspec.Struct, frozen=True, array_like=True):
    """The questions, answers and effects of one call in its rounds so far.

    Attributes:
        steps: the JSON of each answer and each effect's result, by the digest of its step.
        pending: the questions still open: the key each has on the wire, and its digest.
        keys: how many keys were made up for questions so far.
        rounds: how many rounds ended with questions.
        returned: the questions that the body returned instead of awaiting them, as JSON.
        segments: where the steps are that are not in here.
    """

    steps: dict[bytes, bytes] = {}
    pending: dict[str, bytes] = {}
    keys: int = 0
    rounds: int = 0
    returned: bytes = b""
    segments: list[JournalSegment] = []


NO_STEPS: Mapping[bytes, bytes] = {}


# --- one run over a journal ------------------------------------------------------------------


class JournalQuestion(msgspec.Struct, frozen=True):
    """A question as a run came to it.

    Attributes:
        key: what it is called on the wire; empty where it is answered.
        answer: the JSON of the result, or None while it is open.
    """

    key: str
    answer: bytes | None


class JournalEffect(msgspec.Struct, frozen=True):
    """A side effect as a run came to it.

    Attributes:
        digest: what to record its result under.
        result: what it gave in an earlier round, or None: it has not happened yet.
    """

    digest: bytes
    result: bytes | None


class Replay:
    """One run of a call's body: knows the steps of earlier rounds, notes the new ones.

    A step is known by what it says: method and parameters of a question, name and arguments of
    an effect, spelled as :func:`encode_canonically` does. Equal steps are told apart by their
    order. A question that reads otherwise than in the round before is a new one, and is asked.

    Example:
        >>> first = Replay(Journal())
        >>> first.question("roots/list", b"{}")
        JournalQuestion(key='q1', answer=None)
        >>> second = Replay(first.journal(), {"q1": Raw(b'{"roots":[]}')})
        >>> second.question("roots/list", b"{}").answer
        b'{"roots":[]}'

    Args:
        journal: what the rounds before left.
        responses: the answers that came with this round, by key. Keys nobody asked under are
            ignored (spec 2026-07-28 basic/patterns/mrtr#error-handling), missing ones asked again.
            In a first round, without a journal, an answer counts for a question that its author
            gave that very key: the name says what was answered.
        kept: the steps that lie in the journal's segments.
    """

    __slots__ = ("_former", "_keys", "_known", "_left", "_met", "_offered", "_open", "_rounds", "_steps")  # fmt: skip

    def __init__(
        self,
        journal: Journal,
        responses: Mapping[str, Raw] | None = None,
        kept: Mapping[bytes, bytes] = NO_STEPS,
    ) -> None:
        came = responses or {}
        self._steps = dict(journal.steps)
        for key, digest in journal.pending.items():
            if key in came:
                self._steps[digest] = bytes(came[key])
        self._known = {**kept, **self._steps} if kept else self._steps
        self._offered: Mapping[str, Raw] = {} if journal.rounds else came
        self._keys = journal.keys
        self._rounds = journal.rounds
        self._former = {digest: key for key, digest in journal.pending.items()}
        self._open: dict[str, bytes] = {}
        self._met: dict[bytes, int] = {}
        self._left = len(self._known)

    @property
    def replaying(self) -> bool:
        """Whether this run still repeats what an earlier round did, and should be silent."""
        return self._left > 0

    @property
    def rounds(self) -> int:
        """The number of rounds before this one that ended with questions."""
        return self._rounds

    def recall(self, method: str, params: bytes) -> bytes | None:
        """The answer to the question that the run comes to, if it is known; else nothing happens.

        What costs time in a replay is this, once for each question: one digest, and no more.
        """
        content = _digest_step(b"?", method, params)
        count = self._met.get(content, 0)
        answer = self._known.get(content if not count else content + b"%d" % count)
        if answer is not None:
            self._met[content] = count + 1
            if self._left:
                self._left -= 1
        return answer

    def question(self, method: str, params: bytes, key: str | None = None) -> JournalQuestion:
        """The run comes to a question.

        Args:
            method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
            params: its parameters, canonical JSON of an object.
            key: a name for it on the wire, instead of ``q1``, ``q2``, …
        """
        answer, digest = self._step(b"?", method, params)
        if answer is None and key is not None and key in self._offered:
            answer = bytes(self._offered[key])
            self._note(digest, answer)
        if answer is not None:
            return JournalQuestion("", answer)
        name = self._name(digest, key)
        self._open[name] = digest
        return JournalQuestion(name, None)

    def effect(self, name: str, arguments: bytes = b"") -> JournalEffect:
        """The run comes to a side effect that must happen once in the whole call.

        Args:
            name: what happens: a function's qualified name.
            arguments: with what, as canonical JSON.
        """
        result, digest = self._step(b"!", name, arguments)
        return JournalEffect(digest, result)

    def record(self, effect: JournalEffect, result: bytes) -> None:
        """The effect happened in this run, and gave this JSON."""
        self._note(effect.digest, result)

    def journal(self) -> Journal:
        """The journal that the next round starts from, if this one ends with the questions now open."""
        return Journal(dict(self._steps), dict(self._open), self._keys, self._rounds + 1)

    def _note(self, digest: bytes, result: bytes) -> None:
        self._steps[digest] = self._known[digest] = result

    def _step(self, kind: bytes, name: str, content: bytes) -> tuple[bytes | None, bytes]:
        """What is known of a step, and its digest; equal ones differ in how many came before."""
        digest = _digest_step(kind, name, content)
        count = self._met.get(digest, 0)
        self._met[digest] = count + 1
        if count:
            digest += b"%d" % count
        known = self._known.get(digest)
        if known is None:
            self._left = 0  # this is new, so everything that follows is
        elif self._left:
            self._left -= 1
        return known, digest

    def _name(self, digest: bytes, key: str | None) -> str:
        """A key that no other open question has; the one of the round before where possible."""
        name = key or self._former.get(digest)
        while name is None or name in self._open:
            self._keys += 1
            name = f"{key}_{self._keys}" if key else f"q{self._keys}"
        return name


# --- the token -------------------------------------------------------------------------------

_TOKEN_VERSION = b"\x02"
_SEGMENT_VERSION = b"\x12"


class _Content(msgspec.Struct, frozen=True, array_like=True):
    expires_at: float
    journal: Journal


_decode_content = msgspec.msgpack.Decoder(_Content).decode
_decode_steps = msgspec.msgpack.Decoder(dict[bytes, bytes]).decode


def digest_binding(
    method: str, target: str, arguments: bytes | Raw | None, principal: str | None
) -> bytes:
    """A digest of what a journal belongs to: it opens with an equal one only.

    Args:
        method: ``tools/call``, ``prompts/get`` or ``resources/read``.
        target: the tool's or prompt's name, or the resource's URI.
        arguments: JSON as it came; order of members and blanks make no difference, nor does
            leaving out arguments that are empty.
        principal: who authenticated, or None.
    """
    # spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: principal, expiry
    # and an identifier of the originating request are verified on receipt
    who = b"" if principal is None else b"=" + _to_bytes(principal)
    return _digest(b"binding", _to_bytes(method), _to_bytes(target), canonicalize(arguments), who)


def seal(
    journal: Journal,
    keys: Sequence[bytes],
    nonce: bytes,
    expires_at: float,
    binding: bytes,
    *,
    max_chars: int | None = MAX_TOKEN_CHARS,
) -> str:
    """A journal as a token for ``requestState`` (AES-256-GCM, base64url).

    Args:
        journal: what to seal.
        keys: secrets of 16 bytes or more; the first one seals, the others only open.
        nonce: 12 random bytes, never used before.
        expires_at: when it stops opening, on the clock that :func:`unseal` is asked with.
        binding: what it belongs to, from :func:`digest_binding`.
        max_chars: the longest token, or None for any.

    Raises:
        JournalTooLarge: the token would be longer than that.
        UsageError: no key, or a nonce of another length.
    """
    content = msgspec.msgpack.encode(_Content(expires_at, journal))
    token = encode_base64url(encrypt(_TOKEN_VERSION, content, keys, nonce, binding))
    if max_chars is not None and len(token) > max_chars:
        raise JournalTooLarge(len(token), max_chars)
    return token


def unseal(
    token: str,
    keys: Sequence[bytes],
    now: float,
    binding: bytes,
    *,
    max_chars: int | None = MAX_TOKEN_CHARS,
) -> Journal:
    """The journal in a token that came from the other side.

    Args:
        token: what came as ``requestState``; anything at all.
        keys: the secrets it may have been sealed with.
        now: the time, on the clock that :func:`seal` was given ``expires_at`` on.
        binding: what the request it came with is, from :func:`digest_binding`.
        max_chars: the longest token that is looked at, or None for any.

    Raises:
        Unsealed: it was changed, is too old, belongs to another call, or was never ours.
    """
    # spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: requestState is
    # attacker-controlled, and MUST be rejected where it fails verification
    if max_chars is not None and len(token) > max_chars:
        raise Unsealed(f"{len(token)} characters long")
    data = _decrypt(_TOKEN_VERSION, decode_base64url(token) or b"", keys, binding)
    try:
        content = _decode_content(data)
    except msgspec.DecodeError as error:
        raise Unsealed(f"sealed by an incompatible server: {error}") from None
    if now >= content.expires_at:
        raise Unsealed(f"expired {now - content.expires_at:.0f} s ago")
    return content.journal


def seal_steps(
    steps: Mapping[bytes, bytes], id: bytes, keys: Sequence[bytes], nonce: bytes, binding: bytes
) -> bytes:
    """Steps as the bytes of a segment, which open for their call and under their id only.

    Args:
        steps: what to seal.
        id: of the segment.
        keys: as of :func:`seal`.
        nonce: 12 random bytes, never used before.
        binding: what the call is, from :func:`digest_binding`.
    """
    content = msgspec.msgpack.encode(dict(steps))
    return encrypt(_SEGMENT_VERSION, content, keys, nonce, binding + id)


def unseal_steps(
    data: bytes, id: bytes, keys: Sequence[bytes], binding: bytes
) -> dict[bytes, bytes]:
    """The steps in a segment that came from a store.

    Raises:
        Unsealed: it was changed, belongs to another call or another id, or was never ours.
    """
    content = _decrypt(_SEGMENT_VERSION, data, keys, binding + id)
    try:
        return _decode_steps(content)
    except msgspec.DecodeError as error:
        raise Unsealed(f"kept by an incompatible server: {error}") from None


def _decrypt(version: bytes, data: bytes, keys: Sequence[bytes], binding: bytes) -> bytes:
    try:
        return decrypt(version, data, keys, binding)
    except SealBroken as error:
        raise Unsealed(error.reason) from None


# --- digests ---------------------------------------------------------------------------------

encode_canonically = msgspec.json.Encoder(order="sorted").encode  # one spelling for one value


def _digest_step(kind: bytes, name: str, content: bytes) -> bytes:
    """The digest that a step is known by."""
    return kind + sha256(_make_prefix(kind, name) + content).digest()[:16]


@lru_cache(maxsize=1024)  # methods, and names of effects
def _make_prefix(kind: bytes, name: str) -> bytes:
    """What a step is, before its content; the length keeps the two apart."""
    called = _to_bytes(name)
    return b"%b%d:%b" % (kind, len(called), called)


def _digest(*parts: bytes) -> bytes:
    """One digest of several byte strings; their lengths keep them apart."""
    return sha256(b"".join([b"%d:%b" % (len(part), part) for part in parts])).digest()


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def canonicalize(data: bytes | Raw | None) -> bytes:
    """JSON in one spelling; what is no JSON stays as it is."""
    if data is None:
        return b"{}"
    try:
        return encode_canonically(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(data)
