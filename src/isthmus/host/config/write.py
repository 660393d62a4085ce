"""Writing of configuration files: whole or not at all, and nothing changed that was not to be.

Comments and the order of members stay, in JSON, TOML and YAML.
"""

import copy
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.host.config import syntax
from isthmus.host.config.files import (
    SYNTAXES,
    ConfigDocument,
    digest_bytes,
    parse_document,
    read_bytes,
)
from isthmus.host.config.layouts import find_section, find_servers, get_part
from isthmus.host.config.servers import check_name
from isthmus.host.config.syntax import SyntaxNode
from isthmus.host.config.text_edits import (
    UnknownLayout,
    append_table,
    format_toml,
    format_yaml,
    remove_table,
    remove_yaml_member,
    set_yaml_member,
)
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.errors import ConfigError
from isthmus.store.files import replace_file

SHADOW_KEYS, POLICY_KEYS = ("host", "shadow"), ("host", "policy")
BLANKS = re.compile(r"[ \t]*")


class ConfigFile:
    """A file of a configuration that is to be changed.

    Comments, the order of members and members that nobody knows stay as they are. What somebody
    else wrote meanwhile is never overwritten.

    Example::

        file = ConfigFile("mcp.json")
        file.set(("mcpServers", "time"), {"command": "uvx", "args": ["mcp-server-time"]})
        file.save()

    Args:
        path: which one; one that is not there yet is made, for its owner only.

    Raises:
        ConfigError: it is there, and is no configuration.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self._syntax = SYNTAXES.get(self.path.suffix.lower(), "json")
        self.is_new = not self.path.exists()
        self._data = b"" if self.is_new else read_bytes(self.path)
        is_blank = self._syntax == "json" and not self._data.strip()  # as an editor makes it
        self._text = parse_document(self.path, b"{}\n" if is_blank else self._data).text

    @property
    def document(self) -> ConfigDocument:
        """The document with all changes."""
        return parse_document(self.path, self._text.encode())

    @property
    def text(self) -> str:
        """Its text, with all changes."""
        return self._text

    @property
    def syntax(self) -> str:
        """The language that it is written in: ``json``, ``toml`` or ``yaml``."""
        return self._syntax

    @property
    def original(self) -> bytes:
        """Its bytes as they were read; none of a new one."""
        return self._data

    def set(self, keys: tuple[str, ...], value: Any) -> None:
        """Set the value of a member; the member, and the objects around it, are made where missing.

        Args:
            keys: the names of the members on the way to it, the outermost first.
            value: the new value, as plain data.

        Raises:
            ConfigError: the way to it leads through what is no object, it is written in a way that
                cannot be changed without harm, or tomlkit is missing.
        """
        wanted = _change_data(self.document.value, keys, value)
        if self._syntax == "toml":
            self._accept(_edit_toml(self._text, keys, value, wanted), _drop_none(wanted))
        elif self._syntax == "yaml":
            self._edit_yaml(keys, value, wanted)
        else:
            try:
                self._accept(replace_member(self._text, keys, value), wanted)
            except KeyError as error:
                raise ConfigError(
                    f"{self.path}: {error.args[0] or 'the whole'} is no object, so nothing can be added to it"
                ) from None

    def remove(self, keys: tuple[str, ...]) -> None:
        """Remove a member; nothing happens where there is none.

        Args:
            keys: the names of the members on the way to it, the outermost first.

        Raises:
            ConfigError: it is written in a way that cannot be changed without harm, or tomlkit is
                missing.
        """
        value = self.document.value
        if keys[-1] not in (get_part(value, keys[:-1]) or ()):
            return
        wanted = _change_data(value, keys, None)
        if self._syntax == "toml":
            if not get_part(wanted, keys[:-1]) and f"[{keys[0]}]" not in self._text:
                wanted = _change_data(wanted, keys[:-1], None)  # a table is there by what is in it
            self._accept(_edit_toml(self._text, keys, None, wanted), _drop_none(wanted))
        elif self._syntax == "yaml":
            self._edit_yaml(keys, None, wanted)
        else:
            self._accept(remove_member(self._text, keys), wanted)

    def add_item(self, keys: tuple[str, ...], item: Any) -> None:
        """Put an element at the end of an array of JSON, which is made where there is none.

        Args:
            keys: the names of the members on the way to the array, the outermost first.
            item: the new element, as plain data.

        Raises:
            ConfigError: there is something else.
        """
        value = self.document.value
        part = get_part(value, keys)
        if part is not None and not isinstance(part, list):
            raise ConfigError(f"{self.path}: {'.'.join(keys)} is no list")
        wanted = _change_data(value, keys, [*(part or ()), item])
        self._accept(append_item(self._text, keys, item), wanted)

    def remove_item(self, keys: tuple[str, ...], index: int) -> None:
        """Remove an element of an array of JSON.

        Args:
            keys: the names of the members on the way to the array, the outermost first.
            index: the number of the element, from 0.
        """
        value = self.document.value
        rest = [one for i, one in enumerate(get_part(value, keys)) if i != index]
        self._accept(remove_array_item(self._text, keys, index), _change_data(value, keys, rest))

    def _edit_yaml(self, keys: tuple[str, ...], value: Any, wanted: dict[str, Any]) -> None:
        try:
            text = remove_yaml_member(self._text, keys)
            text = text if value is None else set_yaml_member(text, keys, value)
        except UnknownLayout as error:
            raise ConfigError(
                f"{self.path} cannot be changed without losing its layout: {error}"
            ) from None
        self._accept(text, wanted)

    def _accept(self, text: str, wanted: dict[str, Any]) -> None:
        """Take a new text, if it says what it should.

        Raises:
            ConfigError: it does not; the file has a layout that an edit of its text misreads.
        """
        try:
            said = parse_document(self.path, text.encode()).value
        except (ConfigError, UnicodeEncodeError):
            said = None
        if said != wanted:
            raise ConfigError(f"{self.path} cannot be changed without losing its layout")
        self._text = text

    def restore(self, data: bytes) -> None:
        """Have the bytes that it had once in place of all changes.

        Args:
            data: the contents of the whole file.

        Raises:
            ConfigError: they are no configuration.
        """
        self._text = data.decode()
        if self._syntax != "json" or data.strip():
            parse_document(self.path, data)

    def save(self) -> None:
        """Save the new text in place of the old one.

        Raises:
            ConfigError: somebody else has changed the file meanwhile, or it cannot be written.
        """
        target = self.path.resolve()  # where a link leads, so that the link stays one
        try:
            self._check_unchanged(target)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = self._text.encode()
            replace_file(target, data, as_open=True, check=lambda: self._check_unchanged(target))
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from error
        self._data, self.is_new = data, False

    def _check_unchanged(self, target: Path) -> None:
        """Check that the file is still what was read."""
        try:
            now = digest_bytes(target.read_bytes())
        except FileNotFoundError:
            if self.is_new:
                return
            now = ""
        if self.is_new or now != digest_bytes(self._data):
            raise ConfigError(
                f"{self.path} was changed by another program in the meantime, and was not written: try again"
            )


def add_server(path: str | os.PathLike[str], name: str, value: dict[str, Any]) -> ConfigFile:
    """Write a server into a file.

    Args:
        path: the file; made where there is none.
        name: what the server is called.
        value: its entry, as it stands in ``mcpServers``.

    Raises:
        ConfigError: there is one of this name already, or it cannot be written.
    """
    try:
        check_name(name)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    file = ConfigFile(path)
    section = find_section(file.document)
    if name in (get_part(file.document.value, section) or {}):
        raise ConfigError(
            f"{file.document.place(*section, name)}: there is a server {name!r} already: remove it "
            "first, or use another name"
        )
    file.set((*section, name), value)
    file.save()
    return file


def remove_server(path: str | os.PathLike[str], name: str) -> bool:
    """Remove a server from a file; False where it has none of this name.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    file = ConfigFile(path)
    keys = _find_keys(file.document, name) or (*find_section(file.document), name)
    before = file.text
    file.remove(keys)
    if file.text == before:
        return False
    file.save()
    return True


def set_option(path: str | os.PathLike[str], name: str, option: str, value: Any) -> None:
    """Set an option of isthmus in a server's entry, such as ``enabled``.

    Raises:
        ConfigError: there is no such server in the file, or it cannot be written.
    """
    file = ConfigFile(path)
    keys = _find_keys(file.document, name)
    if not keys:
        raise ConfigError(f"{file.path} has no server {name!r}")
    file.set((*keys, "host", option), value)
    file.save()


class ShadowMember:
    """The member of a configuration that names its shadow policy, and is to become the policy's.

    Args:
        file: which names it.
        config: the whole configuration.
    """

    def __init__(self, file: ConfigFile, config: HostConfig) -> None:
        self._file = file
        self._config = config
        self.path = os.fspath(file.path)
        self.value = str(get_part(file.document.value, SHADOW_KEYS))

    @classmethod
    def find(cls, config: HostConfig) -> "ShadowMember | None":
        """The member that counts; None where no file has one.

        Raises:
            ConfigError: a file cannot be read any more.
        """
        for path in config.sources:
            file = ConfigFile(path)
            if get_part(file.document.value, SHADOW_KEYS):
                return cls(file, config)
        return None

    def spell(self) -> str:
        """The text that names it as the policy, as this file is written."""
        member = {"policy": self.value}
        if self._file.syntax == "toml":
            return format_toml(("host",), member)
        if self._file.syntax == "yaml":
            return format_yaml({"host": member})
        return json.dumps({"host": member}, indent=2, ensure_ascii=False) + "\n"

    def promote(self) -> None:
        """Name it as the policy, in place of the shadow policy; all else stays as it is.

        Raises:
            ConfigError: another file says which policy counts, or the file cannot be written.
        """
        for path in self._config.sources[: self._config.sources.index(self.path)]:
            if self._counts_before(path):
                raise ConfigError(
                    f"{path} names the policy, and counts before {self.path}: change host.policy there"
                )
        self._file.set(POLICY_KEYS, self.value)
        self._file.remove(SHADOW_KEYS)
        self._file.save()

    def _counts_before(self, path: str) -> bool:
        """Whether a file names the user's policy; what other layers name holds beside it."""
        said = get_part(ConfigFile(path).document.value, POLICY_KEYS)
        if not said:
            return False
        policies = self._config.options.policies
        beside = [one for layer, one in policies.items() if layer in {"managed", "workspace"}]
        return all(Path(one).name != Path(str(said)).name for one in beside)


def _find_keys(document: ConfigDocument, name: str) -> tuple[str, ...]:
    """Find the way to a server by its name here; empty where there is none."""
    ways = (raw.keys for raw in find_servers(document) if raw.name == name)
    return tuple(map(str, next(ways, ())))


def _change_data(whole: dict[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Plain data with a member set; None removes it. What an edit of the text is held against."""
    changed = copy.deepcopy(whole)
    part: Any = changed
    for key in keys[:-1]:
        part = part.setdefault(key, {}) if isinstance(part, dict) else part
    if not isinstance(part, dict):
        return changed  # the edit itself says why it cannot be
    if value is None:
        part.pop(keys[-1], None)
    else:
        part[keys[-1]] = value
    return changed


def _edit_toml(text: str, keys: tuple[str, ...], value: Any, wanted: dict[str, Any]) -> str:
    """Replace a member in a text of TOML; None removes it.

    A whole table is a matter of lines; for all else tomlkit is needed.
    """
    if value is None or isinstance(value, dict):
        edited = remove_table(text, keys)
        edited = edited if value is None else append_table(edited, keys, _drop_none(value))
        with suppress(ConfigError):
            if parse_document(Path("a.toml"), edited.encode()).value == _drop_none(wanted):
                return edited
    return _edit_toml_parsed(text, keys, value)


def _edit_toml_parsed(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Replace a member by means of tomlkit."""
    try:
        import tomlkit
    except ImportError:
        raise ConfigError(
            "tomlkit is needed to keep the layout of TOML: pip install 'isthmus[host]'"
        ) from None
    whole = tomlkit.parse(text)
    part: Any = whole
    for key in keys[:-1]:
        if key not in part:
            if value is None:
                return text
            part[key] = tomlkit.table()
        part = part[key]
        if not hasattr(part, "keys"):
            raise ConfigError(f"{key} is no table, so nothing can be added to it")
    if value is not None:
        part[keys[-1]] = _drop_none(value)
    elif keys[-1] in part:
        del part[keys[-1]]
    return tomlkit.dumps(whole)


def _drop_none(value: Any) -> Any:
    """Remove None from plain data: TOML has no word for it."""
    if isinstance(value, dict):
        return {k: _drop_none(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_drop_none(one) for one in value if one is not None]
    return value


def replace_member(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Replace the value of a member; the member, and the objects around it, are made where missing.

    Raises:
        BadSyntax: the text is no JSON.
        KeyError: the way leads through what is no object.
    """
    node = syntax.parse_jsonc(text)
    for depth, key in enumerate(keys):
        if node.members is None:
            raise KeyError(".".join(keys[:depth]))
        member = node.members.get(key)
        if member is None:
            for missing in reversed(keys[depth + 1 :]):
                value = {missing: value}
            return _insert_member(text, node, key, value)
        if depth + 1 < len(keys):
            node = member.node
            continue
        written = _format_value(text, value, _find_indent(text, member.start))
        return text[: member.node.start] + written + text[member.node.end :]
    raise KeyError("")


def remove_member(text: str, keys: tuple[str, ...]) -> str:
    """Remove a member from a text; nothing changes where there is none.

    Raises:
        BadSyntax: the text is no JSON.
    """
    node = syntax.parse_jsonc(text)
    found = syntax.find_node(node, keys[:-1])
    members = found[1].members if found else None
    if not members or keys[-1] not in members:
        return text
    names = list(members)
    at = names.index(keys[-1])
    member = members[keys[-1]]
    before = members[names[at - 1]].node if at else None
    return _cut_part(text, member.start, member.node.end, before)


def append_item(text: str, keys: tuple[str, ...], item: Any) -> str:
    """Put an element at the end of an array, which is made where there is none.

    Raises:
        BadSyntax: the text is no JSON.
    """
    found = syntax.find_node(syntax.parse_jsonc(text), keys)
    items = found[1].items if found else None
    if found is None or not items:
        return replace_member(text, keys, [item])
    node, last = found[1], items[-1]
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = _find_indent(text, last.start)
    apart = f"{newline}{indent}" if "\n" in text[node.start : last.start] else " "
    comma = syntax.skip_trivia(text, last.end)
    trailing = text[comma : comma + 1] == ","
    after = comma + 1 if trailing else last.end
    written = f"{apart}{_format_value(text, item, indent)}{',' if trailing else ''}"
    return f"{text[:after]}{'' if trailing else ','}{written}{text[after:]}"


def remove_array_item(text: str, keys: tuple[str, ...], index: int) -> str:
    """Remove an element of an array; nothing changes where there is none.

    Raises:
        BadSyntax: the text is no JSON.
    """
    found = syntax.find_node(syntax.parse_jsonc(text), keys)
    items = (found[1].items if found else None) or []
    if not 0 <= index < len(items):
        return text
    before = items[index - 1] if index else None
    return _cut_part(text, items[index].start, items[index].end, before)


def _cut_part(text: str, start: int, end: int, before: SyntaxNode | None) -> str:
    """Cut a member or an element out, with one comma."""
    start = _find_line_start(text, start)
    comma = syntax.skip_trivia(text, end)
    if text[comma : comma + 1] == ",":
        # what stands between the value and its comma is a comment of somebody's, and stays
        return _join_parts(text[:start], text[end:comma], text[comma + 1 :])
    if before is not None:  # the last one: the comma before it goes
        gone = syntax.skip_trivia(text, before.end)
        return _join_parts(text[:gone] + text[gone + 1 : start], "", text[end:])
    return _join_parts(text[:start], "", text[end:])


def _join_parts(head: str, middle: str, tail: str) -> str:
    """Join what is left of a text, without a line that has become empty."""
    if not middle.strip() and (head.endswith("\n") or not head):
        rest = BLANKS.match(tail)
        cut = rest.end() if rest else 0
        for ending in ("\r\n", "\n"):
            if tail.startswith(ending, cut):
                return head + tail[cut + len(ending) :]
    return head + middle + tail


def _insert_member(text: str, node: SyntaxNode, key: str, value: Any) -> str:
    members = list((node.members or {}).values())
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _find_indent(text, node.start)
    unit = _find_indent_unit(text)
    if not members:
        inner = outer + unit
        body = f"{newline}{inner}{json.dumps(key, ensure_ascii=False)}: {_format_value(text, value, inner)}"
        inside = text[node.start + 1 : node.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        return f"{text[: node.start + 1]}{kept}{body}{newline}{outer}{text[node.end - 1 :]}"
    last = members[-1]
    # The member that stands last in the text, which a doubled name may have moved to.
    last = max(members, key=lambda one: one.node.end)
    comma = syntax.skip_trivia(text, last.node.end)
    trailing = text[comma : comma + 1] == ","
    apart = "\n" in text[node.start : last.start]
    inner = _find_indent(text, last.start)
    entry = f"{json.dumps(key, ensure_ascii=False)}: {_format_value(text, value, inner)}"
    if not apart:
        after = comma + 1 if trailing else last.node.end
        return f"{text[:after]}{'' if trailing else ','} {entry}{text[after:]}"
    if not trailing:
        text = f"{text[: last.node.end]},{text[last.node.end :]}"
    closing = node.end - 1 + (not trailing)
    end = len(text[:closing].rstrip())
    tail = "," if trailing else ""
    return f"{text[:end]}{newline}{inner}{entry}{tail}{_make_tail(text[end:closing], newline, outer)}{text[closing:]}"


def _make_tail(blank: str, newline: str, outer: str) -> str:
    """The blanks before the closing brace: as they were, if it has a line of its own."""
    return blank if "\n" in blank else f"{newline}{outer}"


def _find_line_start(text: str, offset: int) -> int:
    """The start of the line, if only blanks stand before the offset; the offset otherwise."""
    start = text.rfind("\n", 0, offset) + 1
    return start if not text[start:offset].strip() else offset


def _find_indent(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    found = BLANKS.match(text, start)
    return found[0] if found else ""


def _find_indent_unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _format_value(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_find_indent_unit(text)).split("\n")
    return ("\r\n" if "\r\n" in text else "\n").join(
        [lines[0], *(f"{indent}{line}" for line in lines[1:])]
    )
