"""T29, the net under the loggers: what somebody logs by mistake is heard without its secrets."""

import logging
import re
from pathlib import Path

import authlib
import pytest

from isthmus.auth import redaction
from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.lines import redact_log
from isthmus.core.redaction.live_secrets import REDACTED

OURS = logging.getLogger("isthmus.auth")
AUTHLIBS = logging.getLogger("authlib.oauth2.rfc6749.grants.refresh_token")


class Heard(logging.Handler):
    """What a handler writes down."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        more = {k: v for k, v in vars(record).items() if k not in redaction.RECORD_ATTRIBUTES}
        self.lines.append(f"{logging.Formatter().format(record)} {more}")


@pytest.fixture
def heard():
    """Everything that is said at any level."""
    handler, root = Heard(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler.lines
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.mark.covers("auth.threat.t29-secrets-shown")
@pytest.mark.parametrize("logger", [OURS, AUTHLIBS], ids=["ours", "Authlib's"])
def test_no_live_secret_is_heard(heard, logger):
    """Ours: whatever form it has in the record, a secret that somebody holds is taken out."""
    secret = Secret("hunter2/Zq8+xW=")
    logger.warning("as text %s", secret.reveal())
    logger.warning("in a list %r", [secret.reveal()])
    logger.warning("in a URL %s", "https://h/?a=hunter2%2FZq8%2BxW%3D")
    logger.warning("hung on", extra={"body": {"a": secret.reveal()}, "line": secret.reveal()})
    logger.warning("a format that does not fit %d", secret.reveal())
    try:
        int(f"failed with {secret.reveal()}")
    except ValueError:
        logger.exception("an exception")

    assert 6 == len(heard)
    assert [] == [line for line in heard if "hunter2" in line]
    assert 6 == sum(REDACTED in line for line in heard)
    assert "ValueError: invalid literal" in heard[-1]


@pytest.mark.covers("auth.threat.t29-secrets-shown")
@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
        ("authorization: DPoP abc.def-123", "authorization: DPoP [redacted]"),
        ("Basic YWRhOnNlY3JldA==", "Basic [redacted]"),
        ("/cb?code=SplxlOBeZQQ&state=af0ifjsldkj", "/cb?code=[redacted]&state=[redacted]"),
        ("refresh_token=tGzv3JOkF0XG5Qx2TlKWIA&x=1", "refresh_token=[redacted]&x=1"),
        ("{'access_token': '2YotnFZFEjr1zCsicMWpAA'}", "{'access_token': '[redacted]'}"),
        ('{"client_secret": "7Fjfp0ZBr1KtDRbnfVdmIw"}', '{"client_secret": "[redacted]"}'),
        ("code_verifier=dBjftJeZ4CVPmB92K27uhbUJU1p1r", "code_verifier=[redacted]"),
        ("got eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl!", "got [redacted]!"),
        ("proof eyJhbGciOiJI.eyJzdWIiOiIx.c2ln.a.b", "proof [redacted]"),
    ],
)
def test_what_looks_like_a_token_is_taken_out(said, left):
    """Ours: what nobody wrapped is known by its form."""
    assert left == redact_log(said)


@pytest.mark.parametrize(
    "said",
    [
        "HTTP status code=404, error code=-32602",
        "error=invalid_token: the token has expired",
        "a bearer token came, and the token is for another resource: see aud",
        "no code_challenge in the request; code: access_denied",
        "client_id=desktop scope=files:read",
    ],
)
def test_ordinary_words_stay(said):
    """Ours: a log that says nothing helps nobody."""
    assert said == redact_log(said)


@pytest.mark.covers("auth.threat.t29-secrets-shown")
def test_authlib_says_nothing_below_info(heard):
    """Ours: at DEBUG it says the tokens that it hands out, whatever level somebody sets."""
    AUTHLIBS.setLevel(logging.DEBUG)
    AUTHLIBS.debug("Issue token %r to %r", {"access_token": "x"}, "client")
    AUTHLIBS.info("something else")
    AUTHLIBS.setLevel(logging.NOTSET)

    assert ["something else {}"] == heard


def test_every_logger_of_authlib_has_the_net():
    """Ours: a filter hears its own logger alone, so each that Authlib has is in our list."""
    root = Path(authlib.__file__).parent
    known = set(redaction.AUTHLIB_LOGGERS)
    found = {
        "authlib." + ".".join(path.relative_to(root).with_suffix("").parts)
        for folder in ("oauth2", "oidc", "jose")
        for path in (root / folder).rglob("*.py")
        if re.search(r"getLogger\(__name__\)", path.read_text(encoding="utf-8"))
    }

    assert set() == found - known
    assert all(redaction.LOG_FILTER in logging.getLogger(name).filters for name in known)
