"""Extension as an object: what one side of it serves and hears, ready to be put in place.

A package that ships an extension exports one of these for servers and, where clients hear
something of it, one for clients::

    refunds = Extension("com.example/refunds", {"currencies": ["EUR"]})

    @refunds.method("refunds/create", params=Refund, result=Receipt)
    async def create(refund: Refund, ctx: Context) -> Receipt: ...

Its user puts it in place by ``server.extend(refunds)`` or ``Client(…, extensions=[refunds])``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from isthmus.core.extensions import check_identifier, check_own_method, check_settings
from isthmus.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")


class ExtensionMethod(msgspec.Struct, frozen=True):
    """A method of an extension.

    Attributes:
        fn: ``fn(params)``, or with a context: what serves it.
        params: what its params decode to.
        result: what its results decode to; None where there is nothing to say.
        scopes: what its callers must have been granted, as for tools.
    """

    fn: Callable[..., Any]
    params: Any
    result: Any = None
    scopes: Any = frozenset()


class ExtensionNotice(msgspec.Struct, frozen=True):
    """A notification of an extension.

    Attributes:
        fn: ``fn(params)``, or with a context on a server: what is told.
        params: what its params decode to.
    """

    fn: Callable[..., Any]
    params: Any


class Extension:
    """An optional addition to the protocol, on one side of it.

    Args:
        identifier: a prefix, a slash and a name: ``"com.example/refunds"``.
        settings: what is declared about it, an object whose shape the extension says; nothing
            by default.

    Attributes:
        methods: what serves each of its methods, on a server.
        notices: what is told of each of its notifications.
        middleware: layers around everything that a server serves to clients with the extension.

    Raises:
        UsageError: the identifier breaks the naming rules, or the settings are no object.
    """

    def __init__(self, identifier: str, settings: Mapping[str, Any] | None = None) -> None:
        self.identifier = check_identifier(identifier)
        self.settings = check_settings(identifier, settings)
        self.methods: dict[str, ExtensionMethod] = {}
        self.notices: dict[str, ExtensionNotice] = {}
        self.middleware: list[Any] = []

    def __repr__(self) -> str:
        return f"Extension({self.identifier!r})"

    def method(
        self, name: str, /, *, params: type, result: type | None = None, scopes: Any = frozenset()
    ) -> Callable[[F], F]:
        """Decorate what serves a method, for clients that declared the extension.

        Others are refused: by -32021 and what is missing, or up to 2025-11-25 as for a method
        that does not exist.

        Args:
            name: the method.
            params: what its params decode to.
            result: what its results decode to.
            scopes: what its callers must have been granted; as for ``server.method``.

        Raises:
            UsageError: the name is taken.
        """

        def decorate(fn: F) -> F:
            self._check(name)
            self.methods[name] = ExtensionMethod(fn, params, result, scopes)
            return fn

        return decorate

    def on_notification(self, name: str, /, *, params: Any = dict) -> Callable[[F], F]:
        """Decorate what is told of a notification of the other side.

        Args:
            name: the notification's method.
            params: what its params decode to.

        Raises:
            UsageError: the name is taken.
        """

        def decorate(fn: F) -> F:
            self._check(name)
            self.notices[name] = ExtensionNotice(fn, params)
            return fn

        return decorate

    def use(self, middleware: M, /) -> M:
        """Put ``middleware`` around all that a server serves to clients that declared the extension.

        Args:
            middleware: the layer: an object with hooks, or an async function.
        """
        self.middleware.append(middleware)
        return middleware

    def _check(self, name: str) -> None:
        check_own_method(name)
        if name in self.methods or name in self.notices:
            raise UsageError(f"{self.identifier} has {name!r} already")


Extensions: TypeAlias = Mapping[str, Mapping[str, Any]] | Iterable[Extension]
"""The extensions of one side: objects, or settings by identifier where there is nothing more."""


def collect_extensions(extensions: Extensions | None) -> list[Extension]:
    """Extensions as objects, from either way to give them.

    Raises:
        UsageError: an identifier breaks the naming rules, or something is no extension.
    """
    if extensions is None:
        return []
    if isinstance(extensions, Mapping):
        return [Extension(identifier, settings) for identifier, settings in extensions.items()]
    found = list(extensions)
    for one in found:
        if not isinstance(one, Extension):
            raise UsageError(
                f"extensions are Extension objects, or a dict of settings by identifier; not {one!r}"
            )
    return found
