"""Rules about what is offered and answered: tools, prompts, resources, completions, errors."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from isthmus.core.http.params import BadAnnotation, find_header_params
from isthmus.core.schema_bounds import DIALECTS
from isthmus.core.uri_template import UriTemplate
from isthmus.errors import UsageError
from isthmus.linter.rules.conversation import ObservedConversation, ObservedMessage
from isthmus.linter.rules.rule import LintRule, Violation
from isthmus.linter.rules.shapes import Placeholder

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def find_results(conversation: ObservedConversation, method: str) -> Iterator[ObservedMessage]:
    """The results of a method."""
    return (said for said in conversation if said.kind == "result" and said.method == method)


def find_items(
    conversation: ObservedConversation, method: str
) -> Iterator[tuple[ObservedMessage, str, dict[str, Any]]]:
    """Every item of a list, the answer it is in, and its place."""
    name = LISTS[method]
    for said in find_results(conversation, method):
        listed = said.result.get(name)
        for i, item in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(item, dict):
                yield said, f"$.result.{name}[{i}]", item


def quote_name(item: dict[str, Any]) -> str:
    """An item's name, for messages."""
    return repr(str(item.get("name") or item.get("uri") or item.get("uriTemplate") or "?")[:80])


def make_item_violation(
    said: ObservedMessage, path: str, item: dict[str, Any], text: str
) -> Violation:
    """A fault of an item."""
    return Violation(f"{said.method} {path} {quote_name(item)}", text, said.number, said.side)


# Names and words

TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def _check_tool_names(conversation: ObservedConversation) -> Iterator[Violation]:
    for said, path, tool in find_items(conversation, "tools/list"):
        name = tool.get("name")
        if isinstance(name, str) and not TOOL_NAME.fullmatch(name):
            yield make_item_violation(
                said, path, tool, "letters, digits, _ - and . only, 1 to 128 of them"
            )


def _check_unique(
    method: str, member: str, conversation: ObservedConversation
) -> Iterator[Violation]:
    for said in find_results(conversation, method):
        listed = said.result.get(LISTS[method])
        names = [
            item.get(member)
            for item in (listed if isinstance(listed, list) else ())
            if isinstance(item, dict) and isinstance(item.get(member), str)
        ]
        for name, count in Counter(names).items():
            if count > 1:
                where = f"{method} $.result.{LISTS[method]}"
                yield Violation(where, f"{name!r} is there {count} times", said.number, said.side)


def _check_described(method: str, conversation: ObservedConversation) -> Iterator[Violation]:
    for said, path, item in find_items(conversation, method):
        description = item.get("description")
        if not isinstance(description, str) or not description.strip():
            yield make_item_violation(said, path, item, "it has no description")


# Schemas


def _find_schemas(
    conversation: ObservedConversation,
) -> Iterator[tuple[ObservedMessage, str, dict[str, Any], dict[str, Any]]]:
    for said, path, tool in find_items(conversation, "tools/list"):
        for member in ("inputSchema", "outputSchema"):
            if isinstance(schema := tool.get(member), dict) and "..." not in schema:
                yield said, f"{path}.{member}", tool, schema


def _check_valid_schemas(conversation: ObservedConversation) -> Iterator[Violation]:
    for said, path, tool, schema in _find_schemas(conversation):
        flaw = find_schema_flaw(schema)
        if flaw:
            yield make_item_violation(said, path, tool, flaw)


def find_schema_flaw(schema: dict[str, Any]) -> str | None:
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


def _check_network_refs(conversation: ObservedConversation) -> Iterator[Violation]:
    for said, path, tool, schema in _find_schemas(conversation):
        for place, target in _find_refs(schema, path):
            if target.startswith(("http://", "https://", "ftp://", "//")):
                yield make_item_violation(said, place, tool, f"refers to {target[:100]}")


def _find_refs(schema: Any, path: str) -> Iterator[tuple[str, str]]:
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


def _check_header_marks(conversation: ObservedConversation) -> Iterator[Violation]:
    for said, path, tool in find_items(conversation, "tools/list"):
        schema = tool.get("inputSchema")
        try:
            find_header_params(schema if isinstance(schema, dict) else {})
        except BadAnnotation as error:
            yield make_item_violation(said, f"{path}.inputSchema", tool, str(error))


def _check_templates(conversation: ObservedConversation) -> Iterator[Violation]:
    for said, path, item in find_items(conversation, "resources/templates/list"):
        template = item.get("uriTemplate")
        if isinstance(template, str):
            try:
                UriTemplate(template)
            except (UsageError, ValueError) as error:
                yield make_item_violation(said, f"{path}.uriTemplate", item, str(error))


def _check_icons(conversation: ObservedConversation) -> Iterator[Violation]:
    for method in LISTS:
        for said, path, item in find_items(conversation, method):
            icons = item.get("icons")
            for i, icon in enumerate(icons if isinstance(icons, list) else ()):
                src = icon.get("src") if isinstance(icon, dict) else None
                if isinstance(src, str) and not src.startswith(("https:", "data:", "http:")):
                    yield make_item_violation(
                        said, f"{path}.icons[{i}].src", item, f"is {src[:60]!r}"
                    )


# Contents and answers

BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def _check_base64(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        stack: list[tuple[Any, str]] = [(said.result, "$.result")]
        while stack:
            part, path = stack.pop()
            for member in ("data", "blob"):
                value = part.get(member) if isinstance(part, dict) else None
                bytes_there = member == "blob" or is_media_part(part)
                if bytes_there and isinstance(value, str) and not is_base64(value):
                    where = f"{said.where} {path}.{member}"
                    yield Violation(where, "it is no base64", said.number, said.side)
            stack += _list_parts(part, path)


def is_base64(text: str) -> bool:
    """Whether text is base64 with its padding, or a placeholder of a transcript."""
    if isinstance(text, Placeholder):
        return True
    return len(text) % 4 == 0 and BASE64.fullmatch(text) is not None


def is_media_part(part: Any) -> bool:
    """Whether an object is an image or a sound, whose data are bytes."""
    return isinstance(part, dict) and part.get("type") in ("image", "audio")


def _list_parts(part: Any, path: str) -> list[tuple[Any, str]]:
    """The parts of content that may hold bytes."""
    found: list[tuple[Any, str]] = []
    for member in ("content", "contents", "messages", "resource"):
        value = part.get(member) if isinstance(part, dict) else None
        if isinstance(value, list):
            found += [(one, f"{path}.{member}[{i}]") for i, one in enumerate(value)]
        elif isinstance(value, dict):
            found.append((value, f"{path}.{member}"))
    return found


def _check_completions(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in find_results(conversation, "completion/complete"):
        completion = said.result.get("completion")
        values = completion.get("values") if isinstance(completion, dict) else None
        if isinstance(values, list) and len(values) > MAX_COMPLETION_VALUES:
            where = f"{said.where} $.result.completion.values"
            yield Violation(where, f"{len(values)} values", said.number, said.side)


MAX_COMPLETION_VALUES = 100


def _check_completion_total(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in find_results(conversation, "completion/complete"):
        completion = said.result.get("completion")
        if not isinstance(completion, dict) or not isinstance(completion.get("values"), list):
            continue
        count, total = len(completion["values"]), completion.get("total")
        more = completion.get("hasMore")
        where = f"{said.where} $.result.completion"
        if isinstance(total, int) and total < count:
            yield Violation(where, f"total is {total}, of {count} values", said.number, said.side)
        elif isinstance(total, int) and more is False and total > count:
            text = f"hasMore is false, and total is {total} of {count} values"
            yield Violation(where, text, said.number, said.side)


def _check_input_required(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        asks = said.kind == "result" and said.result.get("resultType") == "input_required"
        if asks and not said.result.keys() & {"inputRequests", "requestState", "..."}:
            yield Violation(
                said.where, "neither inputRequests nor requestState", said.number, said.side
            )


# Errors

RESERVED_CODES = range(-32099, -32019)
DEFINED_CODES = {-32020, -32021, -32022}
RETIRED_CODES = {-32002, -32042}
# What a stack trace of Python, JavaScript, Java, .NET, Ruby, PHP, Rust or Go looks like.
STACK_TRACE = re.compile(
    r"Traceback \(most recent call last\)|File \"[^\"]+\", line \d+|\n\s+at (?:async |new )?[\w.<>$]+ ?\(|"
    r"\n\s+at (?:file://)?/[^\s:]+:\d+:\d+|\.rb:\d+:in |Stack trace:\s+#0 |"
    r"node_modules/|site-packages/|panicked at|goroutine \d+ \["
)


def _check_zero_codes(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind == "error" and isinstance(said.message["error"], dict):
            code = said.message["error"].get("code")
            if code == 0 and not isinstance(code, bool):
                yield Violation(said.where, "its code is 0", said.number, said.side)


def _check_reserved_codes(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        if said.kind == "error" and isinstance(said.message["error"], dict):
            code = said.message["error"].get("code")
            plain = isinstance(code, int) and not isinstance(code, bool)
            if plain and (
                code in RETIRED_CODES or (code in RESERVED_CODES and code not in DEFINED_CODES)
            ):
                yield Violation(said.where, f"its code is {code}", said.number, said.side)


def _check_leaks(conversation: ObservedConversation) -> Iterator[Violation]:
    for said in conversation:
        text = _join_error_text(said)
        telling = STACK_TRACE.search(text)
        if telling:
            yield Violation(said.where, f"it shows {telling[0].strip()!r}", said.number, said.side)


def find_texts(value: Any) -> Iterator[str]:
    """Every text of a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from find_texts(part)


def _join_error_text(said: ObservedMessage) -> str:
    if said.kind == "error" and isinstance(said.message["error"], dict):
        return "\n".join(find_texts(said.message["error"]))
    blocks = said.result.get("content") if said.result.get("isError") is True else None
    texts = blocks if isinstance(blocks, list) else []
    return " ".join(str(block.get("text", "")) for block in texts if isinstance(block, dict))


def _check_cache_scopes(conversation: ObservedConversation) -> Iterator[Violation]:
    """Pages of one list have one scope."""
    for method in LISTS:
        scopes = [
            (said, said.result.get("cacheScope"))
            for said in find_results(conversation, method)
            if said.revision.name == "2026-07-28" and "cacheScope" in said.result
        ]
        for said, scope in scopes[1:]:
            if said.asked is not None and "cursor" in said.asked.params and scope != scopes[0][1]:
                text = f"{scope!r} on this page, {scopes[0][1]!r} on the first"
                yield Violation(f"{said.where} $.result.cacheScope", text, said.number, said.side)


def expect_unique(
    method: str, member: str
) -> Callable[[ObservedConversation], Iterator[Violation]]:
    """The check that no two items of a list have the same name."""
    return partial(_check_unique, method, member)


def expect_description(method: str) -> Callable[[ObservedConversation], Iterator[Violation]]:
    """The check that each item of a list says what it is."""
    return partial(_check_described, method)


OFFER_RULES: tuple[LintRule, ...] = (  # the rules, in the order in which they are reported
    LintRule(
        "tools.name",
        "warning",
        "2025-11-25 server/tools#tool-names",
        "A tool's name has 1 to 128 ASCII letters, digits, underscores, hyphens and dots.",
        "Rename it; put the name for people into title.",
        _check_tool_names,
    ),
    LintRule(
        "tools.unique",
        "warning",
        "2025-11-25 server/tools#tool-names",
        "No two tools of a server have the same name.",
        "Rename one of them.",
        expect_unique("tools/list", "name"),
    ),
    LintRule(
        "tools.described",
        "warning",
        "2025-11-25 server/tools#tool",
        "A tool says what it does.",
        "Write a description: it is what a model chooses by.",
        expect_description("tools/list"),
    ),
    LintRule(
        "tools.schema",
        "error",
        "2025-11-25 basic#schema-validation",
        "The schemas of a tool are valid in their dialect, which is 2020-12 where they do not say.",
        "Mend the keyword named.",
        _check_valid_schemas,
    ),
    LintRule(
        "tools.network-ref",
        "warning",
        "2026-07-28 basic#ref-resolution",
        "The schemas of a tool refer to nothing on a network, since nobody may fetch it.",
        "Put what is referred to under $defs.",
        _check_network_refs,
    ),
    LintRule(
        "tools.header",
        "error",
        "2026-07-28 server/tools#x-mcp-header",
        "An x-mcp-header marks a primitive property by a token that is unique in its tool.",
        "Mend or remove the mark: clients must leave such a tool out.",
        _check_header_marks,
        since="2026-07-28",
    ),
    LintRule(
        "prompts.unique",
        "warning",
        "2025-11-25 server/prompts#prompt",
        "No two prompts of a server have the same name.",
        "Rename one of them.",
        expect_unique("prompts/list", "name"),
    ),
    LintRule(
        "prompts.described",
        "note",
        "2025-11-25 server/prompts#prompt",
        "A prompt says what it is for.",
        "Write a description.",
        expect_description("prompts/list"),
    ),
    LintRule(
        "resources.unique",
        "warning",
        "2025-11-25 server/resources#resource",
        "No two resources have the same URI.",
        "List it once.",
        expect_unique("resources/list", "uri"),
    ),
    LintRule(
        "resources.template",
        "error",
        "2025-11-25 server/resources#resource-templates",
        "A URI template is one of RFC 6570.",
        "Mend the expression named.",
        _check_templates,
    ),
    LintRule(
        "icons.source",
        "warning",
        "2025-11-25 basic#icons",
        "An icon's source is an https: or data: URI.",
        "Serve it over https, or put it into a data: URI.",
        _check_icons,
        since="2025-11-25",
    ),
    LintRule(
        "content.base64",
        "error",
        "2025-11-25 server/tools#image-content",
        "Images, sounds and blobs are base64 with its padding, in the standard alphabet.",
        "Encode the bytes with standard base64.",
        _check_base64,
    ),
    LintRule(
        "completion.most",
        "error",
        "2025-11-25 server/utilities/completion#completion-results",
        "A completion has 100 values at most.",
        "Send the best 100, with total and hasMore.",
        _check_completions,
    ),
    LintRule(
        "completion.total",
        "warning",
        "2025-11-25 server/utilities/completion#completion-results",
        "The total and hasMore of a completion agree with its values.",
        "Count before cutting.",
        _check_completion_total,
    ),
    LintRule(
        "asking.something",
        "error",
        "2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow",
        "A result that asks has inputRequests, requestState, or both.",
        "Say what is asked.",
        _check_input_required,
        since="2026-07-28",
    ),
    LintRule(
        "caching.one-scope",
        "error",
        "2026-07-28 server/utilities/caching#interaction-with-pagination",
        "All pages of a list have the same cacheScope.",
        "Decide the scope for the list, not for the page.",
        _check_cache_scopes,
        since="2026-07-28",
    ),
    LintRule(
        "errors.code-zero",
        "warning",
        "ours",
        "An error has a code that says something; 0 does not.",
        "Use -32603 for what is unexpected.",
        _check_zero_codes,
    ),
    LintRule(
        "errors.code-reserved",
        "error",
        "2026-07-28 basic#error-codes",
        "Codes from -32099 to -32020 are those of the specification, and -32002 and -32042 are gone.",
        "Use a code outside -32768 to -32000 for errors of your own.",
        _check_reserved_codes,
        since="2026-07-28",
    ),
    LintRule(
        "errors.leak",
        "warning",
        "ours",
        "Errors show no stack traces and no paths of the server's own files.",
        "Log the exception, and answer with a sentence.",
        _check_leaks,
    ),
)
