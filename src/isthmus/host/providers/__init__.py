"""Providers of models, over the network, by hand or by a script: one protocol, a file per way.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.host.providers.anthropic import Anthropic as Anthropic
    from isthmus.host.providers.manual import Manual as Manual
    from isthmus.host.providers.openai_compatible import OpenAICompatible as OpenAICompatible
    from isthmus.host.providers.provider import (
        BadCredentials,
        ProviderBroke,
        ProviderError,
        ProviderRefused,
        ProviderUnavailable,
        RateLimited,
        TooLong,
    )
    from isthmus.host.providers.provider import Completion as Completion
    from isthmus.host.providers.provider import Delta as Delta
    from isthmus.host.providers.provider import Done as Done
    from isthmus.host.providers.provider import Offered as Offered
    from isthmus.host.providers.provider import Provider as Provider
    from isthmus.host.providers.scripted import Scripted as Scripted
    from isthmus.host.providers.scripted import Slow as Slow
    from isthmus.host.providers.scripted import When as When

__all__ = [
    "Anthropic",
    "BadCredentials",
    "Completion",
    "Delta",
    "Done",
    "Manual",
    "Offered",
    "OpenAICompatible",
    "Provider",
    "ProviderBroke",
    "ProviderError",
    "ProviderRefused",
    "ProviderUnavailable",
    "RateLimited",
    "Scripted",
    "Slow",
    "TooLong",
    "When",
]

_HOMES = {
    "Anthropic": "isthmus.host.providers.anthropic",
    "BadCredentials": "isthmus.host.providers.provider",
    "Completion": "isthmus.host.providers.provider",
    "Delta": "isthmus.host.providers.provider",
    "Done": "isthmus.host.providers.provider",
    "Manual": "isthmus.host.providers.manual",
    "Offered": "isthmus.host.providers.provider",
    "OpenAICompatible": "isthmus.host.providers.openai_compatible",
    "Provider": "isthmus.host.providers.provider",
    "ProviderBroke": "isthmus.host.providers.provider",
    "ProviderError": "isthmus.host.providers.provider",
    "ProviderRefused": "isthmus.host.providers.provider",
    "ProviderUnavailable": "isthmus.host.providers.provider",
    "RateLimited": "isthmus.host.providers.provider",
    "Scripted": "isthmus.host.providers.scripted",
    "Slow": "isthmus.host.providers.scripted",
    "TooLong": "isthmus.host.providers.provider",
    "When": "isthmus.host.providers.scripted",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
