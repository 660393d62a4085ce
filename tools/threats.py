"""Writes ``docs/concepts/threats.md`` from ``tests/requirements/auth.toml`` and the tests.

Run ``python tools/threats.py`` after a threat, or the place of its tests, has changed; a test
compares.
"""

import ast
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "concepts" / "threats.md"

THREATS: Mapping[str, str] = {
    "t01": "a server's metadata sends the client to private addresses (SSRF)",
    "t02": "a name resolves to another address after the check (DNS rebinding)",
    "t03": "a redirect leads a fetch to a private address",
    "t04": "a client's document, key or logo URL makes the server fetch from private addresses",
    "t05": "a client's metadata document contains false claims",
    "t06": "a hostile authorization server gets the code of an honest one (mix-up)",
    "t07": "an unsolicited answer injects error text",
    "t08": "a callback is forged or unrelated",
    "t09": "PKCE is downgraded",
    "t10": "a code is redeemed twice, or twice at the same time",
    "t11": "a code is redeemed by another client, or for another resource",
    "t12": "a refresh token is stolen",
    "t13": "parallel refreshes log the user out",
    "t14": "the server redirects to any URL in a link (open redirect)",
    "t15": "a redirect URI only looks like a loopback address",
    "t16": "a URL runs a program when it is opened",
    "t17": "a link uses a user's consent for another client (confused deputy)",
    "t18": "one person consents, and another one logs in",
    "t19": "another page sends or frames the consent form",
    "t20": "another page uses a remembered consent",
    "t21": "a token for another server is used, or a server's token is passed on",
    "t22": "tokens are forged: no signature, another algorithm or key, an ID token",
    "t23": "tokens name unlimited unknown keys, or the key server is down",
    "t24": "a caller uses another user's session or stream",
    "t25": "a caller uses another user's handle or state",
    "t26": "a header names less than the body contains",
    "t27": "a call is hidden in a batch",
    "t28": "text escapes from its quotes in a header",
    "t29": "secrets appear in logs, errors and pages",
    "t30": "a server asks for more and more scopes",
    "t31": "a server changes its authorization server to get credentials",
    "t32": "metadata belongs to another server, or to a server above this one on the same origin",
    "t33": "a DPoP proof is reused or omitted",
    "t34": "an assertion is reused, or used elsewhere",
    "t35": "clients register in unlimited numbers or with invalid data",
    "t36": "passwords and account names are guessed",
    "t37": "a file of tokens is stolen",
    "t38": "another program on this computer intercepts the callback",
    "t39": "a stream outlives its token",
    "t40": "a cache shows one user's list to another user",
    "t41": "a parameter is repeated, or is in a wrong place",
}

HEAD = """# Threats

<!-- Made by `python tools/threats.py` from tests/requirements/auth.toml and the tests. -->

This table lists the attacks on authorization, in any of its three roles, the protection against each, and
the tests that try it. The tests run the real code, most of them over HTTP. A watch fails every
test of authorization in which a secret appears in a log, an error or a page.

| | attack | protection | tests |
| --- | --- | --- | --- |
"""


def proofs() -> dict[str, list[Path]]:
    """The test files that say they prove each requirement."""
    found: dict[str, list[Path]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "auth.threat." not in text:
            continue
        named = {
            node.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        for name in named:
            if name.startswith("auth.threat."):
                found.setdefault(name, []).append(path)
    return found


def page() -> str:
    """The whole page."""
    rows = tomllib.loads((TESTS / "requirements" / "auth.toml").read_text(encoding="utf-8"))
    proved = proofs()
    lines = []
    for row in rows["requirement"]:
        if not row["id"].startswith("auth.threat."):
            continue
        number, _, text = row["text"].partition(": ")
        tests = ", ".join(link(path) for path in proved.get(row["id"], ()))
        key = row["id"].removeprefix("auth.threat.").split("-")[0]
        lines.append(f"| {number} | {THREATS[key]} | {text} | {tests} |")
    return HEAD + "\n".join(lines) + "\n"


def link(path: Path) -> str:
    """A link from the page to a test."""
    return f"[{path.stem.removeprefix('test_')}]({os.path.relpath(path, PAGE.parent)})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
