"""Event loop of a test: async tests and fixtures that use the plugin run without any other plugin.

Where pytest-asyncio or anyio runs a test, it is left to them; the rest is run here. In every case
what the test opened through our fixtures is closed on the loop that it was opened on.
"""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any

import pytest

from isthmus.testing.clock import VirtualLoop
from isthmus.testing.plugin import has_fixture, uses_plugin

RUN_HOOKS = "isthmus-run"


def install(config: pytest.Config) -> None:
    """Put the hooks in place that run tests; safe to call twice."""
    if not config.pluginmanager.hasplugin(RUN_HOOKS):
        config.pluginmanager.register(RunHooks(), RUN_HOOKS)


class VirtualFactories:
    """Hook of pytest-asyncio that has a test run on a :class:`VirtualLoop`."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_asyncio_loop_factories(self) -> Mapping[str, Callable[[], Any]]:
        """The one kind of loop there is."""
        return {"virtual": VirtualLoop}


@contextlib.contextmanager
def offer_virtual_loop(config: pytest.Config) -> Iterator[None]:
    """While a test is collected, let pytest-asyncio find the loop it is to run on."""
    hooks = VirtualFactories()
    config.pluginmanager.register(hooks)
    try:
        yield
    finally:
        config.pluginmanager.unregister(hooks)


# What a test has open

RESOURCES_KEY = pytest.StashKey["TestResources"]()


class TestResources:
    """Everything that one test opened, and that is checked when it ends.

    Args:
        item: the test.
    """

    __test__ = False  # it is no class of tests

    def __init__(self, item: pytest.Item) -> None:
        self.stack = contextlib.AsyncExitStack()
        self.checks: list[Callable[[], None]] = []
        self.causes: list[Callable[[], str | None]] = []
        self._item = item
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: asyncio.Runner | None = None

    def check_loop(self) -> None:
        """Note the loop that the test runs on; skip it where that is none of asyncio.

        Raises:
            pytest.fail.Exception: it asks for virtual time, and another plugin runs it.
        """
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            pytest.skip("isthmus runs on asyncio, and this test on another event loop (trio)")
        virtual = has_fixture(self._item, "virtual_time")
        if virtual and not isinstance(self._loop, VirtualLoop):
            pytest.fail(
                f"virtual_time needs isthmus.testing.VirtualLoop, and {type(self._loop).__name__} "
                "runs this test: leave it to isthmus (no mark of another plugin), or have that "
                "plugin make the loop; pytest-asyncio does since 1.4, and for anyio the fixture "
                "anyio_backend gives ('asyncio', {'loop_factory': VirtualLoop})",
                pytrace=False,
            )

    async def enter(self, manager: contextlib.AbstractAsyncContextManager[Any]) -> Any:
        """Open something that is closed when the test ends."""
        self.check_loop()
        return await self.stack.enter_async_context(manager)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the test's own loop."""
        return self.find_runner().run(coroutine)

    def find_runner(self) -> asyncio.Runner:
        """What runs the test's coroutines, made when it is first asked for."""
        if self._runner is None:
            virtual = has_fixture(self._item, "virtual_time")
            self._runner = asyncio.Runner(loop_factory=VirtualLoop if virtual else None)
            self._item.addfinalizer(self._runner.close)
        return self._runner

    def wrap(self, test: Callable[..., Any]) -> Callable[..., Any]:
        """An async test that closes what it opened on the loop that it runs on."""

        @functools.wraps(test)
        async def run(*args: Any, **kwargs: Any) -> None:
            self.check_loop()
            async with self.stack:
                await test(*args, **kwargs)

        return run

    def close(self) -> None:
        """Close what is still open: a fixture failed, or opened it for a test that is not async."""
        loop = self._loop
        if loop is not None and not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(self.stack.aclose())

    def find_cause(self) -> str | None:
        """Why a test failed, where that is known better than its exception says it."""
        return next((cause for find in self.causes if (cause := find()) is not None), None)

    def find_leftovers(self) -> str | None:
        """What a test that went well should have used, and did not."""
        for check in self.checks:
            try:
                check()
            except AssertionError as error:
                return str(error)
        return None


def find_resources(request: pytest.FixtureRequest) -> TestResources:
    """What the test of a fixture has open."""
    item: pytest.Item = request.node
    if RESOURCES_KEY not in item.stash:
        install(item.config)
        item.stash[RESOURCES_KEY] = made = TestResources(item)
        if not is_run_by_others(item):
            made.find_runner()  # before what is opened, so that it ends after that
        item.addfinalizer(made.close)
    return item.stash[RESOURCES_KEY]


# Who runs a test


def is_run_by_others(item: pytest.Item) -> bool:
    """Whether another plugin runs a test, and its async fixtures."""
    if "anyio_backend" in getattr(item, "fixturenames", ()):
        return True
    if not item.config.pluginmanager.hasplugin("asyncio"):
        return False
    return item.get_closest_marker("asyncio") is not None or is_auto_mode(item.config)


def is_auto_mode(config: pytest.Config) -> bool:
    """Whether pytest-asyncio runs all that is async."""
    given = config.getoption("asyncio_mode", default=None)
    if given is None:
        with contextlib.suppress(ValueError):
            given = config.getini("asyncio_mode")
    return str(getattr(given, "value", given)) == "auto"


class RunHooks:
    """Hooks that run tests and fixtures; in place where a session uses the plugin."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Close what an async test opened on its own loop, whoever runs it."""
        resources = item.stash.get(RESOURCES_KEY, None)
        if resources is None or not isinstance(item, pytest.Function):
            return (yield)
        test = item.obj
        if not inspect.iscoroutinefunction(test):
            return (yield)
        item.obj = resources.wrap(test)
        try:
            return (yield)
        finally:
            item.obj = test

    @pytest.hookimpl
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an async test that nobody else runs."""
        test = pyfuncitem.obj
        if not inspect.iscoroutinefunction(test) or not uses_plugin(pyfuncitem):
            return None
        names = inspect.signature(test).parameters
        given = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
        resources = pyfuncitem.stash.get(RESOURCES_KEY, None) or TestResources(pyfuncitem)
        resources.run(test(**given))
        return True

    @pytest.hookimpl(wrapper=True, specname="pytest_pyfunc_call")
    def pytest_pyfunc_call_and_check(
        self, pyfuncitem: pytest.Function
    ) -> Generator[None, Any, Any]:
        """Fail a test that went well, but left answers or recordings unused."""
        resources = pyfuncitem.stash.get(RESOURCES_KEY, None)
        if resources is None:
            return (yield)
        try:
            result = yield
        except Exception:
            wrong = resources.find_cause()
            if wrong is None:
                raise
        else:
            wrong = resources.find_leftovers()
            if wrong is None:
                return result
        pytest.fail(wrong, pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Run an async fixture of a test that uses the plugin."""
        func, item = fixturedef.func, request.node
        generates = inspect.isasyncgenfunction(func)
        if not (generates or inspect.iscoroutinefunction(func)) or not uses_plugin(item):
            return (yield)
        if is_run_by_others(item):
            adopt_fixture(func, item)
            return (yield)
        resources = find_resources(request)
        bound = bind_fixture(func, request)
        run = run_generator(bound, resources) if generates else run_coroutine(bound, resources)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fixturedef, "func", run)
            return (yield)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Say which files were written."""
        for path in config.stash.get(WRITTEN_KEY, ()):
            terminalreporter.write_line(f"isthmus: wrote {path}")


WRITTEN_KEY = pytest.StashKey[list[str]]()


def adopt_fixture(func: Callable[..., Any], item: pytest.Item) -> None:
    """Have pytest-asyncio run a fixture of a test that it runs, in its strict mode, too."""
    if "anyio_backend" in getattr(item, "fixturenames", ()):
        return  # anyio runs all of them
    import pytest_asyncio  # it is there: it runs the test

    pytest_asyncio.fixture(getattr(func, "__func__", func))  # marks the function


def bind_fixture(func: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A fixture that is a method, on the instance that the test has."""
    owner = getattr(func, "__self__", None)
    if owner is None or request.instance is None or not isinstance(request.instance, type(owner)):
        return func
    bound: Callable[..., Any] = func.__func__.__get__(request.instance)  # type: ignore[attr-defined]
    return bound


def run_coroutine(func: Callable[..., Any], resources: TestResources) -> Callable[..., Any]:
    """An async fixture as one that is not."""

    def run(**kwargs: Any) -> Any:
        return resources.run(func(**kwargs))

    return run


def run_generator(
    func: Callable[..., AsyncIterator[Any]], resources: TestResources
) -> Callable[..., Iterator[Any]]:
    """An async generator fixture as one that is not async."""

    async def advance(values: AsyncIterator[Any]) -> Any:
        return await anext(values)

    def run(**kwargs: Any) -> Iterator[Any]:
        values = func(**kwargs)
        yield resources.run(advance(values))
        with contextlib.suppress(StopAsyncIteration):
            resources.run(advance(values))
            raise ValueError("an async fixture yields once")

    return run
