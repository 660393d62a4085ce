"""Texts without secrets, for users and the audit log: what looks like one, by its look or its name."""

import re

from isthmus.core.redaction.forms import (
    BEFORE_JWT,
    ISSUED_KEY,
    JWT,
    NAME_END,
    PEM,
    USERINFO,
)
from isthmus.core.redaction.live_secrets import REDACTED

MAX_RUN_CHARS = 256  # of a long run that are looked at: chance shows early

TEXT_PEM = re.compile(PEM)
TEXT_JWT = re.compile(rf"({BEFORE_JWT}){JWT}")
TEXT_KEY = re.compile(ISSUED_KEY)
TEXT_USERINFO = re.compile(USERINFO)

# In prose a scheme is followed by a word; with a capital, or before what no word is, by a secret.
SCHEME = re.compile(
    r"\b((?i:bearer|dpop|basic|negotiate))( {1,3})(?=\S{0,60}[0-9A-Z=])[A-Za-z0-9\-._~+/]{6,}={0,3}"
    r"|\b(Bearer|DPoP|Negotiate)( {1,3})(?!(?i:tokens?|auth|authentication|authorization|scheme|"
    r"headers?|challenges?|credentials?|proofs?|is|or|and|in)\b)[A-Za-z0-9\-._~+/!@#$%^*=]{2,}"
)

# A value as shells, JSON and programs write it: a word of pieces, or what stands in quotes.
PIECE = r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|\\.|[^\s"'`;&|<>\\]++)"""
VALUE = (
    r"""(?!\[redacted])(?:\\++["'][^"'\\]*+(?:\\++[^"'\\][^"'\\]*+)*+"""
    rf"""|(?:{PIECE}|["'])(?:(?:(?<!["'])|(?![,}}\]):;])){PIECE})*+)"""
)

IS = r"""\\{0,8}["']?\s{0,4}(?:=>|:=|[=:]|%3[dD])\s{0,4}"""

# A header whose value has blanks: all of it goes, to the end of the quotes or of the line.
HEADER = re.compile(
    rf"""(?i)((?:authorization|(?<![a-z])cookie){IS})(?!\[redacted])("[^"\n]*+"?|'[^'\n]*+'?|"""
    r"""\\++["'][^"'\\\n]*+|(?:[^"'\n\r\\]|\\[^"'\n])++)"""
)

# Whether it is worth to look for names at all.
HINT = re.compile(
    rf"(?i){NAME_END}|securestring|_(?:key|pw|auth|creds?|pat|dsn)=|[?&#](?:code|sig|key|auth)="
)

NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        # "name": "API_TOKEN", "value": "…"
        (
            rf"""(?i)(name\\{{0,8}}["']?\s{{0,4}}[=:]\s{{0,4}}\\{{0,8}}["']?[\w.-]{{0,60}}?{NAME_END}\\{{0,8}}["']?\s{{0,4}},"""
            rf"""\s{{0,4}}\\{{0,8}}["']?value{IS})({VALUE})"""
        ),
        # password=…, "token": "…", api-key: …, X=…&token=…
        rf"(?i)({NAME_END}{IS})({VALUE})",
        r"""(?i)((?<=[?&#])(?:code|sig|key|auth)(?:=|%3[dD]))([^\s"'`&#;|<>]++)""",
        rf"((?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{{0,60}}_(?:KEY|PW|AUTH|CREDS?|PAT|DSN)=)({VALUE})",
        # --token …, -Password …
        rf"(?i)((?<![\w-])--?[\w-]{{0,60}}?{NAME_END}\s{{1,4}})({VALUE})",
        # set -x TOKEN …, setx TOKEN …, aws configure set secret_key …
        rf"(?i)(\b(?:setx|setenv|set)(?:\s{{1,4}}-\w{{1,8}}){{0,3}}\s{{1,4}}[\w.]{{0,60}}?{NAME_END}\s{{1,4}})({VALUE})",
        # the arguments of a call: a name, then its value
        rf"""(?i)(\(\s{{0,4}}["'][\w.-]{{0,60}}?{NAME_END}["']\s{{0,4}},\s{{0,4}})({VALUE})""",
        rf"(?i)(<[\w:.-]{{0,60}}?{NAME_END}(?:\s[^<>]{{0,200}})?>)([^<>]++)",
        # .netrc
        rf"(?i)(\blogin\s{{1,4}}\S{{1,100}}\s{{1,4}}password\s{{1,4}})({PIECE}++)",
        rf"(?i)(\bsecurestring\s{{1,4}}(?:-string\s{{1,4}})?)({VALUE})",
    )
)

# ``-u ada:password``, and ``-U ada%password``.
USER_AND_PASSWORD = re.compile(
    r"""((?<![\w-])(?:-[uU]|--(?:proxy-)?user|--userpwd|--creds|--login)(?:=|\s{0,4}))"""
    r"""(?!["']?(?:\d{1,9}:\d{1,9}(?![^\s"'])|[a-z]{2,8}://|rl\b|ser\b))"""
    rf"""((["']?)[^\s:%"'`;&|<>=]{{1,200}}[:%](?:(?<=["'].)|){PIECE}*+)"""
)

# Programs with a flag of one letter for a password.
PROGRAMS = tuple(
    (re.compile(rf"\b(?:{names})\b"), re.compile(rf"(\s(?:{flag})[= ]?)({PIECE}++)"), within)
    for names, flag, within in (
        (r"mysql\w{0,12}|mariadb(?:-\w{1,12})?|sshpass|7z[ar]?", "-p", ""),
        ("docker|podman|nerdctl|helm|skopeo|oras|crane|buildah", "-p", " login"),
        ("redis-cli|valkey-cli", "-a", ""),
        (r"ldap[a-z]{3,8}", "-w", ""),
        ("sqlcmd|unzip|zip", "-P", ""),
    )
)

PIPED = re.compile(
    rf"""(\b(?:echo|printf)\s{{1,4}}(?:-\w{{1,4}}\s{{1,4}})?)({PIECE}++)(?=\s{{0,4}}\|[^|\n]{{0,300}}?"""
    r"(?:-stdin\b|--with-token\b|sudo\s+-S\b))"
)

RUN = re.compile(r"[A-Za-z0-9+/=_\-]{20,}")
KNOWN_IDS = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a UUID
    r"|[0-7][0-9A-HJKMNP-TV-Z]{25}"  # a ULID, as our own ids
)
HEX = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")

# Lower case, upper case, digits; everything else parts words.
KINDS = str.maketrans(
    dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "l")
    | dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "U")
    | dict.fromkeys("0123456789", "9")
    | dict.fromkeys("+/=_-", " ")
)
# Neighbours that are rare in words and names; a capital before a small letter begins a word.
ODD = ("l9", "9l", "U9", "9U", "lU")


def looks_random(run: str) -> bool:
    """Whether a run of letters and digits was drawn by chance, and is no word, name or id.

    Random text changes between small letters, capitals and digits at every third character or
    so; words, paths and names do not. Digests in hex count as random: a key may be spelt so.

    Example:
        >>> looks_random("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"), looks_random("src/isthmus/audit")
        (True, False)
    """
    if KNOWN_IDS.fullmatch(run):
        return False
    beginning = run[:MAX_RUN_CHARS]
    spelt = HEX.search(beginning)
    if spelt and not spelt.group().isalpha():
        return True
    kinds = beginning.translate(KINDS)
    pairs = len(kinds) - 1 - 2 * kinds.count(" ")
    odd = sum(kinds.count(pair) for pair in ODD)
    least = 0.15 if "9" in kinds else 0.22
    return pairs >= 12 and odd >= pairs * least  # below, chance and names are alike


def redact_text(text: str, *, chance: bool = True) -> str:
    """A text without what looks like a secret.

    Args:
        text: any text.
        chance: whether what merely looks random goes, too.

    Example:
        >>> redact_text("git clone https://ada:hunter22@git.example/x?token=abcdef")
        'git clone https://[redacted]@git.example/x?token=[redacted]'
    """
    if "-----BEGIN" in text:
        text = TEXT_PEM.sub(REDACTED, text)
    if "eyJ" in text:
        text = TEXT_JWT.sub(rf"\1{REDACTED}", text)
    text = TEXT_KEY.sub(REDACTED, text)
    if "://" in text:
        text = TEXT_USERINFO.sub(f"{REDACTED}@", text)
    if HINT.search(text):
        text = HEADER.sub(_hide_value, text)
        for pattern in NAMED:
            text = pattern.sub(_hide_value, text)
    if " " in text:
        text = SCHEME.sub(_hide_scheme, text)
        text = _hide_arguments(text)
    return RUN.sub(_redact_run, text) if chance else text


def _hide_value(found: re.Match[str]) -> str:
    """The name of a match, and a sign in place of the secret; quotes around it stay."""
    name, value = found.group(1), found.group(2)
    quote = value[0] if value[0] in "\"'" and value.find(value[0], 1) == len(value) - 1 else ""
    if not quote and value.startswith("\\"):
        quote = value[: len(value) - len(value.lstrip("\\")) + 1]
        return f"{name}{quote}{REDACTED}"
    return f"{name}{quote}{REDACTED}{quote}"


def _hide_scheme(found: re.Match[str]) -> str:
    return f"{found[1] or found[3]}{found[2] or found[4]}{REDACTED}"


def _hide_arguments(text: str) -> str:
    """A command line without what programs take for a password by place or by a short flag."""
    if "-" not in text:
        return text
    text = USER_AND_PASSWORD.sub(_hide_value, text)
    for program, flag, within in PROGRAMS:
        parts = _split_commands(text) if program.search(text) else []
        for at, part in enumerate(parts):
            if program.search(part) and within in part:
                parts[at] = flag.sub(_hide_value, part)
        text = "".join(parts) or text
    return PIPED.sub(_hide_value, text) if "|" in text else text


def _split_commands(text: str) -> list[str]:
    """A text in pieces that are a command each, with what parts them."""
    return re.split(r"([;\n|]|&&)", text)


def _redact_run(found: re.Match[str]) -> str:
    run = found.group()
    return REDACTED if looks_random(run) else run
