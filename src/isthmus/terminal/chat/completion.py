"""Completion in a conversation: commands, arguments of prompts, and resources."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from isthmus.errors import IsthmusError, UsageError
from isthmus.host.catalog.names import CatalogItem
from isthmus.host.chat.conversation import Conversation
from isthmus.wire import Prompt, PromptReference

COMMANDS: Mapping[str, str] = {
    "help": "list the commands",
    "servers": "list the servers; /servers start|stop|restart NAME controls one",
    "tools": "list the tools of the model",
    "review": "/review NAME shows the changes of a quarantined tool and releases it",
    "prompts": "list the prompts of all servers; each is a command",
    "resources": "list the resources to attach with @",
    "context": "/context WORDS attaches the matching resources to your next message",
    "grants": "list the grants; /grants revoke ID ends one",
    "audit": "show the last rows of the audit log; /audit 50 shows 50",
    "model": "list the models; /model NAME selects one",
    "show": "show the whole last result of a tool",
    "clear": "forget the conversation",
    "quit": "leave",
}

MAX_SUGGESTIONS = 50

AT_PATTERN = re.compile(r"(?:^|(?<=\s))@(\S*)$")
ATTACHED_PATTERN = re.compile(r"(?:^|(?<=\s))@(\S+)")
BLANK_PATTERN = re.compile(r"(?:^|(?<=\s))([^\s=]+)=(\"[^\"]*|'[^']*|\S*)$")
WORD_PATTERN = re.compile(r"(?:^|(?<=\s))(\S*)$")


class Suggestion(Struct, frozen=True):
    """A suggestion: a text that completes the line, and its label.

    Attributes:
        text: the whole line, with it.
        label: what it is, for a person.
    """

    text: str
    label: str


def split_words(text: str) -> list[str]:
    """The words of a command, with quotes taken off; where one has no end, it ends with the line."""
    for end in ("", '"', "'"):
        try:
            return shlex.split(text + end)
        except ValueError:
            continue
    return text.split()


def parse_prompt_arguments(prompt: Prompt, words: Sequence[str]) -> dict[str, str]:
    """The arguments of a prompt: ``name=value``, or values in the order of its blanks.

    Raises:
        UsageError: there is no such blank, or one that is needed is missing.
    """
    names = [one.name for one in prompt.arguments or ()]
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            found[name] = value
            continue
        free = next((name for name in names if name not in found), None)
        if free is None:
            raise UsageError(
                f"{word!r} is not an argument of it: {', '.join(names) or 'it has none'}"
            )
        found[free] = word
    missing = [one.name for one in prompt.arguments or () if one.required and one.name not in found]
    if missing:
        raise UsageError(f"missing arguments: {' '.join(f'{name}=…' for name in missing)}")
    return found


def find_attached(text: str) -> list[str]:
    """The resources that a line names with ``@``, in their order."""
    return ATTACHED_PATTERN.findall(text)


async def list_suggestions(text: str, talk: Conversation) -> list[Suggestion]:
    """The suggestions for a line; none where no server can say.

    Args:
        text: what has been typed, up to the cursor.
        talk: its host has the prompts and resources, and asks servers for what goes into blanks.
    """
    prompts = {item.name: item for item in talk.host.catalog.prompts(talk.viewer)}
    if text.startswith("/"):
        name, space, rest = text[1:].partition(" ")
        if not space:
            return suggest_names(name, prompts)
        if name in prompts:
            return await suggest_values(text, rest, prompts[name], talk)
        return []
    found = AT_PATTERN.search(text)
    return [] if found is None else suggest_resources(text[: found.start()], found[1], talk)


def suggest_names(begun: str, prompts: Mapping[str, CatalogItem[Prompt]]) -> list[Suggestion]:
    """Commands and prompts whose names begin so, then those that have it somewhere."""
    known = [(name, about) for name, about in COMMANDS.items()]
    known += [
        (name, item.what.title or item.what.description or f"a prompt of {item.server}")
        for name, item in prompts.items()
    ]
    begun = begun.lower()
    fits = [row for row in known if begun in row[0].lower()]
    fits.sort(key=lambda row: not row[0].lower().startswith(begun))
    return [
        Suggestion(f"/{name} ", format_suggestion(f"/{name}", about))
        for name, about in fits[:MAX_SUGGESTIONS]
    ]


async def suggest_values(
    text: str, rest: str, item: CatalogItem[Prompt], talk: Conversation
) -> list[Suggestion]:
    """Values for the blank that is being typed, as the server has them; else the blanks there are."""
    begun = BLANK_PATTERN.search(rest)
    names = [one.name for one in item.what.arguments or ()]
    if begun is None or begun[1] not in names:
        return suggest_blanks(text, rest, item.what)
    before = text[: len(text) - len(begun[0])]
    others = dict(
        part.split("=", 1) for part in split_words(rest[: begun.start()]) if part.partition("=")[1]
    )
    try:
        completion = await talk.host.complete(
            item.server,
            PromptReference(name=item.what.name),
            begun[1],
            begun[2].strip("\"'"),
            context=others or None,
            principal=talk.principal,
        )
    except IsthmusError:
        return []  # a server that cannot complete, or may not, is no reason to disturb who types
    return [
        Suggestion(f"{before}{begun[1]}={quote_word(value)} ", format_suggestion(value, ""))
        for value in completion.values[:MAX_SUGGESTIONS]
    ]


def suggest_blanks(text: str, rest: str, prompt: Prompt) -> list[Suggestion]:
    """The blanks of a prompt that have no value yet, and begin as the last word does."""
    given = {part.partition("=")[0] for part in split_words(rest)}
    found = WORD_PATTERN.search(rest)
    begun = found[1] if found else ""
    before = text[: len(text) - len(begun)]
    return [
        Suggestion(
            f"{before}{one.name}=",
            format_suggestion(
                f"{one.name}=", f"{one.description or ''}{' (needed)' if one.required else ''}"
            ),
        )
        for one in prompt.arguments or ()
        if one.name.startswith(begun) and (one.name not in given or one.name == begun)
    ]


def suggest_resources(before: str, begun: str, talk: Conversation) -> list[Suggestion]:
    """The resources that have what was typed after the ``@`` in their URI, name or title."""
    begun = begun.lower()
    rows: Iterable[tuple[str, str]] = [
        *(
            (item.name, item.what.title or item.what.name)
            for item in talk.host.catalog.resources(talk.viewer)
        ),
        *(
            (item.name, f"template: {item.what.title or item.what.name}")
            for item in talk.host.catalog.templates(talk.viewer)
        ),
    ]
    fits = [row for row in rows if begun in f"{row[0]} {row[1]}".lower()]
    return [
        Suggestion(f"{before}@{name} ", format_suggestion(f"@{name}", about))
        for name, about in fits[:MAX_SUGGESTIONS]
    ]


def format_suggestion(what: str, about: str) -> str:
    """A suggestion in one line."""
    from isthmus.cards.lines import display_name

    short = " ".join(about.split())[:100]
    return display_name(f"{what}   {short}" if short else what)


def quote_word(value: str) -> str:
    """A value as one word."""
    return value if value and not re.search(r"[\s\"'\\]", value) else shlex.quote(value)
