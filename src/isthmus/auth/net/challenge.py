"""Challenges: the header ``WWW-Authenticate``, read and written as RFC 9110 11.6.1 has it.

A server's challenge says what a client has to bring. It is read by its grammar and never by a
pattern: what stands within quotes is a text and no parameter, so that
``error_description="x, scope=admin"`` asks for no scope.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

MAX_CHALLENGE_CHARS = 16 * 1024
MAX_CHALLENGES = 32
TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - the grammar's word, no password
SCHEME = re.compile(rf"({TOKEN})(?: +|(?=[\t,]|$))")
PARAM = re.compile(
    rf'({TOKEN})[ \t]*=[ \t]*(?:({TOKEN})|"((?:[^"\\]|\\.)*)")[ \t]*(?=,|$)', re.DOTALL
)
TOKEN68 = re.compile(r"([A-Za-z0-9\-._~+/]+=*)[ \t]*(?=,|$)")
BREAK = re.compile(r"[ \t,]*")
NAME = re.compile(TOKEN)
WRITABLE = re.compile(r"[\t\x20-\x7e]*")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
PIECE = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.|\\$)*(?:"|$))*', re.DOTALL)


class Challenge(msgspec.Struct, frozen=True):
    """A challenge: a way that a server offers to authenticate.

    Attributes:
        scheme: its name in lower case: ``bearer``, ``dpop``, ``basic``.
        params: its parameters by their names in lower case. Of one that comes twice, which the
            grammar forbids, the first counts.
        token68: what stands instead of parameters in some schemes, or None.
    """

    scheme: str
    params: Mapping[str, str] = {}
    token68: str | None = None

    @property
    def scopes(self) -> frozenset[str] | None:
        """The scopes of its ``scope`` parameter; None where it has none (RFC 6750 3)."""
        scope = self.params.get("scope")
        return None if scope is None else frozenset(scope.split(" ")) - {""}


def parse_challenges(values: Iterable[str]) -> list[Challenge]:
    """Every challenge in the values of ``WWW-Authenticate``, in their order.

    What is no challenge is passed over; nothing raises.

    Args:
        values: the header's values, one for each line that it had.

    Example::

        >>> parse_challenges(['Bearer realm="x", scope="a b", Basic realm="y"'])[1].params
        {'realm': 'y'}
    """
    found = [
        challenge for value in values for challenge in _read_challenges(value[:MAX_CHALLENGE_CHARS])
    ]
    return found[:MAX_CHALLENGES]


def _read_challenges(value: str) -> Iterator[Challenge]:
    """The challenges of one line: a name begins one, and a parameter belongs to the last."""
    scheme, params, token68 = "", dict[str, str](), None
    at = 0
    while at < len(value):
        at = _skip_match(BREAK, value, at)
        begins = None if PARAM.match(value, at) else SCHEME.match(value, at)
        if begins is not None:
            if scheme:
                yield Challenge(scheme, params, token68)
            scheme, params, token68 = begins[1].lower(), {}, None
            at = begins.end()
        param = PARAM.match(value, at)
        if param is not None:
            if len(params) < MAX_CHALLENGES:
                params.setdefault(param[1].lower(), _unquote_value(param))
            at = param.end()
        elif begins is not None and (whole := TOKEN68.match(value, at)):
            token68 = whole[1]
            at = whole.end()
        else:  # nonsense, up to the next comma that is not within quotes
            at = _skip_match(PIECE, value, at)
    if scheme:
        yield Challenge(scheme, params, token68)


def _skip_match(pattern: re.Pattern[str], value: str, at: int) -> int:
    found = pattern.match(value, at)
    return at if found is None else found.end()


def _unquote_value(param: re.Match[str]) -> str:
    """A parameter's value, without quotes and what escapes them."""
    return param[2] if param[2] is not None else ESCAPED.sub(r"\1", param[3])


def write_challenge(scheme: str, params: Mapping[str, Any]) -> str:
    """A value of ``WWW-Authenticate``.

    Args:
        scheme: its name, as it is to be spelt.
        params: parameters in their order; those that are None are left out.

    Raises:
        ValueError: a name is no token, or a value has what no header may carry: control
            characters, or any outside ASCII.

    Example::

        >>> write_challenge("Bearer", {"error": "invalid_token", "scope": None})
        'Bearer error="invalid_token"'
    """
    if not NAME.fullmatch(scheme):
        raise ValueError(f"{scheme!r} is no name of a scheme")
    written = [
        _write_param(name, str(value)) for name, value in params.items() if value is not None
    ]
    return f"{scheme} {', '.join(written)}" if written else scheme


def _write_param(name: str, value: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a parameter")
    # A line break would end the header and begin one of the caller's own.
    if not WRITABLE.fullmatch(value):
        raise ValueError(f"the value of {name} has characters that no header carries: {value!r}")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'
