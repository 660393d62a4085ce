"""Explanation of a configuration: the source and the value of each member, without secrets."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.core.redaction.forms import may_name_secret
from isthmus.core.redaction.lines import redact_log
from isthmus.host.config.load import LoadedConfig, format_keys
from isthmus.host.config.syntax import MemberKey
from isthmus.host.config.variables import VARIABLE
from isthmus.host.model.entries import ServerEntry, ServerOptions, mask_command
from isthmus.host.model.errors import ConfigError

HIDDEN_VALUE = "[secret]"
# options whose value is a secret
SECRET_FLAGS = frozenset(
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

# words before a credential that say how it is used, and nothing of it
CREDENTIAL_SCHEMES = frozenset({"", "bearer", "basic", "token", "apikey", "key"})

# members of other programs that name variables, and hold no value of one
VARIABLE_NAME_MEMBERS = ("env_http_headers", "env_vars", "env_keys", "bearer_token_env_var")


class ExplainedMember(Struct, frozen=True):
    """One member as a person is shown it.

    Attributes:
        name: which.
        value: as the file has it, secrets hidden; what holds by default otherwise.
        place: where it stands; ``default`` where nobody says it.
    """

    name: str
    value: str
    place: str


def explain_server(loaded: LoadedConfig, name: str) -> list[ExplainedMember]:
    """Explain a server, a line for each of its members.

    Raises:
        ConfigError: there is none of this name.
    """
    if name not in loaded.origins:
        there = ", ".join(sorted(loaded.origins)) or "none"
        raise ConfigError(f"there is no server {name!r}; there are: {there}")
    document, keys = loaded.origins[name]
    layer = next((layer for layer, one in loaded.documents if one is document), "")
    found = [ExplainedMember("layer", str(layer), str(document.path))]
    if name in loaded.config.broken:
        found.append(ExplainedMember("broken", loaded.config.broken[name], document.place(*keys)))
    part: Any = document.value
    for key in keys:
        part = part[key]
    if isinstance(part, dict):
        for member, value in part.items():
            if member != "host":
                found += (
                    ExplainedMember(format_keys(way), text, document.place(*keys, *way))
                    for way, text in _walk_leaves((member,), value)
                )
    entry = loaded.config.servers.get(name)
    if entry is not None:
        if not entry.trusted:
            found.append(
                ExplainedMember(
                    "trusted", "no: nothing is started or filled in", "isthmus config trust"
                )
            )
        found += _explain_options(loaded, name, entry)
    return found


def describe_server(entry: ServerEntry) -> str:
    """Describe a server in one line: its command or address, without secrets."""
    from isthmus.transports.http.client.address import redact_url

    if entry.url:
        return redact_url(entry.url)
    return " ".join(_mask_argument(mask_command(entry), i) for i in range(len(entry.command)))


def mask_entry(entry: Any) -> Any:
    """Mask what is secret in an entry of a file."""
    found = dict(entry)
    for part in ("env", "headers"):
        if isinstance(found.get(part), dict):
            found[part] = {
                k: _mask_value((part, k), v) if isinstance(v, str) else v
                for k, v in found[part].items()
            }
    host = found.get("host")
    if isinstance(host, dict) and isinstance(host.get("auth"), dict):
        auth = {k: _mask_auth(k, v) for k, v in host["auth"].items()}
        found["host"] = {**host, "auth": auth}
    if isinstance(found.get("args"), list):
        words = [str(one) for one in found["args"]]
        found["args"] = [_mask_argument(words, i) for i in range(len(words))]
    if isinstance(found.get("url"), str):
        found["url"] = _mask_value(("url",), found["url"])
    return found


def _mask_auth(key: str, value: Any) -> Any:
    """Mask a member of ``host.auth`` at any depth."""
    if isinstance(value, dict):
        return {k: _mask_auth(k, v) for k, v in value.items()}
    if isinstance(value, list) and may_name_secret(key):
        return [_mask_auth(key, one) for one in value]
    return _mask_value(("auth", key), value) if isinstance(value, str) else value


def _explain_options(
    loaded: LoadedConfig, name: str, entry: ServerEntry
) -> Iterator[ExplainedMember]:
    """Explain the options of isthmus, unset ones too."""
    document, keys = loaded.origins[name]
    said: Any = document.value
    for key in (*keys, "host"):
        said = said.get(key, {}) if isinstance(said, dict) else {}
    # auth as it stands in the file, its variables not filled in
    plain = {**msgspec.to_builtins(entry.options), "auth": said.get("auth", {})}
    usual = dict(_walk_members(msgspec.to_builtins(ServerOptions())))
    for field in msgspec.structs.fields(ServerOptions):
        word = field.encode_name
        for way, text in _walk_leaves((word,), plain[word]):
            there = said
            for key in way:
                there = there.get(key) if isinstance(there, dict) else None
            stands = there is not None or (word in said and not isinstance(said[word], dict))
            place = document.place(*keys, "host", *way) if stands else "default"
            if not stands and usual.get(way) != text:
                place = document.place(*keys)  # another program's word for it
            yield ExplainedMember(f"host.{format_keys(way)}", text, place)


def _walk_members(whole: dict[str, Any]) -> Iterator[tuple[tuple[MemberKey, ...], str]]:
    for key, value in whole.items():
        yield from _walk_leaves((key,), value)


def _walk_leaves(
    way: tuple[MemberKey, ...], value: Any
) -> Iterator[tuple[tuple[MemberKey, ...], str]]:
    """Yield every part of a value that is no object, masked."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _walk_leaves((*way, key), one)
    elif isinstance(value, list | tuple) and way[0] == "args":
        words = [str(one) for one in value]
        yield (
            way,
            json.dumps([_mask_argument(words, i) for i in range(len(words))], ensure_ascii=False),
        )
    else:
        yield way, _mask_value(way, value)


def _mask_value(way: tuple[MemberKey, ...], value: Any) -> str:
    """Mask a value that is secret by its place or its name; variables stay as they stand."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if way[0] in {"url", "serverUrl", "httpUrl"}:
        from isthmus.transports.http.client.address import redact_url

        return text if VARIABLE.search(text) else redact_url(text)
    if (
        way[0] not in VARIABLE_NAME_MEMBERS
        and isinstance(value, str)
        and may_name_secret(str(way[-1]))
    ):
        return _hide_text(text)
    return _redact_text(text)


def _mask_argument(words: Any, at: int) -> str:
    """Mask one argument of a command, such as the value of ``--token``."""
    word: str = words[at]
    name, equals, value = word.partition("=")
    if equals and (name in SECRET_FLAGS or (name.startswith("-") and may_name_secret(name))):
        return f"{name}={_hide_text(value)}"
    before = words[at - 1] if at else ""
    if (
        before.startswith("-")
        and "=" not in before
        and not word.startswith("-")
        and (before in SECRET_FLAGS or may_name_secret(before))
    ):
        return _hide_text(word)
    if "://" in word:
        from isthmus.transports.http.client.address import redact_url

        return word if VARIABLE.search(word) else redact_url(word)
    return _redact_text(word)


def _hide_text(text: str) -> str:
    """Hide a text but for its variables, which name where it comes from."""
    variables = [found[0] for found in VARIABLE.finditer(text) if ":-" not in found[0]]
    if variables and VARIABLE.sub("", text).strip(" ").lower() in CREDENTIAL_SCHEMES:
        return text
    return "".join(variables) + HIDDEN_VALUE if text else ""


def _redact_text(text: str) -> str:
    return redact_log(text)
