"""Members of a file as the structs want them."""

import pytest

from isthmus.host.config.forms import BadMember, convert_member
from isthmus.host.model.entries import Sandbox, ServerOptions


def options(said, unknown=None):
    """Options as a file says them."""
    return convert_member(ServerOptions, said, ("host",), [] if unknown is None else unknown)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900.0), ("30s", 30.0), ("250ms", 0.25), ("1.5 h", 5400.0), ("1d", 86400.0), (7, 7.0)],
)
def test_durations(text, seconds):
    """Ours: as people write them, or a number of seconds."""
    assert seconds == options({"idleStop": text}).idle_stop


def test_rates_and_sizes():
    """Ours: a rate is so many a minute, a size so many bytes."""
    limits = options({"limits": {"calls": "2/s", "resultBytes": "1MiB"}}).limits

    assert (120.0, 1024 * 1024) == (limits.calls, limits.result_bytes)


def test_null_is_none_where_that_means_something():
    """Ours: no idle stop, no rate."""
    found = options({"idleStop": None, "limits": {"calls": None}})

    assert (None, None) == (found.idle_stop, found.limits.calls)


@pytest.mark.parametrize(
    ("said", "box"),
    [
        (True, Sandbox(network=False)),
        (False, None),
        (None, None),
        ({}, Sandbox()),
        ({"network": False, "denyRead": ["~/.ssh"]}, Sandbox(network=False, deny_read=("~/.ssh",))),
        (
            {"filesystem": {"allowWrite": ["/a"]}, "network": {"allowedDomains": []}},
            Sandbox(allow_write=("/a",), network=False),
        ),
    ],
)
def test_a_sandbox_in_its_shapes(said, box):
    """Ours: in our words, in those that others group it by, or just on."""
    assert box == options({"sandbox": said}).sandbox


def test_a_pin_is_a_digest():
    """Ours: alone, or as an object."""
    digest = "AB" * 32

    assert {digest.lower()} == {
        options({"pin": pin}).pin for pin in (digest, {"sha256": digest}, f"sha256:{digest}")
    }


@pytest.mark.covers("hostconfig.server.bad-alone")
@pytest.mark.parametrize(
    ("said", "keys", "says"),
    [
        ({"idleStop": "15 parsecs"}, ("idleStop",), 'is no duration: write "30s"'),
        ({"idleStop": True}, ("idleStop",), "is no duration"),
        ({"timeouts": {"call": -1}}, ("timeouts", "call"), "is no duration"),
        ({"limits": {"calls": "many"}}, ("limits", "calls"), "is no rate"),
        ({"limits": {"resultBytes": "1 potato"}}, ("limits", "resultBytes"), "is no size"),
        ({"pin": "abc"}, ("pin",), "is no pin"),
        ({"sandbox": {"network": {"allowedDomains": ["x"]}}}, ("sandbox",), "cannot tell domains"),
        ({"sandbox": {"filesystem": 1}}, ("sandbox",), "filesystem is an object"),
        ({"start": "now"}, ("start",), "Invalid enum value 'now'"),
        ({"tools": {"include": [1]}}, ("tools", "include", 0), "Expected `str`"),
        ({"limits": {"concurrency": "4"}}, ("limits", "concurrency"), "Expected `int`"),
    ],
)
def test_what_does_not_fit_is_told_with_the_way_to_it(said, keys, says):
    """Ours: which member, and what it may be."""
    with pytest.raises(BadMember, match=says) as caught:
        options(said)

    assert ("host", *keys) == caught.value.keys


@pytest.mark.covers("hostconfig.options.typo-fails")
@pytest.mark.parametrize("name", ["sandbx", "Sandbox", "sand_box", "trusst"])
def test_a_mistyped_option_is_an_error(name):
    """Ours: a sandbox that is misspelt must not mean that there is none."""
    with pytest.raises(BadMember, match="did you mean"):
        options({name: {}})


def test_an_option_of_somebody_newer_is_told_and_passed_over():
    """Ours: a file of a newer isthmus still works."""
    unknown = []
    options({"holograms": True, "advertise": {"apps": True}}, unknown)

    assert {("host", "holograms"), ("host", "advertise", "apps")} == set(unknown)
