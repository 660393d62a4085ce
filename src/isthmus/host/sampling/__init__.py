"""Sampling: the user's own model writes for a server, with the user in charge.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.host.providers.provider import ProviderEntry
    from isthmus.host.sampling.models import Model as Model
    from isthmus.host.sampling.models import Models as Models
    from isthmus.host.sampling.models import Weights as Weights
    from isthmus.host.sampling.request import edits
    from isthmus.host.sampling.selection import Need as Need
    from isthmus.host.sampling.selection import NoModel as NoModel
    from isthmus.host.sampling.selection import Selection as Selection
    from isthmus.host.sampling.selection import select as select

__all__ = [
    "Model",
    "Models",
    "Need",
    "NoModel",
    "ProviderEntry",
    "Selection",
    "Weights",
    "edits",
    "select",
]

_HOMES = {
    "Model": "isthmus.host.sampling.models",
    "Models": "isthmus.host.sampling.models",
    "Need": "isthmus.host.sampling.selection",
    "NoModel": "isthmus.host.sampling.selection",
    "ProviderEntry": "isthmus.host.providers.provider",
    "Selection": "isthmus.host.sampling.selection",
    "Weights": "isthmus.host.sampling.models",
    "edits": "isthmus.host.sampling.request",
    "select": "isthmus.host.sampling.selection",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
