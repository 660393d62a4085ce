"""Where each part of a configuration comes from, and what it became; without a secret in it."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.host.config.entries import ServerEntry, ServerOptions
from isthmus.host.config.jsonc import Key
from isthmus.host.config.load import Loaded, dotted
from isthmus.host.config.variables import PLACE, secretive
from isthmus.host.errors import ConfigError

__all__ = ["Line", "explain", "hidden", "overview"]

HIDDEN = "[secret]"
CARRIERS = frozenset(
    {
        "--token",
        "--api-key",
        "--apikey",
        "--key",
        "--password",
        "--secret",
        "--auth",
        "--header",
        "-H",
    }
)
"""Options whose value is a secret, however they are called here and there."""

SCHEMES = frozenset({"", "bearer", "basic", "token", "apikey", "key"})
"""Words before a credential that say how it is used, and nothing of it."""

NAMES = ("env_http_headers", "env_vars", "env_keys", "bearer_token_env_var")
"""Members of other programs that name variables, and have no value of one."""


class Line(Struct, frozen=True):
    """One member, as a person is shown it.

    Attributes:
        name: which.
        value: as the file has it, secrets hidden; what holds by default otherwise.
        place: where it stands; ``default`` where nobody says it.
    """

    name: str
    value: str
    place: str


def explain(loaded: Loaded, name: str) -> list[Line]:
    """A server, a line for each of its members.

    Args:
        loaded: the configuration.
        name: which server.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in loaded.origins:
        there = ", ".join(sorted(loaded.origins)) or "none"
        raise ConfigError(f"there is no server {name!r}; there are: {there}")
    document, keys = loaded.origins[name]
    layer = next((layer for layer, one in loaded.documents if one is document), "")
    found = [Line("layer", str(layer), str(document.path))]
    if name in loaded.config.broken:
        found.append(Line("broken", loaded.config.broken[name], document.place(*keys)))
    part: Any = document.value
    for key in keys:
        part = part[key]
    if isinstance(part, dict):
        for member, value in part.items():
            if member != "host":
                found += (
                    Line(dotted(way), text, document.place(*keys, *way))
                    for way, text in _leaves((member,), value)
                )
    entry = loaded.config.servers.get(name)
    if entry is not None:
        if not entry.trusted:
            found.append(
                Line("trusted", "no: nothing is started or filled in", "isthmus config trust")
            )
        found += _options(loaded, name, entry)
    return found


def overview(entry: ServerEntry) -> str:
    """A server in one line: its command or address, without secrets."""
    from isthmus.host.install import masked
    from isthmus.transports.http.address import shown

    if entry.url:
        return shown(entry.url)
    return " ".join(_argument(masked(entry), i) for i in range(len(entry.command)))


def hidden(entry: Any) -> Any:
    """An entry as it stands in a file, without what is secret in it."""
    found = dict(entry)
    for part in ("env", "headers"):
        if isinstance(found.get(part), dict):
            found[part] = {
                k: _shown((part, k), v) if isinstance(v, str) else v for k, v in found[part].items()
            }
    host = found.get("host")
    if isinstance(host, dict) and isinstance(host.get("auth"), dict):
        auth = {k: _within_auth(k, v) for k, v in host["auth"].items()}
        found["host"] = {**host, "auth": auth}
    if isinstance(found.get("args"), list):
        words = [str(one) for one in found["args"]]
        found["args"] = [_argument(words, i) for i in range(len(words))]
    if isinstance(found.get("url"), str):
        found["url"] = _shown(("url",), found["url"])
    return found


def _within_auth(key: str, value: Any) -> Any:
    """A member of ``host.auth``; what is no name of something is hidden at any depth."""
    if isinstance(value, dict):
        return {k: _within_auth(k, v) for k, v in value.items()}
    if isinstance(value, list) and secretive(key):
        return [_within_auth(key, one) for one in value]
    return _shown(("auth", key), value) if isinstance(value, str) else value


def _options(loaded: Loaded, name: str, entry: ServerEntry) -> Iterator[Line]:
    """The options of ours, those too that nobody has set."""
    document, keys = loaded.origins[name]
    said: Any = document.value
    for key in (*keys, "host"):
        said = said.get(key, {}) if isinstance(said, dict) else {}
    # auth as it stands in the file, its variables not filled in
    plain = {**msgspec.to_builtins(entry.options), "auth": said.get("auth", {})}
    usual = dict(_leaves_of(msgspec.to_builtins(ServerOptions())))
    for field in msgspec.structs.fields(ServerOptions):
        word = field.encode_name
        for way, text in _leaves((word,), plain[word]):
            there = said
            for key in way:
                there = there.get(key) if isinstance(there, dict) else None
            stands = there is not None or (word in said and not isinstance(said[word], dict))
            place = document.place(*keys, "host", *way) if stands else "default"
            if not stands and usual.get(way) != text:
                place = document.place(*keys)  # another program's word for it
            yield Line(f"host.{dotted(way)}", text, place)


def _leaves_of(whole: dict[str, Any]) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Every part of an object that is no object."""
    for key, value in whole.items():
        yield from _leaves((key,), value)


def _leaves(way: tuple[Key, ...], value: Any) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Every part of a value that is no object, with secrets hidden."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _leaves((*way, key), one)
    elif isinstance(value, list | tuple) and way[0] == "args":
        words = [str(one) for one in value]
        yield way, json.dumps([_argument(words, i) for i in range(len(words))], ensure_ascii=False)
    else:
        yield way, _shown(way, value)


def _shown(way: tuple[Key, ...], value: Any) -> str:
    """One value; what is secret by its place or its name is hidden, variables stay as they stand."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if way[0] in {"url", "serverUrl", "httpUrl"}:
        from isthmus.transports.http.address import shown

        return text if PLACE.search(text) else shown(text)
    if way[0] not in NAMES and isinstance(value, str) and secretive(str(way[-1])):
        return _hidden(text)
    return _redacted(text)


def _argument(words: Any, at: int) -> str:
    """One argument of a command; the value of ``--token`` and the like is hidden."""
    word: str = words[at]
    name, equals, value = word.partition("=")
    if equals and (name in CARRIERS or (name.startswith("-") and secretive(name))):
        return f"{name}={_hidden(value)}"
    before = words[at - 1] if at else ""
    if (
        before.startswith("-")
        and "=" not in before
        and not word.startswith("-")
        and (before in CARRIERS or secretive(before))
    ):
        return _hidden(word)
    if "://" in word:
        from isthmus.transports.http.address import shown

        return word if PLACE.search(word) else shown(word)
    return _redacted(word)


def _hidden(text: str) -> str:
    """Nothing of a text but the variables in it, which name where it comes from."""
    variables = [found[0] for found in PLACE.finditer(text) if ":-" not in found[0]]
    if variables and PLACE.sub("", text).strip(" ").lower() in SCHEMES:
        return text
    return "".join(variables) + HIDDEN if text else ""


def _redacted(text: str) -> str:
    from isthmus.auth.redaction import redact

    return redact(text)
