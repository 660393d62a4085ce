"""Lines without secrets: what an operator's log says, and the command line of a server."""

import re
from collections.abc import Sequence

from isthmus.core.redaction.forms import BEFORE_JWT, JWT, NAME_END, USER_FLAGS
from isthmus.core.redaction.live_secrets import (
    MIN_SECRET_CHARS,
    REDACTED,
    list_live_secrets,
    replace_secrets,
    spell_secret,
)

# Logs

LOG_JWT = re.compile(rf"({BEFORE_JWT}){JWT}")
LOG_SCHEME = re.compile(r"(?i)\b(bearer|dpop|basic) {1,3}[A-Za-z0-9\-._~+/]{6,8192}={0,3}")
LOG_NAMED = re.compile(  # members of OAuth, and of a JWK
    r"""(?i)(?<![a-z])((?:access_|refresh_|id_|subject_|actor_)token|client_secret|"""
    r"""(?:client_)?assertion|code_verifier|device_code|password|d)(["']?\s?[=:]\s?["']?)"""
    r"""[^\s&"',;)}\]]{6,8192}"""
)
LOG_PARAMETER = re.compile(  # a code or state has a letter among its first ones, a status none
    r"""(?i)(?<![a-z_])(code|token|state)(=|["']: ?["'])(?=[^\s&"']{0,20}[a-z])"""
    r"""[^\s&"',;)}\]]{8,8192}"""
)


def redact_log(text: str) -> str:
    """A line of a log without live secrets, and without what looks like a token of OAuth.

    Example:
        >>> redact_log("POST /token code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj")
        'POST /token code=[redacted]&state=[redacted]'
    """
    longest = len(text)
    known = [
        form
        for secret in list_live_secrets()
        if MIN_SECRET_CHARS <= len(secret) <= longest
        for form in spell_secret(secret)
        if form in text
    ]
    text = replace_secrets(text, sorted(known, key=len, reverse=True))
    text = LOG_JWT.sub(rf"\1{REDACTED}", text)
    text = LOG_SCHEME.sub(rf"\1 {REDACTED}", text)
    text = LOG_NAMED.sub(rf"\1\2{REDACTED}", text)
    return LOG_PARAMETER.sub(rf"\1\2{REDACTED}", text)


# Command lines

ARGUMENT_NAME = rf"(?:{NAME_END}|bearer|(?<![a-z])(?:auth|key|pw))"
SECRET_FLAG = re.compile(rf"(?i){ARGUMENT_NAME}$")
SECRET_ASSIGNED = re.compile(rf"(?is)({ARGUMENT_NAME}[\"']?\s?(?:=|:(?!//)|%3d)\s?[\"']?)[^&\"']+")
SECRET_SCHEME = re.compile(r"(?i)\b(bearer|basic|dpop)\s+[\w.~+/=-]+")
URL_USERINFO = re.compile(r"(?<=://)[^\s/?#@]{1,4096}@")
USER_AND_PASSWORD = re.compile(r"(\D[^:%]*[:%]).+", re.DOTALL)


def redact_command(argv: Sequence[str]) -> list[str]:
    """A command line for messages: what a flag or a name calls secret is hidden, in URLs, too.

    Example:
        >>> redact_command(["serve", "--token", "abc", "https://ada:abc@example.com/?key=abc"])
        ['serve', '--token', '[redacted]', 'https://example.com/?key=[redacted]']
    """
    told: list[str] = []
    before = ""
    for word in argv:
        if before.startswith("-") and SECRET_FLAG.search(before):
            told.append(REDACTED)
        elif before in USER_FLAGS and USER_AND_PASSWORD.match(word):
            told.append(USER_AND_PASSWORD.sub(rf"\1{REDACTED}", word))
        else:
            text = SECRET_ASSIGNED.sub(rf"\1{REDACTED}", URL_USERINFO.sub("", word))
            told.append(SECRET_SCHEME.sub(rf"\1 {REDACTED}", text))
        before = word
    return told
