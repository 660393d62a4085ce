"""Addresses of Redis servers: every part of a URL, and nothing of its password in any message."""

import pytest

from isthmus.errors import UsageError
from isthmus.store.redis.address import RedisAddress, parse_redis_url
from isthmus.store.store import open_store


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://", {"name": "redis://localhost:6379/0", "host": "localhost"}),
        ("redis://h", {"name": "redis://h:6379/0", "host": "h"}),
        ("redis://h:1/2", {"name": "redis://h:1/2", "host": "h", "port": 1, "db": 2}),
        ("redis://h?db=3", {"name": "redis://h:6379/3", "host": "h", "db": 3}),
        ("redis://[::1]:1", {"name": "redis://[::1]:1/0", "host": "::1", "port": 1}),
        (
            "redis://u:p%40%2F%3A@h/1",
            {
                "name": "redis://u@h:6379/1",
                "host": "h",
                "db": 1,
                "username": "u",
                "password": "p@/:",
            },
        ),
        ("redis://:pw@h", {"name": "redis://h:6379/0", "host": "h", "password": "pw"}),
        (
            "redis://h?prefix=acme:",
            {"name": "redis://h:6379/0?prefix=acme:", "host": "h", "prefix": "acme:"},
        ),
        ("rediss://h", {"name": "rediss://h:6379/0", "host": "h", "tls": True}),
        (
            "rediss://h?ssl_ca_certs=/ca&ssl_certfile=/c&ssl_keyfile=/k",
            {
                "name": "rediss://h:6379/0",
                "host": "h",
                "tls": True,
                "ca": "/ca",
                "certificate": "/c",
                "key": "/k",
            },
        ),
        ("valkey://h", {"name": "valkey://h:6379/0", "host": "h"}),
        ("valkeys://h", {"name": "valkeys://h:6379/0", "host": "h", "tls": True}),
        ("unix:///run/r.sock", {"name": "unix:///run/r.sock", "path": "/run/r.sock"}),
        (
            "unix://u:pw@/run/r.sock?db=2&prefix=a:",
            {
                "name": "unix://u@/run/r.sock?db=2&prefix=a:",
                "path": "/run/r.sock",
                "db": 2,
                "username": "u",
                "password": "pw",
                "prefix": "a:",
            },
        ),
        (
            "unix:///r.sock?username=u&password=pw",
            {"name": "unix://u@/r.sock", "path": "/r.sock", "username": "u", "password": "pw"},
        ),
    ],
)
def test_every_part_of_a_url_is_read(url, expected):
    """Ours: URLs as redis-py and redis-cli have them."""
    assert RedisAddress(**expected) == parse_redis_url(url)
    assert expected["name"] == open_store(url).name


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://u:s3cret@h:port", "cannot be read"),
        ("redis://u:s3cret@h:99999", "cannot be read"),
        ("redis://u:s3cret@[h", "cannot be read"),
        ("redis://u:s3cret@h?x", "cannot be read"),
        ("redis://u:s3cret@h?x=1", "option 'x'"),
        *(
            (f"redis://{password}@h/0", "cannot be read")
            for password in (":1/s3cret", ":1?s3cret=1", ":1#s3cret", "?:s3cret", ":1/?x=s3cret")
        ),
        ("redis://u:s3cret@h/name", "has a number"),
        ("redis://u:s3cret@h/-1", "has a number"),
        ("redis://u:s3cret@h/1234567", "has a number"),
        ("redis://u:s3cret@h?ssl_ca_certs=/x", "rediss://"),
        ("unix://u:s3cret@host/r.sock", "whole path"),
        ("unix://", "whole path"),
        *(
            (f"redis://u:s3cret@h?prefix={prefix}", "is no prefix for keys")
            for prefix in ("a/", "a%7B", "a%20", "%C3%A4", "a%0A", "x" * 101)
        ),
    ],
)
def test_what_is_no_address_is_refused_without_its_password(url, words):
    """Ours: a message goes into logs."""
    with pytest.raises(UsageError, match=words) as refused:
        parse_redis_url(url)

    assert "s3cret" not in str(refused.value)


def test_a_password_is_not_shown():
    """Ours: an address may stand in a traceback."""
    address = parse_redis_url("redis://u:s3cret@h")

    assert "s3cret" == address.password
    assert "s3cret" not in f"{address!r}{address}{[address]}"


@pytest.mark.parametrize(
    "url", ["postgres://u:s3cret@h/db", "u:s3cret@h", "redis:/u:s3cret@h", "redis:u:s3cret://@h"]
)
def test_a_password_for_another_engine_is_not_shown(url):
    """Ours: nor that of an engine that there is not, or of a URL that lacks its beginning."""
    with pytest.raises(UsageError, match="is no store") as refused:
        open_store(url)

    assert "s3cret" not in str(refused.value)
