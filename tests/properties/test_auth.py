"""Authorization's small languages hold for anything: challenges, URLs, redirect URIs, tokens."""

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isthmus.auth.net.challenge import parse_challenges, write_challenge
from isthmus.auth.net.urls import (
    canonical_resource,
    check_browser_url,
    redirect_matches,
    resource_covers,
)
from isthmus.auth.tokens.dpop import normalize_htu
from isthmus.auth.tokens.jose import InvalidToken, PrivateKey, read_token, sign_jwt, verify_jwt
from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.lines import redact_log
from isthmus.errors import AuthUnsafe
from support.examples import count_examples

TOKENS = st.text("!#$%&'*+-.^_`|~" + string.ascii_letters + string.digits, min_size=1, max_size=8)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=40)
PARAMS = st.dictionaries(TOKENS.map(str.lower), VALUES, max_size=6)
GARBAGE = st.text(alphabet=string.printable + '",=\\ Bearer scope', max_size=200)

SEGMENTS = st.lists(st.text("abcXYZ019-_~", min_size=1, max_size=5), max_size=4)
HOSTS = st.sampled_from(["h.example", "H.Example", "127.0.0.1", "[::1]", "localhost"])
PORTS = st.sampled_from(["", ":80", ":443", ":8000"])
SCHEMES = st.sampled_from(["https", "http", "HTTPS"])


@st.composite
def urls(draw):
    """URLs of HTTP."""
    path = "".join(f"/{segment}" for segment in draw(SEGMENTS)) + draw(st.sampled_from(["", "/"]))
    return f"{draw(SCHEMES)}://{draw(HOSTS)}{draw(PORTS)}{path}"


@given(st.lists(st.tuples(TOKENS, PARAMS), min_size=1, max_size=4))
def test_what_is_written_is_read(challenges):
    """RFC 9110 11.6.1: any number of challenges in one line mean what they were written as."""
    line = ", ".join(write_challenge(scheme, params) for scheme, params in challenges)

    assert [(scheme.lower(), params) for scheme, params in challenges] == [
        (challenge.scheme, challenge.params) for challenge in parse_challenges([line])
    ]


@given(st.lists(st.one_of(GARBAGE, st.text(max_size=100)), max_size=3))
@example(['Bearer error_description="x, scope=admin"'])
def test_reading_challenges_never_raises(values):
    """Ours: a header is somebody else's, and whatever it holds, an answer comes out."""
    for challenge in parse_challenges(values):
        assert challenge.scheme == challenge.scheme.lower()
        assert None is challenge.scopes or "" not in challenge.scopes


@pytest.mark.covers("auth.threat.t28-header-injection")
@given(VALUES, st.sampled_from(["error_description", "realm", "x"]))
@example("x, scope=admin", "error_description")
@example('x", scope="admin', "error_description")
@example("\\", "realm")
def test_no_text_of_a_parameter_names_a_scope(text, name):
    """Ours: what stands in a description is never what is asked for."""
    (read,) = parse_challenges([write_challenge("Bearer", {name: text, "error": "e"})])

    assert None is read.scopes
    assert {name: text, "error": "e"} == read.params


@given(urls())
def test_a_canonical_resource_is_its_own(url):
    """Ours: making it canonical twice changes nothing, and it covers what it was made of."""
    canonical = canonical_resource(url)

    assert canonical == canonical_resource(canonical)
    assert resource_covers(canonical, url)
    assert resource_covers(url, canonical)
    assert normalize_htu(url) == normalize_htu(url.replace("HTTPS", "https"))


@given(urls(), SEGMENTS, st.text("abcXYZ019-_~", min_size=1, max_size=4))
def test_what_is_below_is_covered_and_what_begins_alike_is_not(url, below, more):
    """RFC 9728 3.3: whole segments."""
    base = url.rstrip("/")

    assert resource_covers(url, "/".join([base, *below]))
    if base.count("/") > 2:
        assert not resource_covers(url, base + more)


@given(urls(), urls())
def test_covering_both_ways_is_being_the_same(first, second):
    """Ours: a part and its whole are told apart."""
    both = resource_covers(first, second) and resource_covers(second, first)

    assert both == (canonical_resource(first) == canonical_resource(second))


@given(urls(), urls())
def test_a_redirect_that_matches_differs_in_the_port_alone(registered, given_one):
    """RFC 8252 7.3: and only on this machine, without TLS."""
    if redirect_matches(registered, given_one) and registered != given_one:
        assert registered.startswith("http://")
        assert strip_port(registered) == strip_port(given_one)


def strip_port(url):
    """A URL without its port; a path may hold colons and digits as well."""
    return re.sub(r"^(https?://(?:\[[^\]]*\]|[^[/:?#]*)):\d*", r"\1", url)


@given(urls(), st.sampled_from("\"'`\\<>|^{} \n\r\t\x00é@\u202e"), st.integers(0, 60))
def test_one_bad_sign_anywhere_keeps_a_url_from_the_browser(url, sign, at):
    """Ours: what a shell or a page would read as something else is nowhere allowed."""
    spoilt = f"{url}/"[:at] + sign + f"{url}/"[at:]
    if sign == "@" and "/" in spoilt[: spoilt.index("@")].partition("://")[2]:
        return  # an @ in a path is only that
    with pytest.raises(AuthUnsafe):
        check_browser_url(spoilt)


@given(
    st.one_of(st.text(max_size=300), st.lists(st.text("abcXYZ019-_=", max_size=80)).map(".".join))
)
def test_reading_tokens_raises_one_error(text):
    """Ours: a token is somebody else's, and nothing but a refusal comes of a bad one."""
    try:
        read_token(text)
    except InvalidToken:
        return


KEY = PrivateKey.generate("ES256")
GOOD = sign_jwt({"sub": "ada"}, KEY, typ="at+jwt")


@settings(max_examples=count_examples(60))
@given(st.integers(0, len(GOOD) - 1), st.sampled_from("AQgw_-.="))
def test_a_token_that_was_changed_anywhere_is_no_token(at, sign_):
    """Ours: each letter counts, also the last, whose spare bits some decoders pass over."""
    spoilt = GOOD[:at] + sign_ + GOOD[at + 1 :]
    if spoilt != GOOD:
        with pytest.raises(InvalidToken):
            verify_jwt(spoilt, [KEY.jwk], algorithms=("ES256",))


@given(
    st.text(max_size=40),
    st.text(string.ascii_letters + string.digits, min_size=8, max_size=20),
    st.text(max_size=40),
)
def test_a_live_secret_never_stays_in_a_text(before, text, after):
    """Ours: wherever it stands."""
    secret = Secret(f"{text}-Zq8!")

    assert secret.reveal() not in redact_log(f"{before}{secret.reveal()}{after}")
