"""Forms of secrets: the one list of what looks like a secret, by its look or by its name.

The patterns are text; who looks for them compiles them. Each takes time linear in the text: what a
repetition took it keeps, and no position is the start of a second walk through the same run.
"""

import re
from functools import lru_cache

# By its look

# A JWT or JWE, and what stands before it in the run of its letters: it is looked for once in each
# run, and only where a dot ends the run.
BEFORE_JWT = r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]++\.[A-Za-z0-9_-]{2})(?:[A-Za-z0-9_-]*?[_-])??"
JWT = r"eyJ[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]{2,}+(?:\.[A-Za-z0-9_-]*+){0,3}"

# The prefixes that issuers gave their keys so that they are found.
ISSUED_KEY = (
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{8,}+|[pr]k-[A-Za-z0-9_-]{12,}+"  # OpenAI, Anthropic, Langfuse
    r"|(?:sk|rk|pk|whsec)_(?:(?:live|test)_)?[A-Za-z0-9]{10,}+"  # Stripe
    r"|(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA|ANVA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{16,}+"
    r"|gl(?:pat|dt|rt|cbt|ptt|oas)-[A-Za-z0-9_-]{16,}+"  # GitLab
    r"|xox[abceoprs]-[A-Za-z0-9-]{8,}+|xapp-[A-Za-z0-9-]{8,}+"  # Slack
    r"|AIza[A-Za-z0-9_-]{30,}+|ya29\.[A-Za-z0-9_-]{16,}+"  # Google
    r"|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{30,}+|hf_[A-Za-z0-9]{20,}+"
    r"|SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+|dop_v1_[a-f0-9]{32,}+|shpat_[a-fA-F0-9]{32,}+)"
)

PEM = (  # also one that was cut off
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.)*?"
    r"(?:-----END [A-Z0-9 ]{0,60}-----|\Z)"
)

# Between two "://" nothing is looked at twice: no userinfo has a slash.
USERINFO = r"(?<=://)[^\s/?#@\"'<>]{1,4096}@"

# By its name

# The end of a name, in a text, that says that a secret follows.
NAME_END = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|"
    r"private[_-]?key|signature|credentials?|assertion|code_verifier|device_code|authorization|"
    r"cookie|oauth2-bearer|(?<![a-z])pass|(?<![a-z0-9])(?:otp|cvc|cvv|ssn|jwt|pw))"
)

# The end of a member's name, in the singular, without what stands between its words.
SUFFIXES = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "bearer", "cookie"),
    *("authorization", "apikey", "accesskey", "secretkey", "privatekey", "keyid", "sessionid"),
    *("connectionstring", "credential", "credentials", "assertion", "codeverifier", "devicecode"),
    "signature",
)
LAST_WORDS = {"otp", "pin", "cvc", "cvv", "ssn", "jwt"}  # so short that other words end so
WHOLE_NAMES = {"auth", "pass", "pw", *LAST_WORDS}
NO_SECRETS = {"progresstoken", "pagetoken", "nextpagetoken", "continuationtoken", "synctoken"}
# A name that is probably that of a secret, as configuration files have them.
LIKELY_SECRET_NAME = re.compile(
    r"(?i)(?:^|[^a-z])(?:pat|pin|dsn)(?:$|[^a-z])"
    r"|token|key|secret|passw|passphrase|_pwd|credential|auth(?!ors?(?:$|[_ -]))|cookie"
)
MAX_NAME_CHARS = 128  # the end of a longer one is looked at

# Flags of a command line before a user and their password.
USER_FLAGS = ("-u", "-U", "--user", "--proxy-user", "--userpwd", "--creds", "--login")


def names_secret(name: str) -> bool:
    """Whether a member of this name holds a secret, however it is spelt.

    Example:
        >>> names_secret("X-Api-Key"), names_secret("githubToken"), names_secret("tokens_in")
        (True, True, False)
    """
    return _names_secret(name[-MAX_NAME_CHARS:])


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    plain = squeeze_name(name)
    if plain in NO_SECRETS:
        return False
    return plain in WHOLE_NAMES or plain.endswith(SUFFIXES) or read_last_word(name) in LAST_WORDS


def is_secret_name(name: str) -> bool:
    """The same for a name in the plural, too, and for tokens of pages, which name what was read.

    Example:
        >>> is_secret_name("tokens[]"), is_secret_name("pageToken"), is_secret_name("opinions")
        (True, True, False)
    """
    if squeeze_name(name).removesuffix("s").endswith(SUFFIXES):
        return True
    return names_secret(name) or read_last_word(name).removesuffix("s") in LAST_WORDS


def announces_secret(word: str) -> bool:
    """Whether a word of a command line says that the next one is a secret, as ``--token`` does."""
    return word.startswith("-") and "=" not in word and names_secret(word)


def squeeze_name(name: str) -> str:
    """A name in small letters and digits, without what stands between its words."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def read_last_word(name: str) -> str:
    """The last word of a name, as ``pin`` is of ``db_pin`` and of ``dbPin``."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+", name)
    return words[-1].lower() if words else ""


def may_name_secret(name: str) -> bool:
    """Whether a variable or a member of a configuration is probably a secret; wider than the others."""
    return LIKELY_SECRET_NAME.search(name) is not None
