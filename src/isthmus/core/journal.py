"""The journal of one call: what was asked and answered so far, sealed into a token.

Since 2026-07-28 a server asks by answering with its questions; the client then sends the whole
request again, with the answers (basic/patterns/mrtr). The server keeps nothing meanwhile. What
it must remember, the :class:`Journal`, travels in ``requestState``: encrypted, so that results
of side effects stay secret, and bound to the call it belongs to, so that it opens for nothing
else.

The body of the call runs anew in each round. A :class:`Replay` is one such run: it recognises
the steps of earlier rounds by their content, and notes what is new.

Randomness and time arrive as arguments, as everywhere in the core.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.errors import IsthmusError, UsageError

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
            f"more than the {most} allowed (Limits.request_state): ask for less, or keep large results elsewhere"
        )
        self.size = size


class Journal(msgspec.Struct, frozen=True, array_like=True):
    """The questions, answers and effects of one call in its rounds so far.

    Attributes:
        answers: the answer to each question answered, by the question's digest.
        effects: the result of each side effect that happened, by its digest.
        pending: the questions still open: the key each has on the wire, and its digest.
        keys: how many keys were made up for questions so far.
        rounds: how many rounds ended with questions.
    """

    answers: dict[str, Raw] = {}
    effects: dict[str, Raw] = {}
    pending: dict[str, str] = {}
    keys: int = 0
    rounds: int = 0


# --- one run over a journal ------------------------------------------------------------------


class JournalQuestion(msgspec.Struct, frozen=True):
    """A question as a run came to it.

    Attributes:
        key: what it is called on the wire; empty where it is answered.
        answer: the raw result, or None while it is open.
    """

    key: str
    answer: Raw | None


class JournalEffect(msgspec.Struct, frozen=True):
    """A side effect as a run came to it.

    Attributes:
        digest: what to record its result under.
        result: what it gave in an earlier round, or None: it has not happened yet.
    """

    digest: str
    result: Raw | None


class Replay:
    """One run of a call's body: knows the steps of earlier rounds, notes the new ones.

    A step is known by what it says: method and parameters of a question, name and arguments of
    an effect. Equal steps are told apart by their order. A question that reads otherwise than
    in the round before is a new one, and is asked.

    Example:
        >>> first = Replay(Journal())
        >>> first.question("roots/list", None)
        Question(key='q1', answer=None)
        >>> second = Replay(first.journal(), {"q1": Raw(b'{"roots":[]}')})
        >>> bytes(second.question("roots/list", None).answer)
        b'{"roots":[]}'

    Args:
        journal: what the rounds before left.
        responses: the answers that came with this round, by key. Keys nobody asked under are
            ignored (spec 2026-07-28 basic/patterns/mrtr#error-handling), missing ones asked again.
            In a first round, without a journal, an answer counts for a question that its author
            gave that very key: the name says what was answered.
    """

    def __init__(self, journal: Journal, responses: Mapping[str, Raw] | None = None) -> None:
        came = responses or {}
        answered = {digest: came[key] for key, digest in journal.pending.items() if key in came}
        self._answers = {**journal.answers, **answered}
        self._offered: Mapping[str, Raw] = {} if journal.rounds else came
        self._effects = dict(journal.effects)
        self._keys = journal.keys
        self._rounds = journal.rounds
        self._former = {digest: key for key, digest in journal.pending.items()}
        self._open: dict[str, str] = {}
        self._met: Counter[bytes] = Counter()
        self._left = {*self._answers, *self._effects}

    @property
    def replaying(self) -> bool:
        """Whether this run still repeats what an earlier round did, and should be silent."""
        return bool(self._left)

    @property
    def rounds(self) -> int:
        """The number of rounds before this one that ended with questions."""
        return self._rounds

    def question(
        self, method: str, params: bytes | Raw | None, key: str | None = None
    ) -> JournalQuestion:
        """The run comes to a question.

        Args:
            method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
            params: its parameters, JSON of an object, or None.
            key: a name for it on the wire, instead of ``q1``, ``q2``, …
        """
        digest = self._digest(b"question", method, params)
        answer = self._step(digest, self._answers)
        if answer is None and key is not None and key in self._offered:
            answer = self._answers[digest] = self._offered[key]
        if answer is not None:
            return JournalQuestion("", answer)
        name = self._name(digest, key)
        self._open[name] = digest
        return JournalQuestion(name, None)

    def effect(self, name: str, arguments: bytes | Raw | None = None) -> JournalEffect:
        """The run comes to a side effect that must happen once in the whole call.

        Args:
            name: what happens: a function's qualified name.
            arguments: with what, as JSON.
        """
        digest = self._digest(b"effect", name, arguments)
        return JournalEffect(digest, self._step(digest, self._effects))

    def record(self, effect: JournalEffect, result: bytes | Raw) -> None:
        """The effect happened in this run, and gave this JSON."""
        self._effects[effect.digest] = Raw(result)

    def journal(self) -> Journal:
        """The journal that the next round starts from, if this one ends with the questions now open."""
        return Journal(
            dict(self._answers),
            dict(self._effects),
            dict(self._open),
            self._keys,
            self._rounds + 1,
        )

    def _digest(self, kind: bytes, name: str, params: bytes | Raw | None) -> str:
        """The digest that a step is known by; equal ones differ in how many came before."""
        content = _digest(kind, _to_bytes(name), _canonicalize(params))
        self._met[content] += 1
        return encode_base64url(_digest(content, b"%d" % self._met[content])[:16])

    def _step(self, digest: str, known: Mapping[str, Raw]) -> Raw | None:
        if digest in known:
            self._left.discard(digest)
            return known[digest]
        self._left.clear()  # this is new, so everything that follows is
        return None

    def _name(self, digest: str, key: str | None) -> str:
        """A key that no other open question has; the one of the round before where possible."""
        name = key or self._former.get(digest)
        while name is None or name in self._open:
            self._keys += 1
            name = f"{key}_{self._keys}" if key else f"q{self._keys}"
        return name


# --- the token -------------------------------------------------------------------------------

_VERSION = b"\x01"
_KEY_ID_SIZE = 4
_NONCE_SIZE = 12  # bytes, as AES-GCM wants it
_TAG_SIZE = 16
_HEAD_SIZE = len(_VERSION) + _KEY_ID_SIZE


class _Content(msgspec.Struct, frozen=True, array_like=True):
    expires_at: float
    journal: Journal


_decode_content = msgspec.json.Decoder(_Content).decode


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
    return _digest(b"binding", _to_bytes(method), _to_bytes(target), _canonicalize(arguments), who)


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
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not keys or len(nonce) != _NONCE_SIZE:
        raise UsageError(f"sealing needs a key and a nonce of {_NONCE_SIZE} bytes")
    head = _VERSION + _make_key_id(keys[0])
    content = msgspec.json.encode(_Content(expires_at, journal))
    sealed = AESGCM(_make_cipher_key(keys[0])).encrypt(nonce, content, head + binding)
    token = encode_base64url(head + nonce + sealed)
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
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: requestState is
    # attacker-controlled, and MUST be rejected where it fails verification
    head, nonce, sealed = _split_token(token, max_chars)
    key = next((key for key in keys if _VERSION + _make_key_id(key) == head), None)
    if key is None:
        raise Unsealed("sealed with a key this server does not have")
    try:
        data = AESGCM(_make_cipher_key(key)).decrypt(nonce, sealed, head + binding)
    except InvalidTag:
        raise Unsealed("changed, or made for another call or principal") from None
    try:
        content = _decode_content(data)
    except msgspec.DecodeError as error:
        raise Unsealed(f"sealed by an incompatible server: {error}") from None
    if now >= content.expires_at:
        raise Unsealed(f"expired {now - content.expires_at:.0f} s ago")
    return content.journal


def _split_token(token: str, max_chars: int | None) -> tuple[bytes, bytes, bytes]:
    """Head, nonce and sealed content of a token."""
    if max_chars is not None and len(token) > max_chars:
        raise Unsealed(f"{len(token)} characters long")
    data = decode_base64url(token)
    if data is None or len(data) < _HEAD_SIZE + _NONCE_SIZE + _TAG_SIZE:
        raise Unsealed("not a token of ours")
    end = _HEAD_SIZE + _NONCE_SIZE
    return data[:_HEAD_SIZE], data[_HEAD_SIZE:end], data[end:]


def _make_key_id(key: bytes) -> bytes:
    """Tells which of several keys sealed a token, and nothing about the key."""
    from hmac import digest

    return digest(key, b"isthmus journal key id", "sha256")[:_KEY_ID_SIZE]


def _make_cipher_key(key: bytes) -> bytes:
    """A key for this purpose alone, so that one secret can serve several."""
    from hmac import digest

    return digest(key, b"isthmus journal key", "sha256")


# --- digests ---------------------------------------------------------------------------------


def _digest(*parts: bytes) -> bytes:
    """One digest of several byte strings; their lengths keep them apart."""
    from hashlib import sha256

    return sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _canonicalize(data: bytes | Raw | None) -> bytes:
    """JSON in one spelling; what is no JSON stays as it is."""
    if data is None:
        return b"{}"
    try:
        return msgspec.json.encode(msgspec.json.decode(data), order="sorted")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(data)
