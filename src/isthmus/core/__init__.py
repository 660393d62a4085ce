"""The conversation as pure state: no I/O, no clock, no randomness (see ``README.md`` here)."""

from isthmus.core.session import Session

__all__ = ["Session"]
