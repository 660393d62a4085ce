"""What authorization needs beyond the plain installation, and how one is told that it is missing."""

from isthmus.errors import UsageError

__all__ = ["missing", "require"]


def missing(what: str, error: ImportError) -> UsageError:
    """The exception for a library that is not installed.

    Args:
        what: what was to be done, as the beginning of a sentence.
        error: what Python said.

    Example::

        try:
            import keyring
        except ImportError as error:
            raise missing("Keeping tokens in the system's keyring", error) from error
    """
    name = error.name or "a library that is not installed"
    return UsageError(f"{what} takes {name}: pip install 'isthmus[auth]'")


def require(library: str, what: str) -> None:
    """Say at once that a library is not installed, without paying for its import yet.

    Args:
        library: its module.
        what: what takes it, as the beginning of a sentence.

    Raises:
        UsageError: it is not there.
    """
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise missing(what, ImportError(name=library))
