"""Declarations of commands: their options and words as data, before any library reads them.

Two read them: :func:`read_plain_line` the usual command lines, with nothing imported, and
:mod:`isthmus.cli.typer_app` all others, with help and errors (ADR 0076).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

PLAIN_SETTINGS = frozenset({"metavar", "help", "show_default"})  # that change nothing of the value


class Option:
    """An option of a command, as metadata of an annotation.

    Args:
        names: as they are typed; by default made of the parameter's name.
        **settings: as typer's ``Option`` has them.
    """

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names = names
        self.settings = settings


class Argument:
    """A word of a command that stands by itself, as metadata of an annotation.

    Args:
        **settings: as typer's ``Argument`` has them.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


class Invocation(NamedTuple):
    """How a command was called; a parameter of this type gets it.

    Attributes:
        name: of the command.
        command: the command of a server, which stands after ``--``.
        subcommand: the command of a group that is run next, or None.
    """

    name: str
    command: Sequence[str] = ()
    subcommand: str | None = None


class DeclaredCommand(NamedTuple):
    """A command: the function that does it, and what its help says."""

    function: Callable[..., Any]
    settings: Mapping[str, Any]


class CommandSet:
    """Commands of one module, which have a name together or stand by themselves.

    Args:
        name: of the group; None for commands that are none.
        **settings: as ``typer.Typer`` has them.

    Attributes:
        commands: by their names.
        groups: that are in this group.
        own: what the group itself does, with or without a command of it.
    """

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        self.name = name
        self.settings = settings
        self.commands: dict[str, DeclaredCommand] = {}
        self.groups: list[CommandSet] = []
        self.own: Callable[..., Any] | None = None

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """Declare a command; its name is the function's if none is given."""

        def declare(function: F) -> F:
            self.commands[name or function.__name__] = DeclaredCommand(function, settings)
            return function

        return declare

    def callback(self) -> Callable[[F], F]:
        """Declare what the group itself does."""

        def declare(function: F) -> F:
            self.own = function
            return function

        return declare

    def add_group(self, group: "CommandSet") -> None:
        """Have a group of commands in this one."""
        self.groups.append(group)

    def find_plain(self, name: str, words: Sequence[str]) -> tuple[str, Sequence[str]] | None:
        """The command that a plain line means, and the words for it; None if it means no plain one.

        Args:
            name: of the command that this module is for.
            words: what was typed after it.
        """
        if self.name != name:
            return (name, words) if name in self.commands else None
        if self.own is not None or not words or words[0] not in self.commands:
            return None
        return words[0], words[1:]


class _Parameters(NamedTuple):
    """The parameters of a command, as far as a plain line can give them.

    Attributes:
        flags: that are given without a value, by what is typed.
        values: that take text.
        words: that are typed by themselves, with whether they may be left out.
        rest: the one that takes all words, or None.
        invocation: the one that is told how the command was called, or None.
    """

    flags: dict[str, str]
    values: dict[str, str]
    words: list[tuple[str, bool]]
    rest: str | None
    invocation: str | None


def read_plain_line(
    function: Callable[..., Any], words: Sequence[str], invocation: Invocation
) -> dict[str, Any] | None:
    """The arguments that a plain command line means.

    Plain is: options that are flags or take text, each once and spelled out, with their values as
    words of their own, and as many other words as there must be.

    Args:
        function: of the command.
        words: what was typed after it.
        invocation: how it was called.

    Returns:
        The arguments by name; None for a line that is not plain, or not right.
    """
    known = _list_parameters(function)
    if known is None:
        return None
    found: dict[str, Any] = {} if known.invocation is None else {known.invocation: invocation}
    alone: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            alone.append(word)
            continue
        flag, option = known.flags.get(word), known.values.get(word)
        value = True if flag else next(waiting, "")
        name = flag or option
        if name is None or name in found or value == "" or str(value).startswith("-"):
            return None
        found[name] = value
    return _fill_words(known, alone, found)


def _fill_words(
    known: _Parameters, alone: list[str], found: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments with the words that stand by themselves; None if they are not as many."""
    if known.rest is not None:
        return {**found, known.rest: alone} if all(alone) else None
    least = sum(not optional for _, optional in known.words)
    if not least <= len(alone) <= len(known.words) or not all(alone):
        return None
    return {**found, **{name: word for (name, _), word in zip(known.words, alone, strict=False)}}


def _list_parameters(function: Callable[..., Any]) -> _Parameters | None:
    """What of a command a plain line can give; None where it can give nothing."""
    flags: dict[str, str] = {}
    values: dict[str, str] = {}
    words: list[tuple[str, bool]] = []
    rest = told = None
    for name, kind, default, declared in list_parameters(function):
        if kind is Invocation:
            told = name
        elif isinstance(declared, Argument) and kind is str:
            words.append((name, default is not ...))
        elif isinstance(declared, Argument) and kind == list[str] | None:
            rest = name
        elif not isinstance(declared, Option) or default is ...:
            return None
        elif declared.settings.keys() <= PLAIN_SETTINGS:
            typed = declared.names or ("--" + name.replace("_", "-"),)
            if kind == str | None:
                values.update(dict.fromkeys(typed, name))
            elif kind is bool and declared.names and default is False:
                flags.update(dict.fromkeys(typed, name))
    if rest is not None and words:
        return None
    return _Parameters(flags, values, words, rest, told)


def list_parameters(function: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """The name, type, default and declaration of each parameter; ``...`` for no default."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    defaults: dict[str, Any] = {**(function.__kwdefaults__ or {})}
    given = function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    defaults.update(zip(last, given, strict=True))
    for name in code.co_varnames[:count]:
        annotation = function.__annotations__[name]
        declared = next(iter(getattr(annotation, "__metadata__", ())), None)
        kind = annotation if declared is None else annotation.__origin__
        yield name, kind, defaults.get(name, ...), declared
