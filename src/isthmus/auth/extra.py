"""What authorization needs beyond the plain installation, and how one is told that it is missing."""

from isthmus.errors import UsageError

__all__ = ["missing"]


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
