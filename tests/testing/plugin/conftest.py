"""Runs of pytest inside of pytest, with the plugin as people have it."""

import sys
from pathlib import Path

import pytest

SHOP = '''
from isthmus import Context, Server

server = Server("shop", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def greet(ctx: Context) -> str:
    """Greet the user by name."""
    return (await ctx.elicit("What is your name?", str)).value


@server.tool
async def think(ctx: Context) -> str:
    """Have a model think."""
    return (await ctx.sample("Think.", max_tokens=5)).text


if __name__ == "__main__":
    server.run()
'''

QUIET = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:schemathesis")
STRICT = ("-W", "error", "--strict-markers", "--strict-config")


class ModuleKeeper:
    """Keeps the modules that a run imported, which pytester has forgotten after it.

    A class that is there twice, as that of an exception, is not caught by whoever has the other.
    """

    def __init__(self):
        self.modules = {}

    def pytest_sessionfinish(self):
        """Note them all, but for those of the run's own project."""
        own = str(Path.cwd())
        for name, module in sys.modules.items():
            if not str(getattr(module, "__file__", "")).startswith(own):
                self.modules.setdefault(name, module)

    def restore(self):
        """Put back what is gone."""
        for name, module in self.modules.items():
            sys.modules.setdefault(name, module)


@pytest.fixture(autouse=True)
def keeper():
    """Around everything that pytester does."""
    keeper = ModuleKeeper()
    yield keeper
    keeper.restore()


@pytest.fixture
def run(keeper, pytester, monkeypatch):
    """Runs a test file beside a server, as in a project of its own."""
    monkeypatch.setenv("CI", "")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # a file that is written twice in a second, as long as before, would be taken from its bytecode
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    pytester.makepyfile(shop=SHOP)
    pytester.makeini("[pytest]\npythonpath = .\n")

    def do(text, *options, others=()):
        """The result of the tests in a text; ``others`` are the plugins of async that there are."""
        for name in ("shop", "test_shop"):  # those of another test, whose folder is another one
            sys.modules.pop(name, None)
        pytester.makepyfile(test_shop="import pytest\nfrom shop import server\n" + text)
        away = [f for name in {"asyncio", "anyio"} - {*others} for f in ("-p", f"no:{name}")]
        if "asyncio" in others:
            away += ["-o", "asyncio_default_fixture_loop_scope=function"]
        result = pytester.runpytest_inprocess(*QUIET, *STRICT, *away, *options, plugins=[keeper])
        keeper.restore()
        return result

    return do
