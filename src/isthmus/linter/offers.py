"""Rules about what is offered and answered: tools, prompts, resources, completions, errors."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from isthmus.core.http_params import BadAnnotation, header_params
from isthmus.core.uri_template import UriTemplate
from isthmus.errors import UsageError
from isthmus.linter.conversation import Conversation, Said
from isthmus.linter.demands import Placeholder
from isthmus.linter.rule import Fault, Rule

__all__ = ["OFFERS", "TELLTALE"]

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def results(conversation: Conversation, method: str) -> Iterator[Said]:
    """The results of a method."""
    return (said for said in conversation if said.kind == "result" and said.method == method)


def items(conversation: Conversation, method: str) -> Iterator[tuple[Said, str, dict[str, Any]]]:
    """Every item of a list, the answer it is in, and its place."""
    name = LISTS[method]
    for said in results(conversation, method):
        listed = said.result.get(name)
        for i, item in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(item, dict):
                yield said, f"$.result.{name}[{i}]", item


def called(item: dict[str, Any]) -> str:
    """An item's name, for messages."""
    return repr(str(item.get("name") or item.get("uri") or item.get("uriTemplate") or "?")[:80])


def fault(said: Said, path: str, item: dict[str, Any], text: str) -> Fault:
    """A fault of an item."""
    return Fault(f"{said.method} {path} {called(item)}", text, said.number, said.side)


# Names and words

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _tool_names(conversation: Conversation) -> Iterator[Fault]:
    for said, path, tool in items(conversation, "tools/list"):
        name = tool.get("name")
        if isinstance(name, str) and not NAME.fullmatch(name):
            yield fault(said, path, tool, "letters, digits, _ - and . only, 1 to 128 of them")


def _unique(method: str, member: str, conversation: Conversation) -> Iterator[Fault]:
    for said in results(conversation, method):
        listed = said.result.get(LISTS[method])
        names = [
            item.get(member)
            for item in (listed if isinstance(listed, list) else ())
            if isinstance(item, dict) and isinstance(item.get(member), str)
        ]
        for name, count in Counter(names).items():
            if count > 1:
                where = f"{method} $.result.{LISTS[method]}"
                yield Fault(where, f"{name!r} is there {count} times", said.number, said.side)


def _described(method: str, conversation: Conversation) -> Iterator[Fault]:
    for said, path, item in items(conversation, method):
        description = item.get("description")
        if not isinstance(description, str) or not description.strip():
            yield fault(said, path, item, "it has no description")


# Schemas


def _schemas(
    conversation: Conversation,
) -> Iterator[tuple[Said, str, dict[str, Any], dict[str, Any]]]:
    for said, path, tool in items(conversation, "tools/list"):
        for member in ("inputSchema", "outputSchema"):
            if isinstance(schema := tool.get(member), dict) and "..." not in schema:
                yield said, f"{path}.{member}", tool, schema


def _valid_schemas(conversation: Conversation) -> Iterator[Fault]:
    for said, path, tool, schema in _schemas(conversation):
        flaw = schema_flaw(schema)
        if flaw:
            yield fault(said, path, tool, flaw)


def schema_flaw(schema: dict[str, Any]) -> str | None:
    """Why something is no JSON Schema of its dialect, or None; unknown dialects are not judged."""
    import jsonschema_rs  # slow, and needed where there are schemas only

    if str(schema.get("$schema", DIALECTS[0])).rstrip("#") not in DIALECTS:
        return None
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        where = "/".join(map(str, error.instance_path)) or "the schema"
        return f"no valid JSON Schema: {where}: {error.message[:200]}"
    except (jsonschema_rs.ReferencingError, ValueError, RecursionError) as error:
        return f"no valid JSON Schema: {str(error)[:200]}"
    return None


DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)


def _network_refs(conversation: Conversation) -> Iterator[Fault]:
    for said, path, tool, schema in _schemas(conversation):
        for place, target in _refs(schema, path):
            if target.startswith(("http://", "https://", "ftp://", "//")):
                yield fault(said, place, tool, f"refers to {target[:100]}")


def _refs(schema: Any, path: str) -> Iterator[tuple[str, str]]:
    stack = [(schema, path)]
    while stack:
        part, place = stack.pop()
        if isinstance(part, dict):
            target = part.get("$ref")
            if isinstance(target, str):
                yield f"{place}.$ref", target
            stack += [(value, f"{place}.{name}") for name, value in part.items()]
        elif isinstance(part, list):
            stack += [(value, f"{place}[{i}]") for i, value in enumerate(part)]


def _header_marks(conversation: Conversation) -> Iterator[Fault]:
    for said, path, tool in items(conversation, "tools/list"):
        schema = tool.get("inputSchema")
        try:
            header_params(schema if isinstance(schema, dict) else {})
        except BadAnnotation as error:
            yield fault(said, f"{path}.inputSchema", tool, str(error))


def _templates(conversation: Conversation) -> Iterator[Fault]:
    for said, path, item in items(conversation, "resources/templates/list"):
        template = item.get("uriTemplate")
        if isinstance(template, str):
            try:
                UriTemplate(template)
            except (UsageError, ValueError) as error:
                yield fault(said, f"{path}.uriTemplate", item, str(error))


def _icons(conversation: Conversation) -> Iterator[Fault]:
    for method in LISTS:
        for said, path, item in items(conversation, method):
            icons = item.get("icons")
            for i, icon in enumerate(icons if isinstance(icons, list) else ()):
                src = icon.get("src") if isinstance(icon, dict) else None
                if isinstance(src, str) and not src.startswith(("https:", "data:", "http:")):
                    yield fault(said, f"{path}.icons[{i}].src", item, f"is {src[:60]!r}")


# Contents and answers

BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def _base64(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        stack: list[tuple[Any, str]] = [(said.result, "$.result")]
        while stack:
            part, path = stack.pop()
            for member in ("data", "blob"):
                value = part.get(member) if isinstance(part, dict) else None
                bytes_there = member == "blob" or part_is_media(part)
                if bytes_there and isinstance(value, str) and not is_base64(value):
                    where = f"{said.where} {path}.{member}"
                    yield Fault(where, "it is no base64", said.number, said.side)
            stack += _inside(part, path)


def is_base64(text: str) -> bool:
    """Whether text is base64 with its padding, or a placeholder of a transcript."""
    if isinstance(text, Placeholder):
        return True
    return len(text) % 4 == 0 and BASE64.fullmatch(text) is not None


def part_is_media(part: Any) -> bool:
    """Whether an object is an image or a sound, whose data are bytes."""
    return isinstance(part, dict) and part.get("type") in ("image", "audio")


def _inside(part: Any, path: str) -> list[tuple[Any, str]]:
    """The parts of content that may hold bytes."""
    found: list[tuple[Any, str]] = []
    for member in ("content", "contents", "messages", "resource"):
        value = part.get(member) if isinstance(part, dict) else None
        if isinstance(value, list):
            found += [(one, f"{path}.{member}[{i}]") for i, one in enumerate(value)]
        elif isinstance(value, dict):
            found.append((value, f"{path}.{member}"))
    return found


def _completions(conversation: Conversation) -> Iterator[Fault]:
    for said in results(conversation, "completion/complete"):
        completion = said.result.get("completion")
        values = completion.get("values") if isinstance(completion, dict) else None
        if isinstance(values, list) and len(values) > MOST:
            where = f"{said.where} $.result.completion.values"
            yield Fault(where, f"{len(values)} values", said.number, said.side)


MOST = 100


def _completion_total(conversation: Conversation) -> Iterator[Fault]:
    for said in results(conversation, "completion/complete"):
        completion = said.result.get("completion")
        if not isinstance(completion, dict) or not isinstance(completion.get("values"), list):
            continue
        count, total = len(completion["values"]), completion.get("total")
        more = completion.get("hasMore")
        where = f"{said.where} $.result.completion"
        if isinstance(total, int) and total < count:
            yield Fault(where, f"total is {total}, of {count} values", said.number, said.side)
        elif isinstance(total, int) and more is False and total > count:
            text = f"hasMore is false, and total is {total} of {count} values"
            yield Fault(where, text, said.number, said.side)


def _input_required(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        asks = said.kind == "result" and said.result.get("resultType") == "input_required"
        if asks and not said.result.keys() & {"inputRequests", "requestState", "..."}:
            yield Fault(
                said.where, "neither inputRequests nor requestState", said.number, said.side
            )


# Errors

RESERVED = range(-32099, -32019)
DEFINED = {-32020, -32021, -32022}
GONE = {-32002, -32042}
TELLTALE = re.compile(
    r"Traceback \(most recent call last\)|File \"[^\"]+\", line \d+|\n\s+at (?:async |new )?[\w.<>$]+ ?\(|"
    r"\n\s+at (?:file://)?/[^\s:]+:\d+:\d+|\.rb:\d+:in |Stack trace:\s+#0 |"
    r"node_modules/|site-packages/|panicked at|goroutine \d+ \["
)
"""What a stack trace of Python, JavaScript, Java, .NET, Ruby, PHP, Rust or Go looks like."""


def _codes(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind == "error" and isinstance(said.message["error"], dict):
            code = said.message["error"].get("code")
            if code == 0 and not isinstance(code, bool):
                yield Fault(said.where, "its code is 0", said.number, said.side)


def _reserved(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        if said.kind == "error" and isinstance(said.message["error"], dict):
            code = said.message["error"].get("code")
            plain = isinstance(code, int) and not isinstance(code, bool)
            if plain and (code in GONE or (code in RESERVED and code not in DEFINED)):
                yield Fault(said.where, f"its code is {code}", said.number, said.side)


def _leaks(conversation: Conversation) -> Iterator[Fault]:
    for said in conversation:
        text = _error_text(said)
        telling = TELLTALE.search(text)
        if telling:
            yield Fault(said.where, f"it shows {telling[0].strip()!r}", said.number, said.side)


def texts_in(value: Any) -> Iterator[str]:
    """Every text of a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)


def _error_text(said: Said) -> str:
    if said.kind == "error" and isinstance(said.message["error"], dict):
        return "\n".join(texts_in(said.message["error"]))
    blocks = said.result.get("content") if said.result.get("isError") is True else None
    texts = blocks if isinstance(blocks, list) else []
    return " ".join(str(block.get("text", "")) for block in texts if isinstance(block, dict))


def _hinted(conversation: Conversation) -> Iterator[Fault]:
    """Pages of one list have one scope."""
    for method in LISTS:
        scopes = [
            (said, said.result.get("cacheScope"))
            for said in results(conversation, method)
            if said.revision.name == "2026-07-28" and "cacheScope" in said.result
        ]
        for said, scope in scopes[1:]:
            if said.asked is not None and "cursor" in said.asked.params and scope != scopes[0][1]:
                text = f"{scope!r} on this page, {scopes[0][1]!r} on the first"
                yield Fault(f"{said.where} $.result.cacheScope", text, said.number, said.side)


def unique(method: str, member: str) -> Callable[[Conversation], Iterator[Fault]]:
    """The check that no two items of a list have the same name."""
    return partial(_unique, method, member)


def described(method: str) -> Callable[[Conversation], Iterator[Fault]]:
    """The check that each item of a list says what it is."""
    return partial(_described, method)


OFFERS: tuple[Rule, ...] = (
    Rule(
        "tools.name",
        "warning",
        "2025-11-25 server/tools#tool-names",
        "A tool's name has 1 to 128 ASCII letters, digits, underscores, hyphens and dots.",
        "Rename it; put the name for people into title.",
        _tool_names,
    ),
    Rule(
        "tools.unique",
        "warning",
        "2025-11-25 server/tools#tool-names",
        "No two tools of a server have the same name.",
        "Rename one of them.",
        unique("tools/list", "name"),
    ),
    Rule(
        "tools.described",
        "warning",
        "2025-11-25 server/tools#tool",
        "A tool says what it does.",
        "Write a description: it is what a model chooses by.",
        described("tools/list"),
    ),
    Rule(
        "tools.schema",
        "error",
        "2025-11-25 basic#schema-validation",
        "The schemas of a tool are valid in their dialect, which is 2020-12 where they do not say.",
        "Mend the keyword named.",
        _valid_schemas,
    ),
    Rule(
        "tools.network-ref",
        "warning",
        "2026-07-28 basic#ref-resolution",
        "The schemas of a tool refer to nothing on a network, since nobody may fetch it.",
        "Put what is referred to under $defs.",
        _network_refs,
    ),
    Rule(
        "tools.header",
        "error",
        "2026-07-28 server/tools#x-mcp-header",
        "An x-mcp-header marks a primitive property by a token that is unique in its tool.",
        "Mend or remove the mark: clients must leave such a tool out.",
        _header_marks,
        since="2026-07-28",
    ),
    Rule(
        "prompts.unique",
        "warning",
        "2025-11-25 server/prompts#prompt",
        "No two prompts of a server have the same name.",
        "Rename one of them.",
        unique("prompts/list", "name"),
    ),
    Rule(
        "prompts.described",
        "note",
        "2025-11-25 server/prompts#prompt",
        "A prompt says what it is for.",
        "Write a description.",
        described("prompts/list"),
    ),
    Rule(
        "resources.unique",
        "warning",
        "2025-11-25 server/resources#resource",
        "No two resources have the same URI.",
        "List it once.",
        unique("resources/list", "uri"),
    ),
    Rule(
        "resources.template",
        "error",
        "2025-11-25 server/resources#resource-templates",
        "A URI template is one of RFC 6570.",
        "Mend the expression named.",
        _templates,
    ),
    Rule(
        "icons.source",
        "warning",
        "2025-11-25 basic#icons",
        "An icon's source is an https: or data: URI.",
        "Serve it over https, or put it into a data: URI.",
        _icons,
        since="2025-11-25",
    ),
    Rule(
        "content.base64",
        "error",
        "2025-11-25 server/tools#image-content",
        "Images, sounds and blobs are base64 with its padding, in the standard alphabet.",
        "Encode the bytes with standard base64.",
        _base64,
    ),
    Rule(
        "completion.most",
        "error",
        "2025-11-25 server/utilities/completion#completion-results",
        "A completion has 100 values at most.",
        "Send the best 100, with total and hasMore.",
        _completions,
    ),
    Rule(
        "completion.total",
        "warning",
        "2025-11-25 server/utilities/completion#completion-results",
        "The total and hasMore of a completion agree with its values.",
        "Count before cutting.",
        _completion_total,
    ),
    Rule(
        "asking.something",
        "error",
        "2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow",
        "A result that asks has inputRequests, requestState, or both.",
        "Say what is asked.",
        _input_required,
        since="2026-07-28",
    ),
    Rule(
        "caching.one-scope",
        "error",
        "2026-07-28 server/utilities/caching#interaction-with-pagination",
        "All pages of a list have the same cacheScope.",
        "Decide the scope for the list, not for the page.",
        _hinted,
        since="2026-07-28",
    ),
    Rule(
        "errors.code-zero",
        "warning",
        "ours",
        "An error has a code that says something; 0 does not.",
        "Use -32603 for what is unexpected.",
        _codes,
    ),
    Rule(
        "errors.code-reserved",
        "error",
        "2026-07-28 basic#error-codes",
        "Codes from -32099 to -32020 are those of the specification, and -32002 and -32042 are gone.",
        "Use a code outside -32768 to -32000 for errors of your own.",
        _reserved,
        since="2026-07-28",
    ),
    Rule(
        "errors.leak",
        "warning",
        "ours",
        "Errors show no stack traces and no paths of the server's own files.",
        "Log the exception, and answer with a sentence.",
        _leaks,
    ),
)
"""The rules, in the order in which they are reported."""
