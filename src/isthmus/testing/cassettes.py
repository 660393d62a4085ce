"""Cassette: a conversation with a real server, recorded to a file and replayed from it.

The first run records, later ones replay without the server. Replay is strict: a request that was
not recorded fails with the difference, and so does one that is not made any more. A cassette is a
transcript (:mod:`isthmus.testing.transcript`), which ``isthmus validate`` reads, too. Secrets are
taken out before it is written, so that it can be committed::

    with Cassette(Path("weather.wire")) as cassette:
        async with connect(cassette.target("https://weather.example/mcp")) as client: ...
"""

import asyncio
import json
import os
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import msgspec

from isthmus.client.targets import ClientTarget, Target, resolve_target, tap_target
from isthmus.core.redaction.forms import is_secret_name, may_name_secret
from isthmus.core.redaction.live_secrets import (
    MIN_SECRET_CHARS,
    REDACTED,
    list_live_secrets,
    replace_secrets,
    spell_secret,
)
from isthmus.core.redaction.messages import Redact
from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.runtime.wiretap import WireLog, Wiretap
from isthmus.testing.connections import CONNECT_TIMEOUT_S
from isthmus.testing.transcript import TranscriptLine, load
from isthmus.transports.command import Command
from isthmus.transports.http.client.address import Http
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization

RecordMode: TypeAlias = Literal["once", "none", "all"]
"""``once`` records what there is no file for, ``none`` never records, ``all`` records anew."""

Filter: TypeAlias = Callable[[Any], Any]
"""Takes secrets out of a message: decoded JSON in, decoded JSON out."""

OPENING_METHODS = ("initialize", "server/discover")
VOLATILE_META = {  # what differs from one run to the next, or from one release to the next
    *("progressToken", "traceparent", "tracestate", "baggage"),
    "io.modelcontextprotocol/clientInfo",
}
SCHEMA_MEMBERS = {"inputSchema", "outputSchema", "requestedSchema"}
KEPT_MEMBERS = {"progressToken", "method", "uri", "resultType"}
SCHEMES = {"bearer", "basic", "digest", "dpop", "token"}
HTTP_MARK = "# over HTTP"
MAX_REDACTION_DEPTH = 100


class CassetteMismatch(AssertionError):
    """The traffic is not what was recorded; the message has the difference."""


class Cassette:
    """A file of recorded conversations with one server.

    Args:
        path: the file.
        mode: when to record.
        redact: takes further secrets out, such as ``Redact(names=["iban"])`` or a function.
        again: how to record anew, in a sentence, for error messages.

    Attributes:
        recording: whether this run records.
        shown: the file as messages name it.
        problem: what happened otherwise than it was recorded, or None.
    """

    def __init__(
        self,
        path: Path,
        mode: RecordMode = "once",
        *,
        redact: Filter | None = None,
        again: str = "mode='all' records it anew",
    ) -> None:
        self.path = path
        self.recording = mode == "all" or (mode == "once" and not path.exists())
        self.shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        self._again = again
        self._redaction = Redaction(redact)
        self._wires: list[WireLog] = []
        self._heading = ""
        self._http = False
        self._replays: list[ReplayChannel] | None = None
        self._dialled = 0
        self.problem: str | None = None

    def target(
        self,
        server: ClientTarget,
        *,
        headers: Mapping[str, str] | None = None,
        auth: "Authorization | None" = None,
    ) -> Target:
        """The target for a client: the server itself, or its recording.

        Args:
            server: whatever a client can be pointed at; nothing is looked up of it in a replay.
            headers: for its HTTP requests. They are not written down.
            auth: gets the tokens it wants.

        Raises:
            CassetteMismatch: there is no recording, and none may be made.
        """
        if not self.recording:
            return self._replay_target()
        self._redaction.learn(server, headers or {})
        found = resolve_target(server, headers, CONNECT_TIMEOUT_S, auth)
        self._heading, self._http = found.name, found.http
        return tap_target(found, self._record)

    def _record(self, channel: Channel) -> Channel:
        self._wires.append([])
        return Wiretap(channel, self._wires[-1])

    def _replay_target(self) -> Target:
        if not self.path.exists():
            raise CassetteMismatch(
                f"there is no recording {self.shown}, and this run makes none: {self._again}"
            )
        text = self.path.read_text(encoding="utf-8")
        conversations = load(self.path)
        over_http = any(line.strip() == HTTP_MARK for line in text.splitlines()[:5])
        self._replays = [
            ReplayChannel(one.lines, self, over_http=over_http) for one in conversations
        ]
        if not self._replays:
            raise CassetteMismatch(f"{self.shown} holds no conversation: {self._again}")
        opening = conversations[0].lines[0].message if conversations[0].lines else {}
        return Target(
            f"the recording {self.path.name}",
            self._dial,
            http=over_http,
            handshake=isinstance(opening, dict) and opening.get("method") == "initialize",
        )

    async def _dial(self) -> Channel:
        replays = self._replays or []
        if self._dialled >= len(replays):
            raise self.fail(
                f"the server is connected to {self._dialled + 1} times, and {self.shown} has "
                f"{len(replays)} conversations"
            )
        self._dialled += 1
        return replays[self._dialled - 1]

    def fail(self, what: str) -> ConnectionLost:
        """Record that a replay went wrong, and make the error for the connected client.

        Args:
            what: the difference between recording and call.
        """
        told = f"{what}\n{self._again}"
        self.problem = self.problem or told
        return ConnectionLost(told)

    def make_comparable(self, message: Any) -> Any:
        """A message as the file has it, redacted and without what differs from run to run.

        Args:
            message: a JSON-RPC message as plain data.
        """
        clean = self._redaction(message)
        params = clean.get("params")
        if not isinstance(params, dict):
            return {key: value for key, value in clean.items() if key not in {"jsonrpc", "id"}}
        meta = params.get("_meta")
        params = {key: value for key, value in params.items() if key not in {"_meta", "clientInfo"}}
        if isinstance(meta, dict):
            meta = {key: value for key, value in meta.items() if key not in VOLATILE_META}
            params |= {"_meta": meta} if meta else {}
        rest = {key: value for key, value in clean.items() if key not in {"jsonrpc", "id"}}
        return {**rest, "params": params}

    def finish(self) -> None:
        """Write what was recorded, or see to it that all of it was played.

        Raises:
            CassetteMismatch: something else happened than was recorded.
        """
        if self.problem is not None:
            raise CassetteMismatch(self.problem)
        if self.recording:
            self._write()
            return
        left = [name for replay in self._replays or [] for name in replay.list_unplayed()]
        if left and self._replays is not None:
            raise CassetteMismatch(
                f"{self.shown} has requests that are not made any more: {', '.join(left)}\n"
                f"{self._again}"
            )

    def _write(self) -> None:
        """Write the file in one piece."""
        conversations = [kept for wire in self._wires if (kept := trim_conversation(wire))]
        if not conversations:
            return  # nobody was connected to
        lines = [
            f"# Recorded by isthmus.testing from {self._redaction.clean(self._heading)}",
            HTTP_MARK if self._http else "# over a line",
        ]
        for number, messages in enumerate(conversations, 1):
            lines.append(f"## connection {number}")
            for side, message in messages:
                bare = {k: v for k, v in self._redaction(message).items() if k != "jsonrpc"}
                lines.append(f"{'C' if side == 'client' else 'S'} {json.dumps(bare)}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        beside.replace(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish()
        elif self.problem is not None:
            raise CassetteMismatch(self.problem) from error


RecordedMessage: TypeAlias = tuple[Literal["client", "server"], dict[str, Any]]
"""A message, and who said it."""


def trim_conversation(wire: WireLog) -> list[RecordedMessage]:
    """The messages from the one that opened the conversation; none where nothing came of it.

    What was tried before it depends on how patient a client is, and would be tried in vain again.

    Raises:
        CassetteMismatch: a message is no JSON, and cannot be written down.
    """
    messages: list[RecordedMessage] = []
    for side, data in wire:
        try:
            decoded = msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise CassetteMismatch(f"cannot record what is no JSON: {data[:200]!r}") from error
        messages += ((side, one) for one in (decoded if isinstance(decoded, list) else [decoded]))
    answered = {one.get("id") for side, one in messages if side == "server" and "result" in one}
    opened = {
        one["method"]: at
        for at, (side, one) in reversed([*enumerate(messages)])
        if side == "client" and one.get("method") in OPENING_METHODS and one["id"] in answered
    }
    begin = next((opened[method] for method in OPENING_METHODS if method in opened), None)
    return [] if begin is None else messages[begin:]


class Redaction:
    """Takes secrets out of messages before they are written down.

    Members named like secrets, texts that look like one, every secret that authorization holds, and
    the values of headers and environment variables that the server was given.

    Args:
        further: what the project takes out besides.
    """

    def __init__(self, further: Filter | None = None) -> None:
        self._texts = Redact()
        self._further = further
        self._known: set[str] = set()

    def learn(self, server: Any, headers: Mapping[str, str]) -> None:
        """Take the secrets out that a server is connected to with, wherever it repeats them."""
        given, url, line, environment = dict(headers), "", [], {}
        if isinstance(server, Http):
            given, url = {**given, **server.headers}, server.url
        elif isinstance(server, Command):
            line, environment = [*server.argv], server.env
        elif isinstance(server, Mapping):
            given |= server.get("headers") or {}
            url, line = str(server.get("url") or ""), [*map(str, server.get("args") or ())]
            environment = server.get("env") or {}
        elif isinstance(server, str):
            url = server
        values = [str(value) for name, value in environment.items() if may_name_secret(str(name))]
        cookies = [str(value) for name, value in given.items() if name.lower() == "cookie"]
        values += [one.partition("=")[2] for text in cookies for one in text.split("; ")]
        values += [*map(str, given.values()), *find_url_secrets(url), *find_option_secrets(line)]
        for value in values:
            words = [word for word in value.split() if word.lower() not in SCHEMES]
            found = (value, *words, *map(decode_password, words))
            self._known |= {word for word in found if len(word) >= MIN_SECRET_CHARS}

    def __call__(self, message: Any) -> Any:
        """A message without secrets, by the rules of the project, too."""
        clean = self.clean(message)
        return clean if self._further is None else self._further(clean)

    def clean(self, value: Any) -> Any:
        """Plain data without secrets."""
        known = self._known | {s for s in list_live_secrets() if len(s) >= MIN_SECRET_CHARS}
        spelt = {spelling for secret in known for spelling in spell_secret(secret)}
        return self._walk(value, sorted(spelt, key=len, reverse=True), 0, named=True)

    def _walk(self, value: Any, known: list[str], depth: int, *, named: bool) -> Any:
        if isinstance(value, str):
            return self._texts(replace_secrets(value, known))
        if depth > MAX_REDACTION_DEPTH:
            return "[too deep]"
        if isinstance(value, list):
            return [self._walk(item, known, depth + 1, named=named) for item in value]
        if not isinstance(value, dict):
            return value
        clean = {}
        for key, member in value.items():
            if key in KEPT_MEMBERS and not isinstance(member, dict | list):
                clean[key] = self._walk(member, known, depth, named=False)
            elif named and self._is_secret(key, member):
                clean[key] = REDACTED
            else:
                inside = named and key not in SCHEMA_MEMBERS  # where names are those of arguments
                shown = self._walk(key, known, depth, named=False)
                clean[shown] = self._walk(member, known, depth + 1, named=inside)
        return clean

    @staticmethod
    def _is_secret(key: str, member: Any) -> bool:
        """Whether a member is named like a secret; how many tokens there were is none."""
        if member is None or isinstance(member, bool):
            return False
        counted = isinstance(member, int | float) and key.lower().rstrip("s").endswith("token")
        return not counted and is_secret_name(key)


def find_url_secrets(url: str) -> Iterator[str]:
    """The password of a URL, and what of its query is named like a secret."""
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return
    if parts.password:
        yield unquote(parts.password)
    yield from (value for name, value in parse_qsl(parts.query) if may_name_secret(name))


def find_option_secrets(line: Sequence[str]) -> Iterator[str]:
    """The values of a command's options that are named like a secret: ``--token=…``, ``--token …``."""
    for word, following in pairwise([*line, ""]):
        name, equals, value = word.partition("=")
        if name.startswith("-") and may_name_secret(name.lstrip("-").replace("-", "_")):
            yield value if equals else following


def decode_password(word: str) -> str:
    """The password in what ``Authorization: Basic`` carries; empty for any other word."""
    try:
        return b64decode(word, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


class ReplayChannel:
    """A channel to a server that was recorded: it answers what was asked then, and nothing else.

    Requests made at once may come in another order; what the server said comes as soon as all that
    stands before it was asked. Ids and progress tokens are those of this run.

    Args:
        lines: the conversation.
        cassette: compares messages, and is told what differs.
        over_http: it was recorded over HTTP.
    """

    def __init__(self, lines: list[TranscriptLine], cassette: Cassette, *, over_http: bool) -> None:
        self._lines = lines
        self._cassette = cassette
        self._over_http = over_http
        self._played: set[int] = set()
        self._next = 0
        self._ids: dict[str, Any] = {}
        self._tokens: dict[str, Any] = {}
        self._ready: list[Delivery] = []
        self._closed = False
        self._waiting: asyncio.Event = asyncio.Event()
        self._deliver()

    async def receive(self) -> Delivery | None:
        """The next message of the server."""
        while not self._ready:
            if self._closed:
                return None
            self._waiting.clear()
            await self._waiting.wait()
        return self._ready.pop(0)

    async def send(self, out: Outgoing) -> None:
        """Take a message of the client.

        Raises:
            ConnectionLost: it was not recorded.
        """
        said = msgspec.json.decode(out.data)
        for message in said if isinstance(said, list) else [said]:
            self._match(message)
        self._deliver()

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """Whether leaving a request alone tells the server, as over HTTP."""
        return self._over_http

    async def close(self) -> None:
        """End the conversation."""
        self._closed = True
        self._waiting.set()

    def list_unplayed(self) -> list[str]:
        """The requests that were recorded and not made, by method and name."""
        return [
            name_request(line.message)
            for at, line in enumerate(self._lines)
            if line.side == "C" and at not in self._played and "method" in line.message
            if "id" in line.message
        ]

    def _match(self, message: dict[str, Any]) -> None:
        """Find what was recorded of a message.

        Raises:
            ConnectionLost: nothing was.
        """
        wanted = self._cassette.make_comparable(message)
        open_lines = [
            (at, line.message)
            for at, line in enumerate(self._lines)
            if line.side == "C" and at not in self._played
        ]
        for at, recorded in open_lines:
            same_kind = ("id" in recorded) is ("id" in message)
            same_id = "method" in message or recorded.get("id") == message.get("id")
            if same_kind and same_id and self._cassette.make_comparable(recorded) == wanted:
                self._play(at, recorded, message)
                return
        if "id" in message:  # a notification more or less changes nothing
            raise self._cassette.fail(self._describe_difference(message, wanted, open_lines))

    def _play(self, at: int, recorded: dict[str, Any], message: dict[str, Any]) -> None:
        self._played.add(at)
        if "method" not in message or "id" not in message:
            return
        self._ids[json.dumps(recorded["id"])] = message["id"]
        before, now = read_progress_token(recorded), read_progress_token(message)
        if before is not None and now is not None:
            self._tokens[json.dumps(before)] = now

    def _deliver(self) -> None:
        """Hand over what the server said to all that was asked so far."""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.side == "C":
                if self._next not in self._played and "id" in line.message:
                    break
            else:
                self._ready.append(Delivery(msgspec.json.encode(self._readdress(line.message))))
            self._next += 1
        self._waiting.set()

    def _readdress(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message of the server, with the ids of this run."""
        told = {"jsonrpc": "2.0", **message}
        if "method" not in told and "id" in told:
            told["id"] = self._ids.get(json.dumps(told["id"]), told["id"])
        params = told.get("params")
        if told.get("method") == "notifications/progress" and isinstance(params, dict):
            token = params.get("progressToken")
            told["params"] = {**params, "progressToken": self._tokens.get(json.dumps(token), token)}
        return told

    def _describe_difference(
        self, message: dict[str, Any], wanted: Any, open_lines: list[tuple[int, dict[str, Any]]]
    ) -> str:
        from difflib import ndiff  # only where a test fails

        path, method = self._cassette.shown, message.get("method")
        requests = [recorded for _, recorded in open_lines if "id" in recorded]
        alike = [recorded for recorded in requests if recorded.get("method") == method]
        if not alike:
            has = ", ".join(map(name_request, requests)) or "nothing more"
            return f"{name_request(message)} was not recorded in {path}, where there is {has}"
        recorded = self._cassette.make_comparable(alike[0])
        before, now = (json.dumps(one, indent=2, sort_keys=True) for one in (recorded, wanted))
        compared = ndiff(before.splitlines(), now.splitlines())
        changed = [line for line in compared if line[:2] in {"- ", "+ "}]
        difference = "\n".join(f"  {line}" for line in changed)
        return (
            f"{name_request(message)} is not what was recorded in {path} "
            f"(- recorded, + asked now):\n{difference}"
        )


def name_request(message: Mapping[str, Any]) -> str:
    """A request for people: its method, and the name or URI in it."""
    params = message.get("params")
    name = params.get("name") or params.get("uri") if isinstance(params, dict) else None
    method = message.get("method", "an answer")
    return f"{method} {name}" if isinstance(name, str) else str(method)


def read_progress_token(message: Mapping[str, Any]) -> Any:
    """The progress token of a request, or None."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None
