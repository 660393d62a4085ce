"""Which proxy a request goes through, as the environment has it."""

from base64 import b64encode
from typing import Any

import msgspec

from isthmus.errors import ConnectionLost

__all__ = ["Proxy", "proxy_for"]

SCHEMES = ("http://", "https://")


class Proxy(msgspec.Struct, frozen=True):
    """A proxy to go through.

    Attributes:
        url: where it is, without credentials.
        credentials: what ``Proxy-Authorization`` shall say, or None.
    """

    url: str
    credentials: str | None = None


def proxy_for(url: str, setting: bool | str) -> Proxy | None:
    """The proxy for a URL, or None for the direct way.

    The environment is asked as other programs do it: ``HTTPS_PROXY`` or ``HTTP_PROXY`` by the
    URL's scheme, in either case of letters, and ``NO_PROXY`` for exceptions. What runs on this
    machine is never asked for through a proxy of the environment.

    Args:
        url: what is asked for.
        setting: True asks the environment, False goes the direct way, a URL names the proxy.

    Raises:
        ConnectionLost: the proxy is of a kind that cannot be used.
    """
    if setting is False:
        return None
    from urllib.parse import unquote, urlsplit  # has been imported by the HTTP client already

    named, source = (setting, "proxy=") if isinstance(setting, str) else from_environment(url)
    if not named:
        return None
    if "://" not in named:
        named = f"http://{named}"
    if not named.lower().startswith(SCHEMES):
        kind = named.partition(":")[0]
        raise ConnectionLost(
            f"{source} names a {kind} proxy, and only http:// and https:// proxies can be used: "
            "name another one, or pass proxy=False to go without"
        )
    parts = urlsplit(named)
    place = parts.netloc.rpartition("@")[2]
    if parts.username is None:
        return Proxy(f"{parts.scheme}://{place}")
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(f"{parts.scheme}://{place}", f"Basic {b64encode(pair.encode()).decode()}")


def from_environment(url: str) -> tuple[str, str]:
    """The proxy the environment names for a URL, empty for none, and the variable it is in."""
    from urllib import request  # both have been imported by the HTTP client already
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies: dict[str, str] = request.getproxies_environment()
    excepted: Any = request.proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it
    if local(host) or excepted(parts.netloc.rpartition("@")[2], proxies):
        return "", ""
    return proxies.get(parts.scheme, ""), f"{parts.scheme.upper()}_PROXY"


def local(host: str) -> bool:
    """Whether a host is this machine, by its name alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    from ipaddress import ip_address  # not needed until a request is made

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
