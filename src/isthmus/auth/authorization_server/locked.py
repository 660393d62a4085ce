"""What it means that another process holds the store: who asks is told to come back soon."""

from isthmus.errors import AuthError
from isthmus.store.database import PATIENCE, is_locked

__all__ = ["PATIENCE", "RETRY", "StoreLocked", "is_locked"]

RETRY = 5
"""Seconds until another try has a chance."""


class StoreLocked(AuthError):
    """Another process holds a file of the authorization server: nothing was done, try again."""
