"""Checks of constructor arguments: numbers in range, and libraries of the extra ``auth`` that are installed."""

from isthmus.errors import UsageError
from isthmus.lazy import is_installed


def check_number(
    name: str,
    value: object,
    *,
    least: float = 0,
    above: float | None = None,
    whole: bool = False,
    unit: str = "seconds",
) -> None:
    """See that a setting is a number that it can be.

    Args:
        name: of the argument.
        value: what was given.
        least: the smallest that will do.
        above: what it has to be more than, instead.
        whole: whether it has no fraction.
        unit: what it counts.

    Raises:
        UsageError: it is no number, or too small.
    """
    kinds = int if whole else (int, float)
    good = isinstance(value, kinds) and not isinstance(value, bool)
    if good and (value > above if above is not None else value >= least):  # type: ignore[operator]  # a number
        return
    kind = "a whole number" if whole else "a number"
    bound = f"{least:g} or more" if above is None else f"more than {above:g}"
    raise UsageError(f"{name}= is {kind} of {unit}, {bound}, not {value!r}")


def missing_library_error(what: str, error: ImportError) -> UsageError:
    """The exception for a library that is not installed.

    Args:
        what: what was to be done, as the beginning of a sentence.
        error: what Python said.

    Example::

        try:
            import keyring
        except ImportError as error:
            raise missing_library_error("Keeping tokens in the system's keyring", error) from error
    """
    name = error.name or "a library that is not installed"
    return UsageError(f"{what} takes {name}: pip install 'isthmus[auth]'")


def require_library(library: str, what: str) -> None:
    """Say at once that a library is not installed, without paying for its import yet.

    Args:
        library: its module.
        what: what takes it, as the beginning of a sentence.

    Raises:
        UsageError: it is not there.
    """
    if not is_installed(library):
        raise missing_library_error(what, ImportError(name=library))
