"""Writing of configuration files: whole or not at all, and nothing changed that was not to be."""

import os
from pathlib import Path
from typing import Any

from isthmus.host.config import editing
from isthmus.host.config.files import ConfigDocument, digest_bytes, parse_document, read_document
from isthmus.host.config.layouts import find_section, find_servers
from isthmus.host.config.servers import check_name
from isthmus.host.model.errors import ConfigError
from isthmus.store.files import replace_file

__all__ = ["ConfigFile", "add_server", "remove_server", "set_option"]


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
        if self.path.suffix.lower() in {".yaml", ".yml"}:
            raise ConfigError(f"{self.path} is YAML, which isthmus reads and does not write")
        self.is_new = not self.path.exists()
        if self.is_new:
            toml = self.path.suffix.lower() == ".toml"
            self._document = parse_document(self.path, b"" if toml else b"{}\n")
        else:
            self._document = read_document(self.path)
        self._text = self._document.text

    @property
    def document(self) -> ConfigDocument:
        """The document with all changes."""
        return parse_document(self.path, self._text.encode())

    @property
    def text(self) -> str:
        """Its text, with all changes."""
        return self._text

    def set(self, keys: tuple[str, ...], value: Any) -> None:
        """Give a member another value; it, and what it is in, is made where it is not.

        Raises:
            ConfigError: the way to it leads through what is no object, or tomlkit is missing.
        """
        if self.path.suffix.lower() == ".toml":
            self._text = _edit_toml(self._text, keys, value)
            return
        try:
            self._text = editing.replace_member(self._text, keys, value)
        except KeyError as error:
            raise ConfigError(
                f"{self.path}: {error.args[0] or 'the whole'} is no object, so that nothing can be put into it"
            ) from None

    def remove(self, keys: tuple[str, ...]) -> None:
        """Take a member out; nothing happens where there is none.

        Raises:
            ConfigError: tomlkit is missing.
        """
        if self.path.suffix.lower() == ".toml":
            self._text = _edit_toml(self._text, keys, None)
        else:
            self._text = editing.remove_member(self._text, keys)

    def save(self) -> None:
        """Put the new text in the place of the old one.

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
        self._document, self.is_new = self.document, False

    def _check_unchanged(self, target: Path) -> None:
        """Check that the file is still what was read."""
        try:
            now = digest_bytes(target.read_bytes())
        except FileNotFoundError:
            if self.is_new:
                return
            now = ""
        if self.is_new or now != self._document.digest:
            raise ConfigError(
                f"{self.path} was changed by somebody else meanwhile, and is left as it is: try again"
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
    part: Any = file.document.value
    for key in section:
        part = part.get(key, {}) if isinstance(part, dict) else {}
    if name in part:
        raise ConfigError(
            f"{file.document.place(*section, name)}: there is a server {name!r} already: remove it "
            "first, or use another name"
        )
    file.set((*section, name), value)
    file.save()
    return file


def remove_server(path: str | os.PathLike[str], name: str) -> bool:
    """Take a server out of a file; False where it has none of this name.

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
    """Write an option of ours into a server's entry, such as ``enabled``.

    Raises:
        ConfigError: there is no such server in the file, or it cannot be written.
    """
    file = ConfigFile(path)
    keys = _find_keys(file.document, name)
    if not keys:
        raise ConfigError(f"{file.path} has no server {name!r}")
    file.set((*keys, "host", option), value)
    file.save()


def _find_keys(document: ConfigDocument, name: str) -> tuple[str, ...]:
    """Find the way to a server by its name here; empty where there is none."""
    ways = (raw.keys for raw in find_servers(document) if raw.name == name)
    return tuple(map(str, next(ways, ())))


def _edit_toml(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Replace a member in a text of TOML; None removes it."""
    try:
        import tomlkit
    except ImportError:
        raise ConfigError(
            "to write TOML as it was read, tomlkit is needed: pip install 'isthmus[host]'"
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
            raise ConfigError(f"{key} is no table, so that nothing can be put into it")
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
