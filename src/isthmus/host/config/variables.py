"""What ``${…}`` stands for in a configuration."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from isthmus.auth.secret import Secret
from isthmus.errors import IsthmusError
from isthmus.host.config.jsonc import Key

__all__ = ["Scope", "Secrets", "Unfilled", "Variables", "secretive", "variables_in"]

PLACE = re.compile(r"\$\{([^}]*)\}")
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
CONFIDENTIAL = re.compile(
    r"(?i)(?:^|[^a-z])(?:pat|pin|dsn)(?:$|[^a-z])"
    r"|token|key|secret|passw|passphrase|_pwd|credential|auth(?!ors?(?:$|[_ -]))|cookie"
)
"""Names of what nobody is to see."""


class Unfilled(ValueError):
    """Something that ``${…}`` names is not there, or names nothing.

    Attributes:
        keys: the way to the text that it stands in.
    """

    def __init__(self, message: str, keys: tuple[Key, ...] = ()) -> None:
        super().__init__(message)
        self.keys = keys


class Secrets(Protocol):
    """Where ``${secret:…}`` is looked up."""

    def get(self, path: str) -> Secret | None:
        """A secret; None where there is none of this name.

        Raises:
            IsthmusError: they cannot be had just now; the message says what to do.
        """
        ...


class Scope(Struct, frozen=True, kw_only=True):
    """What variables are looked up in.

    Attributes:
        environ: the environment.
        secrets: the user's secrets; None where there are none.
        inputs: what ``inputs`` of the file says, by id.
        roots: paths of roots, by name.
        folder: the workspace.
        own: variables that the entry gives its program; they stand in for those that the
            environment does not have.
    """

    environ: Mapping[str, str]
    secrets: Secrets | None = None
    inputs: Mapping[str, Mapping[str, Any]] = {}
    roots: Mapping[str, str] = {}
    folder: str = ""
    own: Mapping[str, str] = {}


class Variables:
    """Fills variables in, and remembers which of what it put in is secret.

    Attributes:
        secrets: what nobody is to see.
        used: the variables that were filled in, by the way to the text that they stand in.

    Args:
        scope: where they are looked up.
    """

    def __init__(self, scope: Scope) -> None:
        self.secrets: list[Secret] = []
        self.used: dict[tuple[Key, ...], list[str]] = {}
        self._scope = scope

    def fill(self, value: Any, *keys: Key) -> Any:
        """A value with its variables filled in, at any depth.

        Args:
            value: plain data.
            keys: the way to it, for messages.

        Raises:
            Unfilled: a variable is not there, or ``${…}`` names none.
        """
        if isinstance(value, dict):
            return {k: self.fill(v, *keys, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v, *keys, i) for i, v in enumerate(value)]
        if not isinstance(value, str):
            return value
        return PLACE.sub(lambda found: self._one(found[0], found[1], keys), value)

    def _one(self, whole: str, inner: str, keys: tuple[Key, ...]) -> str:
        kind, colon, rest = inner.partition(":")
        if colon and kind in KINDS and not rest.startswith("-"):
            find, name = KINDS[kind], rest
        elif inner in FIXED:
            find, name = FIXED[inner], inner
        else:
            find, name = environment, inner
        self.used.setdefault(keys, []).append(whole)
        try:
            found = find(self._scope, name, whole)
        except Unfilled as error:
            raise Unfilled(str(error), keys) from None
        if isinstance(found, Secret):
            self.secrets.append(found)
            return found.reveal()
        return found


def secretive(name: str) -> bool:
    """Whether what has this name is probably a secret."""
    return CONFIDENTIAL.search(name) is not None


def variables_in(value: Any) -> tuple[str, ...]:
    """The variables of the user's that a value names, at any depth, as ``${NAME}`` each.

    Folders and roots are none of them, and a default is left out: it stands in the file.
    """
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return tuple(dict.fromkeys(name for part in parts for name in variables_in(part)))
    found: dict[str, None] = {}
    for inner in PLACE.findall(value) if isinstance(value, str) else ():
        if inner not in FIXED and not inner.startswith("root:"):
            found[f"${{{inner.partition(':-')[0]}}}"] = None
    return tuple(found)


def environment(scope: Scope, name: str, whole: str) -> str | Secret:
    """A variable of the environment, with a default after ``:-``."""
    name, dash, default = name.partition(":-")
    if NAME.fullmatch(name) is None:
        raise Unfilled(f"{whole} is no variable: {KNOWN}")
    if name not in scope.environ and name in scope.own:
        return scope.own[name]  # which stands in the file: no secret of the user's
    if name not in scope.environ and not dash:
        raise Unfilled(f"{whole} is not set; export {name}=…, or write ${{{name}:-default}}")
    if name not in scope.environ:
        return default  # as above
    found = scope.environ[name]
    return Secret(found) if found and secretive(name) else found


def secret(scope: Scope, path: str, whole: str) -> Secret:
    """One of the user's secrets."""
    try:
        found = scope.secrets.get(path) if scope.secrets is not None else None
    except IsthmusError as error:
        raise Unfilled(f"{whole} cannot be had: {error}") from error
    if found is None:
        raise Unfilled(f"{whole} is not there: isthmus config secret set {path}")
    return found


def asked_input(scope: Scope, id: str, whole: str) -> str | Secret:
    """What the user was asked for once; it is kept among the secrets."""
    said = scope.inputs.get(id)
    if said is None:
        there = ", ".join(map(repr, scope.inputs)) or "none"
        raise Unfilled(f"{whole}: the file's inputs have no {id!r} (they have {there})")
    found = scope.secrets.get(f"input/{id}") if scope.secrets is not None else None
    if found is not None:
        return found if said.get("password") is True else found.reveal()
    default = said.get("default")
    if isinstance(default, str) and default:
        return default
    what = said.get("description")
    told = f" ({what})" if isinstance(what, str) else ""
    raise Unfilled(f"{whole}{told} was not given yet: isthmus config secret set input/{id}")


def root(scope: Scope, name: str, whole: str) -> str:
    """The path of a root."""
    if name not in scope.roots:
        there = ", ".join(map(repr, scope.roots)) or "none"
        raise Unfilled(f"{whole}: host.roots has no {name!r} (it has {there})")
    return scope.roots[name]


def user(_scope: Scope, _name: str, whole: str) -> str:
    """A member of the user's account, which a host of one user does not know."""
    raise Unfilled(f"{whole}: who the user is is known to a gateway only; write the value itself")


Find = Callable[[Scope, str, str], "str | Secret"]

KINDS: Mapping[str, Find] = {
    "env": environment,
    "secret": secret,
    "input": asked_input,
    "root": root,
    "user": user,
}
"""``${kind:name}``."""

FIXED: Mapping[str, Find] = {
    "workspaceFolder": lambda scope, _name, _whole: scope.folder,
    "workspaceFolderBasename": lambda scope, _name, _whole: os.path.basename(scope.folder),  # noqa: PTH119 - a text
    "userHome": lambda _scope, _name, _whole: os.path.expanduser("~"),  # noqa: PTH111 - a text
    "pathSeparator": lambda _scope, _name, _whole: os.sep,
    "/": lambda _scope, _name, _whole: os.sep,
}
"""``${name}`` that stands for one thing always."""

KNOWN = (
    "write ${NAME} or ${env:NAME} for the environment, ${NAME:-default}, ${secret:path}, "
    "${input:id}, ${root:name}, ${workspaceFolder} or ${userHome}"
)
