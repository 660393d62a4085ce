"""Sampling handlers: models behind an API that write for servers, for ``Client(sample=…)``."""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.sampling.api_sampling import AnthropicSamplingHandler as AnthropicSamplingHandler
    from isthmus.sampling.api_sampling import OpenAISamplingHandler as OpenAISamplingHandler

__all__ = ["AnthropicSamplingHandler", "OpenAISamplingHandler"]

_HOMES = {
    "AnthropicSamplingHandler": "isthmus.sampling.api_sampling",
    "OpenAISamplingHandler": "isthmus.sampling.api_sampling",
}

__getattr__ = lazy_getattr(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
