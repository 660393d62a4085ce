"""A real Chromium without a window, and servers for it on this machine."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn

__all__ = [
    "FLAGS",
    "Tab",
    "find_chromium",
    "launch_chromium",
    "make_certificate",
    "serve_in_browser",
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
)  # fmt: skip

ACTION_TIMEOUT_MS = 10_000  # of one click or look; a page that lacks something fails soon

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

HEAR = """
addEventListener("securitypolicyviolation", event =>
  console.error("violated: " + event.effectiveDirective + " " + event.blockedURI));
"""
"""Tells of what the policy of a page forbade; run by the driver, so no policy forbids it."""


def find_chromium() -> str | None:
    """The path of Chromium; ``CHROMIUM`` in the environment comes first."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@asynccontextmanager
async def launch_chromium(path: str) -> AsyncIterator[Any]:
    """A running Chromium with an empty profile of its own."""
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Tab:
    """One page of a browser with cookies of its own, and what was seen of it.

    Attributes:
        context: the browser's profile, as Playwright has it.
        page: the page, as Playwright has it.
        violated: what the policies of pages forbade.
        answers: method, URL and status of what was answered, in order.
        sent_to: where redirects led.
    """

    context: Any
    page: Any
    violated: list[str] = field(default_factory=list)
    answers: list[tuple[str, str, int]] = field(default_factory=list)
    sent_to: list[str] = field(default_factory=list)

    @classmethod
    async def of(cls, browser: Any, **options: Any) -> "Tab":
        """A new page in a new profile of a browser.

        Args:
            browser: from :func:`launch_chromium`.
            **options: of Playwright's ``new_context``.
        """
        context = await browser.new_context(**options)
        context.set_default_timeout(ACTION_TIMEOUT_MS)
        await context.add_init_script(HEAR)
        tab = cls(context, await context.new_page())
        tab.page.on("console", tab._said)
        tab.page.on("response", tab._answered)
        return tab

    def _said(self, message: Any) -> None:
        if "violat" in message.text or "Content Security Policy" in message.text:
            self.violated.append(message.text)

    def _answered(self, response: Any) -> None:
        self.answers.append((response.request.method, response.url, response.status))
        if "location" in response.headers:
            self.sent_to.append(response.headers["location"])

    async def heading(self) -> str:
        """The heading of the page."""
        return str(await self.page.locator("h1").inner_text())

    async def log_in(self, account: str, password: str) -> None:
        """Fill the form in and send it."""
        await self.page.get_by_label("User name").fill(account)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Sign in").click()

    async def press(self, button: str) -> None:
        """Press a button and wait for what comes of it."""
        await self.page.get_by_role("button", name=button).click()
        await self.page.wait_for_load_state()


@asynccontextmanager
async def serve_in_browser(
    make: Callable[[str], Any], *, host: str = "127.0.0.1", tls: Path | None = None
) -> AsyncIterator[tuple[str, Any]]:
    """An ASGI app on a free port of this machine: its URL without a slash, and the app.

    Args:
        make: makes the app, given the URL.
        host: how the URL names this machine.
        tls: a folder with a :func:`make_certificate`; serve https with it.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    scheme = "https" if tls else "http"
    url = f"{scheme}://{host}:{listener.getsockname()[1]}"
    app = make(url)
    files = {"ssl_certfile": tls / "cert.pem", "ssl_keyfile": tls / "key.pem"} if tls else {}
    config = uvicorn.Config(app, log_level="error", lifespan="off", loop="none", **files)
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # the signals are the tests' own
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        yield url, app
    finally:
        server.should_exit = server.force_exit = True
        await task
        listener.close()


def make_certificate(folder: Path) -> Path:
    """A certificate for this machine that nobody has signed but itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(private)
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder
