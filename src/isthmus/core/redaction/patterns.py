"""What looks like a secret, in a text or by its name. Every pattern takes time linear in the text."""

import re
from functools import lru_cache

__all__ = ["announces_secret", "looks_random", "names_secret", "redact_patterns"]

REDACTED = "[redacted]"
"""What stands where a secret was."""

MAX_RUN_CHARS = 256
"""Characters of a long run that are looked at: chance shows early."""

PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)", re.DOTALL
)  # fmt: skip

TOKEN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
        eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*){0,3}   # JWT and JWE
      | sk-[A-Za-z0-9_-]{8,}                                               # OpenAI, Anthropic
      | (?:sk|rk|pk|whsec)_(?:(?:live|test)_)?[A-Za-z0-9]{10,}             # Stripe
      | (?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{16}(?![A-Za-z0-9])
      | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{16,}
      | gl(?:pat|dt|rt|cbt|ptt|oas)-[A-Za-z0-9_-]{16,}                     # GitLab
      | xox[abceoprs]-[A-Za-z0-9-]{8,} | xapp-[A-Za-z0-9-]{8,}             # Slack
      | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{16,}                  # Google
      | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,} | hf_[A-Za-z0-9]{20,}
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | dop_v1_[a-f0-9]{32,}
    )""",
    re.VERBOSE,
)

# In prose a scheme is followed by a word; with a capital, or before what no word is, by a secret.
SCHEME = re.compile(
    r"\b((?i:bearer|dpop|basic|negotiate))( {1,3})(?=\S{0,60}[0-9A-Z=])[A-Za-z0-9\-._~+/]{6,}={0,3}"
    r"|\b(Bearer|DPoP|Negotiate)( {1,3})(?!(?i:tokens?|auth|authentication|authorization|scheme|"
    r"headers?|challenges?|credentials?|proofs?|is|or|and|in)\b)[A-Za-z0-9\-._~+/!@#$%^*=]{2,}"
)

# Between two "://" nothing is looked at twice: no userinfo has a slash.
USERINFO = re.compile(r"(?<=://)[^\s/?#@\"'<>]{1,4096}@")

KEY = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|"
    r"private[_-]?key|signature|credentials?|assertion|code_verifier|device_code|authorization|"
    r"cookie|oauth2-bearer|(?<![a-z])pass|(?<![a-z0-9])(?:otp|cvc|cvv|ssn|jwt|pw))"
)
"""The end of a name that says that a secret follows."""

PIECE = r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|\\.|[^\s"'`;&|<>\\]++)"""
VALUE = (
    r"""(?!\[redacted])(?:\\++["'][^"'\\]*+(?:\\++[^"'\\][^"'\\]*+)*+"""
    rf"""|(?:{PIECE}|["'])(?:(?:(?<!["'])|(?![,}}\]):;])){PIECE})*+)"""
)
"""A value as shells, JSON and programs write it: a word of pieces, or what stands in quotes.

Every repetition keeps what it took, so that the time is linear in the text.
"""

IS = r"""\\{0,8}["']?\s{0,4}(?:=>|:=|[=:]|%3[dD])\s{0,4}"""

HEADER = re.compile(
    rf"""(?i)((?:authorization|(?<![a-z])cookie){IS})(?!\[redacted])("[^"\n]*+"?|'[^'\n]*+'?|"""
    r"""\\++["'][^"'\\\n]*+|(?:[^"'\n\r\\]|\\[^"'\n])++)"""
)
"""A header whose value has blanks: all of it goes, to the end of the quotes or of the line."""

HINT = re.compile(
    rf"(?i){KEY}|securestring|_(?:key|pw|auth|creds?|pat|dsn)=|[?&#](?:code|sig|key|auth)="
)
"""Whether it is worth to look for names at all."""

NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        # "name": "API_TOKEN", "value": "…"
        (
            rf"""(?i)(name\\{{0,8}}["']?\s{{0,4}}[=:]\s{{0,4}}\\{{0,8}}["']?[\w.-]{{0,60}}?{KEY}\\{{0,8}}["']?\s{{0,4}},"""
            rf"""\s{{0,4}}\\{{0,8}}["']?value{IS})({VALUE})"""
        ),
        # password=…, "token": "…", api-key: …, X=…&token=…
        rf"(?i)({KEY}{IS})({VALUE})",
        r"""(?i)((?<=[?&#])(?:code|sig|key|auth)(?:=|%3[dD]))([^\s"'`&#;|<>]++)""",
        rf"((?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{{0,60}}_(?:KEY|PW|AUTH|CREDS?|PAT|DSN)=)({VALUE})",
        # --token …, -Password …
        rf"(?i)((?<![\w-])--?[\w-]{{0,60}}?{KEY}\s{{1,4}})({VALUE})",
        # set -x TOKEN …, setx TOKEN …, aws configure set secret_key …
        rf"(?i)(\b(?:setx|setenv|set)(?:\s{{1,4}}-\w{{1,8}}){{0,3}}\s{{1,4}}[\w.]{{0,60}}?{KEY}\s{{1,4}})({VALUE})",
        # the arguments of a call: a name, then its value
        rf"""(?i)(\(\s{{0,4}}["'][\w.-]{{0,60}}?{KEY}["']\s{{0,4}},\s{{0,4}})({VALUE})""",
        rf"(?i)(<[\w:.-]{{0,60}}?{KEY}(?:\s[^<>]{{0,200}})?>)([^<>]++)",
        # .netrc
        rf"(?i)(\blogin\s{{1,4}}\S{{1,100}}\s{{1,4}}password\s{{1,4}})({PIECE}++)",
        rf"(?i)(\bsecurestring\s{{1,4}}(?:-string\s{{1,4}})?)({VALUE})",
    )
)

USER = re.compile(
    r"""((?<![\w-])(?:-[uU]|--(?:proxy-)?user|--userpwd|--creds|--login)(?:=|\s{0,4}))"""
    r"""(?!["']?(?:\d{1,9}:\d{1,9}(?![^\s"'])|[a-z]{2,8}://|rl\b|ser\b))"""
    rf"""((["']?)[^\s:%"'`;&|<>=]{{1,200}}[:%](?:(?<=["'].)|){PIECE}*+)"""
)
"""``-u ada:password``, and ``-U ada%password``."""

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
"""Programs with a flag of one letter for a password."""

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
ODD = ("l9", "9l", "U9", "9U", "lU")
"""Neighbours that are rare in words and names; a capital before a small letter begins a word."""

NAMES = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "accesskey"),
    *("secretkey", "privatekey", "credential", "credentials", "authorization", "cookie"),
    *("assertion", "codeverifier", "devicecode", "signature", "keyid", "connectionstring"),
)
WHOLE_NAMES = {"auth", "bearer", "cvc", "cvv", "jwt", "otp", "pin", "ssn", "pass", "pw"}
NO_SECRETS = {"progresstoken", "pagetoken", "nextpagetoken", "continuationtoken", "synctoken"}


def looks_random(run: str) -> bool:
    """Whether a run of letters and digits was drawn by chance, and is no word, name or id.

    Random text changes between small letters, capitals and digits at every third character or
    so; words, paths and names do not. Digests in hex count as random: a key may be spelt so.

    Example:
        >>> random_looking("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"), random_looking("src/isthmus/audit")
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


def redact_patterns(text: str, *, chance: bool = True) -> str:
    """A text without what looks like a secret.

    Args:
        text: any text.
        chance: whether what merely looks random goes, too.

    Example:
        >>> cleaned("git clone https://ada:hunter22@git.example/x?token=abcdef")
        'git clone https://[redacted]@git.example/x?token=[redacted]'
    """
    if "-----BEGIN" in text:
        text = PEM.sub(REDACTED, text)
    text = TOKEN.sub(REDACTED, text)
    if "://" in text:
        text = USERINFO.sub(f"{REDACTED}@", text)
    if HINT.search(text):
        text = HEADER.sub(_hide_value, text)
        for pattern in NAMED:
            text = pattern.sub(_hide_value, text)
    if " " in text:
        text = SCHEME.sub(_without_scheme, text)
        text = _without_arguments(text)
    return RUN.sub(_redact_run, text) if chance else text


def _hide_value(found: re.Match[str]) -> str:
    """What a name says, and in the place of the secret a sign; quotes around it stay."""
    name, value = found.group(1), found.group(2)
    quote = value[0] if value[0] in "\"'" and value.find(value[0], 1) == len(value) - 1 else ""
    if not quote and value.startswith("\\"):
        quote = value[: len(value) - len(value.lstrip("\\")) + 1]
        return f"{name}{quote}{REDACTED}"
    return f"{name}{quote}{REDACTED}{quote}"


def _without_scheme(found: re.Match[str]) -> str:
    return f"{found[1] or found[3]}{found[2] or found[4]}{REDACTED}"


def _without_arguments(text: str) -> str:
    """A command line without what programs take for a password by place or by a short flag."""
    if "-" not in text:
        return text
    text = USER.sub(_hide_value, text)
    for program, flag, within in PROGRAMS:
        parts = _commands(text) if program.search(text) else []
        for at, part in enumerate(parts):
            if program.search(part) and within in part:
                parts[at] = flag.sub(_hide_value, part)
        text = "".join(parts) or text
    return PIPED.sub(_hide_value, text) if "|" in text else text


def _commands(text: str) -> list[str]:
    """A text in pieces that are a command each, with what parts them."""
    return re.split(r"([;\n|]|&&)", text)


def _redact_run(found: re.Match[str]) -> str:
    run = found.group()
    return REDACTED if looks_random(run) else run


@lru_cache(maxsize=4096)
def names_secret(name: str) -> bool:
    """Whether a member of this name holds a secret, however it is spelt.

    Example:
        >>> names_a_secret("X-Api-Key"), names_a_secret("githubToken"), names_a_secret("tokens_in")
        (True, True, False)
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower()) if len(name) <= 128 else ""
    return plain in WHOLE_NAMES or (plain.endswith(NAMES) and plain not in NO_SECRETS)


def announces_secret(word: str) -> bool:
    """Whether a word of a command line says that the next one is a secret, as ``--token`` does."""
    return word.startswith("-") and "=" not in word and names_secret(word)
