"""Models, reached over the network or played by a script: one seam, a file per way.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.host.providers.anthropic import Anthropic as Anthropic
    from isthmus.host.providers.failures import BadCredentials as BadCredentials
    from isthmus.host.providers.failures import ProviderBroke as ProviderBroke
    from isthmus.host.providers.failures import ProviderError as ProviderError
    from isthmus.host.providers.failures import ProviderRefused as ProviderRefused
    from isthmus.host.providers.failures import ProviderUnavailable as ProviderUnavailable
    from isthmus.host.providers.failures import RateLimited as RateLimited
    from isthmus.host.providers.failures import TooLong as TooLong
    from isthmus.host.providers.manual import Manual as Manual
    from isthmus.host.providers.openai_compatible import OpenAICompatible as OpenAICompatible
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
    "Anthropic": "anthropic",
    **dict.fromkeys(
        (
            "BadCredentials",
            "ProviderBroke",
            "ProviderError",
            "ProviderRefused",
            "ProviderUnavailable",
            "RateLimited",
            "TooLong",
        ),
        "failures",
    ),
    "Manual": "manual",
    "OpenAICompatible": "openai_compatible",
    **dict.fromkeys(("Completion", "Delta", "Done", "Offered", "Provider"), "provider"),
    **dict.fromkeys(("Scripted", "Slow", "When"), "scripted"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, and keep it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.host.providers' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"isthmus.host.providers.{home}"), name)
    return value
