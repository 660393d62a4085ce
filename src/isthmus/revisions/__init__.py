"""Revisions of the protocol: five tables of what may be said, and the projection of values onto them."""

from isthmus.revisions.codes import http_status, resource_not_found_code
from isthmus.revisions.legacy import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25
from isthmus.revisions.methods import METHODS, Method
from isthmus.revisions.modern import R2026_07_28
from isthmus.revisions.projection import accept, project
from isthmus.revisions.table import Era, Feature, Revision, Sender

__all__ = [
    "BY_NAME",
    "LATEST",
    "LATEST_LEGACY",
    "LEGACY",
    "METHODS",
    "MODERN",
    "REVISIONS",
    "Era",
    "Feature",
    "Method",
    "Revision",
    "Sender",
    "accept",
    "http_status",
    "project",
    "resource_not_found_code",
]

REVISIONS = (R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28)
"""Every revision, oldest first."""

BY_NAME: dict[str, Revision] = {r.name: r for r in REVISIONS}
"""Every revision by its date."""

LEGACY = tuple(r for r in REVISIONS if r.era is Era.LEGACY)
"""The revisions that open with a handshake, oldest first."""

MODERN = tuple(r for r in REVISIONS if r.era is Era.MODERN)
"""The revisions whose requests stand alone, oldest first."""

LATEST_LEGACY = LEGACY[-1]
"""The newest revision that opens with a handshake."""

LATEST = REVISIONS[-1]
"""The newest revision."""
