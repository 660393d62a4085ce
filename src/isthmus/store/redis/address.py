"""Address of a Redis or Valkey server: what the URL in ``store=`` says."""

import msgspec

from isthmus.errors import UsageError

DEFAULT_PREFIX = "isthmus:"

DEFAULT_PORT = 6379

MAX_PREFIX_CHARS = 100

TLS_OPTIONS = {"ssl_ca_certs": "ca", "ssl_certfile": "certificate", "ssl_keyfile": "key"}

OPTIONS = {"prefix", "db", "username", "password", *TLS_OPTIONS}


class RedisAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is, who we are there, and what our keys begin with.

    Attributes:
        name: the URL without its password, for messages.
        host: the machine; empty for a Unix socket.
        port: on it.
        path: of a Unix socket; empty for TCP.
        db: the number of the database.
        username: ours; empty for the default user.
        password: ours; empty for none.
        tls: whether the connection is encrypted.
        ca: a file with certificates to trust instead of the system's.
        certificate: a file with our own certificate.
        key: the file with the key of that.
        prefix: what all our keys and channels begin with.
    """

    name: str
    host: str = ""
    port: int = DEFAULT_PORT
    path: str = ""
    db: int = 0
    username: str = ""
    password: str = msgspec.field(default="")
    tls: bool = False
    ca: str = ""
    certificate: str = ""
    key: str = ""
    prefix: str = DEFAULT_PREFIX

    def __repr__(self) -> str:
        return f"RedisAddress({self.name!r})"  # the password belongs in no log


def parse_redis_url(url: str) -> RedisAddress:
    """Read an address.

    Args:
        url: ``redis://USER:PASSWORD@HOST:PORT/DB?prefix=NAME:``, ``rediss://…`` for TLS,
            ``unix://USER:PASSWORD@/PATH?db=DB``, or the same with ``valkey`` and ``valkeys``.

    Raises:
        UsageError: it says something else; the message does not show the password.
    """
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        is_whole = not parts.fragment and "@" not in parts.path + parts.query
    except ValueError:
        is_whole = False
    if not is_whole:  # what stands where may be a part of a password, and must not be shown
        raise UsageError(
            "the URL of the Redis store cannot be read: write redis://HOST:6379/0, and in a "
            "password write %40 for @, %3A for :, %2F for /, %3F for ? and %23 for #"
        )
    _check_options(options, tls := parts.scheme in {"rediss", "valkeys"})
    unix = parts.scheme == "unix"
    username = unquote(parts.username or "") or options.get("username", "")
    password = unquote(parts.password or "") or options.get("password", "")
    host, path = parts.hostname or "", unquote(parts.path)
    if unix and (host or not path.startswith("/")):
        raise UsageError("a Unix socket has a whole path: write unix:///run/redis/redis.sock")
    db = _parse_db(options.get("db", "0") if unix else path.strip("/") or options.get("db", "0"))
    prefix = _check_prefix(options.get("prefix", DEFAULT_PREFIX))
    host = "" if unix else host or "localhost"
    place = path if unix else f"{f'[{host}]' if ':' in host else host}:{port}/{db}"
    shown = [f"db={db}"] if unix and db else []
    shown += [f"prefix={prefix}"] if prefix != DEFAULT_PREFIX else []
    user = f"{username}@" if username else ""
    return RedisAddress(
        name=f"{parts.scheme}://{user}{place}{'?' if shown else ''}{'&'.join(shown)}",
        host=host,
        port=port,
        path=path if unix else "",
        db=db,
        username=username,
        password=password,
        tls=tls,
        prefix=prefix,
        **{field: options[option] for option, field in TLS_OPTIONS.items() if option in options},
    )


def _check_options(options: dict[str, str], tls: bool) -> None:
    known = OPTIONS if tls else OPTIONS - set(TLS_OPTIONS)
    for option in options:
        if option in TLS_OPTIONS and not tls:
            raise UsageError(f"{option} is for an encrypted connection: write rediss://…")
        if option not in known:
            raise UsageError(
                f"the URL of the Redis store has an option {option!r}, and there are only "
                f"{', '.join(sorted(known))}"
            )


def _parse_db(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise UsageError(f"a database of Redis has a number, as in redis://HOST:6379/0, not {text}")
    return int(text)


def _check_prefix(prefix: str) -> str:
    """A prefix that no other prefix can pretend to be: our own keys go on with a letter and ``/``."""
    plain = prefix.isascii() and prefix.isprintable() and not set(prefix) & set("/{} ")
    if not plain or not 0 < len(prefix) <= MAX_PREFIX_CHARS:
        raise UsageError(
            f"prefix={prefix!r} is no prefix for keys: write up to {MAX_PREFIX_CHARS} ASCII "
            "characters without spaces, braces and slashes, such as 'acme:'"
        )
    return prefix
