"""Variables of a configuration: ``${NAME}``, ``${secret:…}``, ``${input:…}`` and others, filled in."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.forms import may_name_secret
from isthmus.errors import IsthmusError
from isthmus.host.config.syntax import MemberKey

VARIABLE = re.compile(r"\$\{([^}]*)\}")
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class UnresolvedVariable(ValueError):
    """A variable is not there, or ``${…}`` names none.

    Attributes:
        keys: the way to the text that it stands in.
    """

    def __init__(self, message: str, keys: tuple[MemberKey, ...] = ()) -> None:
        super().__init__(message)
        self.keys = keys


class SecretSource(Protocol):
    """Looks up ``${secret:…}``."""

    def get(self, path: str) -> Secret | None:
        """A secret; None where there is none of this name.

        Raises:
            IsthmusError: they cannot be had just now; the message says what to do.
        """
        ...


class VariableScope(Struct, frozen=True, kw_only=True):
    """The sources in which variables are looked up.

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
    secrets: SecretSource | None = None
    inputs: Mapping[str, Mapping[str, Any]] = {}
    roots: Mapping[str, str] = {}
    folder: str = ""
    own: Mapping[str, str] = {}


class VariableFiller:
    """Fills variables in, and remembers which of its values are secret.

    Attributes:
        secrets: what nobody is to see.
        used: the variables that were filled in, by the way to the text that they stand in.

    Args:
        scope: where they are looked up.
    """

    def __init__(self, scope: VariableScope) -> None:
        self.secrets: list[Secret] = []
        self.used: dict[tuple[MemberKey, ...], list[str]] = {}
        self._scope = scope

    def fill(self, value: Any, *keys: MemberKey) -> Any:
        """Fill variables into a value, at any depth.

        Raises:
            UnresolvedVariable: a variable is not there, or ``${…}`` names none.
        """
        if isinstance(value, dict):
            return {k: self.fill(v, *keys, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v, *keys, i) for i, v in enumerate(value)]
        if not isinstance(value, str):
            return value
        return VARIABLE.sub(lambda found: self._one(found[0], found[1], keys), value)

    def _one(self, whole: str, inner: str, keys: tuple[MemberKey, ...]) -> str:
        kind, colon, rest = inner.partition(":")
        if colon and kind in VARIABLE_KINDS and not rest.startswith("-"):
            find, name = VARIABLE_KINDS[kind], rest
        elif inner in FIXED_VARIABLES:
            find, name = FIXED_VARIABLES[inner], inner
        else:
            find, name = find_environment, inner
        self.used.setdefault(keys, []).append(whole)
        try:
            found = find(self._scope, name, whole)
        except UnresolvedVariable as error:
            raise UnresolvedVariable(str(error), keys) from None
        if isinstance(found, Secret):
            self.secrets.append(found)
            return found.reveal()
        return found


def list_variables(value: Any) -> tuple[str, ...]:
    """List the user's variables in a value, at any depth, as ``${NAME}`` each.

    Folders and roots are none of them, and a default is left out: it stands in the file.
    """
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return tuple(dict.fromkeys(name for part in parts for name in list_variables(part)))
    found: dict[str, None] = {}
    for inner in VARIABLE.findall(value) if isinstance(value, str) else ():
        if inner not in FIXED_VARIABLES and not inner.startswith("root:"):
            found[f"${{{inner.partition(':-')[0]}}}"] = None
    return tuple(found)


def find_environment(scope: VariableScope, name: str, whole: str) -> str | Secret:
    """Find a variable of the environment, with a default after ``:-``."""
    name, dash, default = name.partition(":-")
    if VARIABLE_NAME.fullmatch(name) is None:
        raise UnresolvedVariable(f"{whole} is no variable: {SPELLING_HELP}")
    if name not in scope.environ and name in scope.own:
        return scope.own[name]  # which stands in the file: no secret of the user's
    if name not in scope.environ and not dash:
        raise UnresolvedVariable(
            f"{whole} is not set; export {name}=…, or write ${{{name}:-default}}"
        )
    if name not in scope.environ:
        return default  # as above
    found = scope.environ[name]
    return Secret(found) if found and may_name_secret(name) else found


def find_secret(scope: VariableScope, path: str, whole: str) -> Secret:
    """Find a secret of the user."""
    try:
        found = scope.secrets.get(path) if scope.secrets is not None else None
    except IsthmusError as error:
        raise UnresolvedVariable(f"{whole} cannot be had: {error}") from error
    if found is None:
        raise UnresolvedVariable(f"{whole} is not there: isthmus config secret set {path}")
    return found


def find_input(scope: VariableScope, id: str, whole: str) -> str | Secret:
    """Find an input that the user gave once; it is kept among the secrets."""
    said = scope.inputs.get(id)
    if said is None:
        there = ", ".join(map(repr, scope.inputs)) or "none"
        raise UnresolvedVariable(f"{whole}: the file's inputs have no {id!r} (they have {there})")
    found = scope.secrets.get(f"input/{id}") if scope.secrets is not None else None
    if found is not None:
        return found if said.get("password") is True else found.reveal()
    default = said.get("default")
    if isinstance(default, str) and default:
        return default
    what = said.get("description")
    told = f" ({what})" if isinstance(what, str) else ""
    raise UnresolvedVariable(
        f"{whole}{told} was not given yet: isthmus config secret set input/{id}"
    )


def find_root(scope: VariableScope, name: str, whole: str) -> str:
    """Find the path of a root."""
    if name not in scope.roots:
        there = ", ".join(map(repr, scope.roots)) or "none"
        raise UnresolvedVariable(f"{whole}: host.roots has no {name!r} (it has {there})")
    return scope.roots[name]


def refuse_user(_scope: VariableScope, _name: str, whole: str) -> str:
    """Refuse a member of the user's account, which a host of one user does not know."""
    raise UnresolvedVariable(
        f"{whole}: who the user is is known to a gateway only; write the value itself"
    )


FindVariable = Callable[[VariableScope, str, str], "str | Secret"]

# ${kind:name}
VARIABLE_KINDS: Mapping[str, FindVariable] = {
    "env": find_environment,
    "secret": find_secret,
    "input": find_input,
    "root": find_root,
    "user": refuse_user,
}

# ${name} that always stands for one thing
FIXED_VARIABLES: Mapping[str, FindVariable] = {
    "workspaceFolder": lambda scope, _name, _whole: scope.folder,
    "workspaceFolderBasename": lambda scope, _name, _whole: os.path.basename(scope.folder),  # noqa: PTH119 - a text
    "userHome": lambda _scope, _name, _whole: os.path.expanduser("~"),  # noqa: PTH111 - a text
    "pathSeparator": lambda _scope, _name, _whole: os.sep,
    "/": lambda _scope, _name, _whole: os.sep,
}

SPELLING_HELP = (
    "write ${NAME} or ${env:NAME} for the environment, ${NAME:-default}, ${secret:path}, "
    "${input:id}, ${root:name}, ${workspaceFolder} or ${userHome}"
)
