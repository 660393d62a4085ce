"""``Inject``: the mark of a parameter whose value a function of the server makes for each call."""

from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from isthmus.errors import UsageError
from isthmus.server.schema.annotations import is_union


class Inject:
    """Dependency injection: ``user: Annotated[User, Inject(current_user)]``.

    The parameter is no part of the schema, and no caller can give it. The function makes its value before the
    call: plain, async, or a generator that yields it once and is closed after the call. It takes what a tool may
    take of the server (``Context``, ``Principal``, other dependencies), and the call's own arguments by their names.

    Example::

        async def connection(ctx: Context):
            async with ctx.state.pool.acquire() as connection:
                yield connection

        @server.tool
        async def rows(table: str, db: Annotated[Connection, Inject(connection)]) -> int:
            return await db.count(table)

    Args:
        dependency: the function.
        cached: whether all that take it in one call share one value.
        blocking: whether a plain function may block, and belongs in a thread; as for tools, it may by default.

    Raises:
        UsageError: it is no function.
    """

    __slots__ = ("blocking", "cached", "dependency")

    def __init__(
        self,
        dependency: Callable[..., Any],
        /,
        *,
        cached: bool = True,
        blocking: bool | None = None,
    ) -> None:
        if not callable(dependency):
            raise UsageError(
                f"Inject({dependency!r}): it takes the function that makes the value, as Inject(current_user)"
            )
        self.dependency = dependency
        self.cached = cached
        self.blocking = blocking

    def __repr__(self) -> str:
        return f"Inject({getattr(self.dependency, '__qualname__', self.dependency)})"


def find_inject(annotation: Any, default: Any) -> Inject | None:
    """The mark of a parameter, if it has one.

    Raises:
        UsageError: it has one where it does not count.
    """
    if isinstance(default, Inject) or default is Inject:
        raise UsageError(
            "Inject belongs into the annotation: write user: Annotated[User, Inject(current_user)]"
        )
    if get_origin(annotation) is Annotated:
        for mark in annotation.__metadata__:
            if isinstance(mark, Inject):
                return mark
            if mark is Inject:
                raise UsageError(
                    "Inject takes the function that makes the value, as Inject(current_user)"
                )
        annotation = annotation.__origin__
    if is_union(annotation):
        for branch in get_args(annotation):
            if find_inject(branch, None) is not None:
                raise UsageError(
                    "Inject must be in the outermost annotation: write Annotated[User | None, Inject(current_user)]"
                )
    return None
