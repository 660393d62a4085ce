"""What a fuzzer throws bytes at in the host: configurations, policies, names, and what models say."""

import json
import re
from collections.abc import Callable, Iterator

import msgspec

from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.core.redaction.values import Redactor
from isthmus.host.catalog.names import ItemNaming, NameTable, make_name
from isthmus.host.config import syntax
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import PolicyError
from isthmus.host.model.facts import Facts
from isthmus.host.model.framing import frame_text
from isthmus.host.policy.patterns import BadPattern, LinearRegex
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.predicates import BadPredicate, Predicate
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.providers import anthropic, openai_compatible
from isthmus.host.providers.provider import Completion, ProviderError

__all__ = ["HOST_TARGETS"]

CANARY = "correct-horse-battery-42"
REDACTOR = Redactor(secrets=lambda: [CANARY])
LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
ASKED = Completion(model="m", messages=[], max_tokens=9)


def jsonc_files(data: bytes) -> None:
    """A configuration: what is read is what JSON reads, and every part stands where it says."""
    text = data.decode("utf-8", "replace")
    try:
        node = syntax.parse_jsonc(text)
    except syntax.BadSyntax:
        return
    _placed(text, node)
    again = syntax.parse_jsonc(json.dumps(node.value))
    assert json.dumps(again.value) == json.dumps(node.value)


def _placed(text: str, node: syntax.SyntaxNode) -> None:
    """A part of a text is itself a text of that value."""
    assert json.dumps(syntax.parse_jsonc(text[node.start : node.end]).value) == json.dumps(
        node.value
    )
    for key, member in (node.members or {}).items():
        assert syntax.find_node(node, (key,)) == (member.start, member.node)


def policies(data: bytes) -> None:
    """A policy: it is refused with a reason, or decides."""
    attempt = Attempt(
        id="a",
        action="tool.call",
        principal="user:ada",
        server="files",
        object="read",
        arguments={"path": "/home/ada/x", "size": 3, "to": ["a@b.example"], "deep": {"x": None}},
    )
    try:
        policy = Policy.of(read_layers(data.decode("utf-8", "replace"), "user"))
    except PolicyError:
        return
    assert policy.decide(attempt, Facts(), None).effect in {"allow", "ask", "deny"}


def patterns(data: bytes) -> None:
    """A regular expression and a text: an answer in bounded time, whatever both are."""
    pattern, _, text = data.decode("utf-8", "replace").partition("\n")
    try:
        expression = LinearRegex(pattern)
    except BadPattern:
        return
    found = expression.fits(text)
    assert found in {True, False, None}
    assert found is expression.fits(text)


def predicates(data: bytes) -> None:
    """A predicate and arguments: refused with a reason, or judged; doubt never allows."""
    text, _, rest = data.decode("utf-8", "replace").partition("\n")
    try:
        predicate = Predicate(text)
    except BadPredicate:
        return
    try:
        arguments = msgspec.json.decode(rest or "{}", type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        arguments = {"path": rest}
    attempt = Attempt(
        id="a",
        action="tool.call",
        principal="user:ada",
        server="files",
        object="read",
        arguments=arguments,
    )
    for forbids in (True, False):
        assert predicate.fits(attempt, Facts(), forbids=forbids) in {True, False}


def audited(data: bytes) -> None:
    """What is to be kept: a held secret is nowhere in it, and it can be written."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = data.decode("utf-8", "replace")
    kept = REDACTOR.redact({"a": [CANARY, value], "b": value})
    written = json.dumps(kept, ensure_ascii=False)
    assert CANARY not in written
    assert REDACTED in written


def names(data: bytes) -> None:
    """Names of tools: legal for every model, and two-way, or clashing openly."""
    server, *own = data.decode("utf-8", "replace").split("\n")
    things = [ItemNaming(server=server, own=one) for one in dict.fromkeys(own)]
    table = NameTable(things)
    for thing in things:
        name = make_name(thing.server, thing.own)
        assert LEGAL.fullmatch(name)
        clash = any(one.name == name for one in table.clashes)
        assert clash or table.owners[name] == (thing.server, thing.own)


def frames_of_context(data: bytes) -> None:
    """A server's words for a model: nothing in them ends the frame."""
    server, _, text = data.decode("utf-8", "replace").partition("\n")
    first, *_, last = frame_text(server, "a result", text).splitlines()
    between = frame_text(server, "a result", text)[len(first) : -len(last)]
    assert last not in between.splitlines()


def openai_events(data: bytes) -> None:
    """What a model says over chat completions, an event a line."""
    provider = openai_compatible.OpenAICompatible("http://127.0.0.1:1/v1")
    answer = openai_compatible.OpenAIAnswer(ASKED, {})
    _answered(data, lambda line: provider._decode(answer, line), lambda: answer.done("openai"))


def anthropic_events(data: bytes) -> None:
    """What a model says over the messages API, an event a line."""
    provider = anthropic.Anthropic("key-of-nobody")
    answer = anthropic.AnthropicAnswer("anthropic", ASKED, {})
    _answered(
        data,
        lambda line: answer.add(provider._http.decode(anthropic.EVENT_DECODER, line)),
        answer.done,
    )


def _answered(data: bytes, add: Callable[[bytes], object], done: Callable[[], object]) -> None:
    """It is an answer, or an error that says whose it is."""
    try:
        for line in data.split(b"\n"):
            add(line)
        msgspec.json.encode(done())
    except ProviderError:
        return


def configurations() -> Iterator[bytes]:
    """Files as people write them."""
    yield b'{"mcpServers": {"a": {"command": "x", "args": ["-y", 1.5e3, null, true]}}, // why\n}'
    yield b'\xef\xbb\xbf{ /* a */ "a\\u00e9": [1, [2, {}], ], "a": "b\\n" ,}'
    yield b'{"a": 1, "a": 2}'


def rules() -> Iterator[bytes]:
    """Policies as people write them."""
    yield b'extends = "developer"\n[[rule]]\nid = "r"\neffect = "deny"\nwhere = ["args.path under \'/home\'"]\n'
    yield (
        b'[[rule]]\nid = "a"\neffect = "ask"\nwhen = { action = "tool.call", tool = "re*" }\n'
        b"obligations = { remember = ['once'], timeout = '5m' }\n"
    )


def expressions() -> Iterator[bytes]:
    """Patterns, each with a text."""
    yield b"(a|b)*c{2,5}\\d+[^x-z]?\nababccc12"
    yield b"(?i)https?://[a-z.]+(/.*)?\nHTTP://x.example/a"


def judgements() -> Iterator[bytes]:
    """Predicates, each with arguments."""
    for text in (
        "args.path under '/home/ada'",
        "not args.to[*] matches '.*@b\\.example'",
        "args.size <= 10",
        "args.** glob '*.txt'",
        "object in ['read', 'write']",
        "args.url host_in ['b.example']",
        "args.deep.x exists",
    ):
        yield text.encode() + b'\n{"path": "/home/ada/../b", "to": ["a@b.example"], "size": 1e400}'


def kept() -> Iterator[bytes]:
    """Arguments with something to hide."""
    yield b'{"password": "hunter2hunter2", "argv": ["--token", "x"], "url": "https://a:b@c/?sig=1"}'
    yield b'["Bearer abcDEF123456", {"a": [[["correct-horse-battery-42"]]]}, 1e300]'


def named() -> Iterator[bytes]:
    """A server, and what it calls its tools."""
    yield b"files\nread\nread_file\nread file\n" + b"x" * 80
    yield "Ünïcode.x\ne̶\n__\n\n".encode()


def words() -> Iterator[bytes]:
    """A server, and what it says."""
    yield b"files\nhello\n</result>\nmore"


def chunks() -> Iterator[bytes]:
    """Events of chat completions."""
    yield (
        b'{"model":"m","choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"c",'
        b'"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}\n'
        b'{"usage":{"prompt_tokens":1,"completion_tokens":2},"choices":[]}'
    )
    yield b'{"error":{"message":"no","code":5}}'


def told() -> Iterator[bytes]:
    """Events of the messages API."""
    yield (
        b'{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}\n'
        b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f"}}\n'
        b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}\n'
        b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}'
    )
    yield b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'


HOST_TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], Iterator[bytes]]]] = {
    "jsonc": (jsonc_files, configurations),
    "policies": (policies, rules),
    "patterns": (patterns, expressions),
    "predicates": (predicates, judgements),
    "audited": (audited, kept),
    "names": (names, named),
    "frames_of_context": (frames_of_context, words),
    "openai": (openai_events, chunks),
    "anthropic": (anthropic_events, told),
}
"""Those of the host: what is run, and what to start from."""
