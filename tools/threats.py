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
    "t02": "a name resolves to another address once it was checked",
    "t03": "a redirect leads a fetch to a private address",
    "t04": "a client's document, key or logo URL has the server fetch private addresses",
    "t05": "a client's metadata document claims what is not so",
    "t06": "a hostile authorization server gets the code of an honest one (mix-up)",
    "t07": "an answer that nobody asked for shows its error text",
    "t08": "a forged or stray callback",
    "t09": "PKCE is talked down",
    "t10": "a code is redeemed twice, also at the same time",
    "t11": "a code is redeemed by another client, or for something else",
    "t12": "a refresh token is stolen",
    "t13": "refreshing in parallel logs the user out",
    "t14": "the server redirects to wherever a link says",
    "t15": "a redirect URI that only looks like this computer",
    "t16": "a URL that runs a program when it is opened",
    "t17": "a link uses somebody's consent for another client (confused deputy)",
    "t18": "one person consents, another one logs in",
    "t19": "a foreign page sends, or frames, the consent form",
    "t20": "a foreign page uses a consent that was remembered",
    "t21": "a token for another server, or ours handed on",
    "t22": "forged tokens: no signature, another algorithm or key, an ID token",
    "t23": "unknown keys without end, or a key server that is away",
    "t24": "another user's session or stream",
    "t25": "another user's handle or state",
    "t26": "a header that says less than the body",
    "t27": "a call hidden in a batch",
    "t28": "text that gets out of its quotes in a header",
    "t29": "secrets in logs, errors and pages",
    "t30": "a server that asks for more and more",
    "t31": "a server that changes its authorization server to get credentials",
    "t32": "metadata that is another server's, or a server below another on its origin",
    "t33": "a proof of possession used again, or left out",
    "t34": "an assertion used again, or elsewhere",
    "t35": "registrations without number or sense",
    "t36": "guessing passwords and names",
    "t37": "a stolen file of tokens",
    "t38": "another program of this computer takes the callback",
    "t39": "a stream that outlives its token",
    "t40": "a cache that shows one user's list to another",
    "t41": "a parameter that is there twice, or where it must not be",
}

HEAD = """# Threats

<!-- Made by `python tools/threats.py` from tests/requirements/auth.toml and the tests. -->

What somebody may try against authorization, on any of the three roles, what holds against it, and
the tests that try it. Each runs on the real code, most over HTTP; the whole suite of
authorization runs under a watch that fails a test when a secret stands in a log, an error or a page.

| | somebody tries | what holds | tried in |
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
