"""What looks like a secret, in a text or by its name. Every pattern takes time linear in the text."""

import re
from functools import lru_cache

__all__ = ["cleaned", "names_a_secret", "random_looking", "says_a_secret_follows"]

REDACTED = "[redacted]"
"""What stands where a secret was."""

LOOKED_AT = 256
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

SCHEME = re.compile(
    r"\b((?i:bearer|dpop|basic|negotiate))( {1,3})(?=\S{0,60}[0-9A-Z=])[A-Za-z0-9\-._~+/]{6,}={0,3}"
)

# Between two "://" nothing is looked at twice: no userinfo has a slash.
USERINFO = re.compile(r"(?<=://)[^\s/?#@\"'<>]{1,4096}@")

NAMED = re.compile(
    r"""(?i)(pass(?:word|wd|phrase)|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"""
    r"""|signature|credentials?|assertion|code_verifier|device_code|authorization|cookie|(?<=[?&])(?:code|sig|key|auth))"""
    r"""(["']?\s?(?:=|:|%3[dD])\s?["']?)(?!\[redacted])([^\s&"',;)}\]<>]{3,})"""
)  # fmt: skip

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


def random_looking(run: str) -> bool:
    """Whether a run of letters and digits was drawn by chance, and is no word, name or id.

    Random text changes between small letters, capitals and digits at every third character or
    so; words, paths and names do not. Digests in hex count as random: a key may be spelt so.

    Example:
        >>> random_looking("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"), random_looking("src/isthmus/audit")
        (True, False)
    """
    if KNOWN_IDS.fullmatch(run):
        return False
    beginning = run[:LOOKED_AT]
    spelt = HEX.search(beginning)
    if spelt and not spelt.group().isalpha():
        return True
    kinds = beginning.translate(KINDS)
    pairs = len(kinds) - 1 - 2 * kinds.count(" ")
    odd = sum(kinds.count(pair) for pair in ODD)
    least = 0.15 if "9" in kinds else 0.22
    return pairs >= 12 and odd >= pairs * least  # below, chance and names are alike


def cleaned(text: str, *, chance: bool = True) -> str:
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
    if "=" in text or ":" in text or "%3" in text:
        text = NAMED.sub(rf"\1\2{REDACTED}", text)
    if " " in text:
        text = SCHEME.sub(rf"\1\2{REDACTED}", text)
    return RUN.sub(_run, text) if chance else text


def _run(found: re.Match[str]) -> str:
    run = found.group()
    return REDACTED if random_looking(run) else run


@lru_cache(maxsize=4096)
def names_a_secret(name: str) -> bool:
    """Whether a member of this name holds a secret, however it is spelt.

    Example:
        >>> names_a_secret("X-Api-Key"), names_a_secret("githubToken"), names_a_secret("tokens_in")
        (True, True, False)
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower()) if len(name) <= 128 else ""
    return plain in WHOLE_NAMES or (plain.endswith(NAMES) and plain not in NO_SECRETS)


def says_a_secret_follows(word: str) -> bool:
    """Whether a word of a command line says that the next one is a secret, as ``--token`` does."""
    return word.startswith("-") and "=" not in word and names_a_secret(word)
