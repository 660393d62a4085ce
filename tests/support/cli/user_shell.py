"""The shell of a user: commands as processes, with a home and a browser of their own."""

import asyncio
import os
import sys

from isthmus.auth import FileTokenStore

KEY = "k" * 43

BROWSER = """
import sys, urllib.error, urllib.request
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
try:
    urllib.request.build_opener(Stay).open(sys.argv[1])
except urllib.error.HTTPError as moved:
    urllib.request.urlopen(moved.headers["Location"]).read()
"""


class UserShell:
    """Runs commands of one user."""

    def __init__(self, home):
        script = home / "browser.py"
        script.write_text(BROWSER)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environ = {
            **kept,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "ISTHMUS_STORE_KEY": KEY,
            "BROWSER": f"{sys.executable} {script} %s",
        }
        self.path = home / "state" / "isthmus" / "tokens-by-variable.json"

    async def begun(self, *words, **more):
        """A command that runs."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "isthmus", *words,
            stdin=pipe, stdout=pipe, stderr=pipe, env={**self.environ, **more},
        )  # fmt: skip

    async def __call__(self, *words, typed="", **more):
        """A command's exit code, and what it wrote to both outputs."""
        process = await self.begun(*words, **more)
        out, err = await process.communicate(typed.encode())
        return process.returncode, out.decode(), err.decode()

    async def records(self):
        """All that is kept."""
        store = FileTokenStore(self.path, KEY)
        return [await store.get(key) for key in await store.keys()]
