"""The models that a conversation can be had with: named on the command line, or in a file."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.host.host import Host
    from isthmus.host.providers.provider import Provider
    from isthmus.host.sampling.models import Models
    from isthmus.terminal.chat_session import Voice

__all__ = ["models_of", "named", "voices"]

NOTHING = (
    "no model is known: say --provider openai:URL, --provider anthropic or --provider scripted:FILE, "
    'or name a file of models in the configuration ("host": {"models": "models.toml"})'
)

CONTEXT = 32_768
"""Tokens that a model is taken to read and write together, where nobody says."""


def named(spec: str, environ: Mapping[str, str] = os.environ) -> "Provider | None":
    """The provider that the command line describes; None for the name of one in the file.

    Args:
        spec: what follows ``--provider``.
        environ: where ``OPENAI_API_KEY`` and ``ANTHROPIC_API_KEY`` are looked up.

    Raises:
        UsageError: it is incomplete, or there is no such file.
    """
    from isthmus.auth.secret import Secret

    kind, _, rest = spec.partition(":")
    if kind == "scripted":
        from isthmus.host.providers.script_file import scripted_from

        return scripted_from(rest)
    if kind == "openai":
        if not rest:
            raise UsageError("--provider openai:URL, with the URL that ends in /v1")
        from isthmus.host.providers.openai_compatible import OpenAICompatible

        key = environ.get("OPENAI_API_KEY")
        return OpenAICompatible(rest, Secret(key) if key else None)
    if spec == "anthropic":
        from isthmus.host.providers.anthropic import Anthropic

        key = environ.get("ANTHROPIC_API_KEY")
        if not key:
            raise UsageError("--provider anthropic needs its key in ANTHROPIC_API_KEY")
        return Anthropic(Secret(key))
    return None


async def models_of(provider: "Provider", model: str) -> "Models":
    """The models of a provider of the command line, for the conversation and for servers that sample.

    Args:
        provider: which one.
        model: the one that is wanted; empty for all that it says it has.

    Raises:
        ProviderError: it does not say which it has.
    """
    from isthmus.host.providers.provider import Offered
    from isthmus.host.sampling.models import Model, Models

    offered = [Offered(id=model)] if model else await provider.models()
    return Models(
        [
            Model(id=one.id, provider=provider.name, context=one.context or CONTEXT, tools=True)
            for one in offered
        ],
        source="--provider",
    )


def voices(host: "Host", spec: str, model: str) -> tuple[dict[str, "Voice"], str]:
    """The models there are to talk to, and the one to begin with.

    Args:
        host: has the models.
        spec: the name of a provider; empty for all of them.
        model: the model that is wanted; empty for the first one.

    Raises:
        UsageError: there is none, or no such one.
    """
    from isthmus.terminal.chat_session import Voice

    found = {
        one.id: Voice(host.providers[one.provider], one.called, one.context)
        for one in host.models
        if one.enabled and one.provider in host.providers and spec in {"", one.provider}
    }
    if not found:
        raise UsageError(f"there is no provider {spec!r}" if spec else NOTHING)
    if model and model not in found:
        raise UsageError(f"there is no model {model!r}: {', '.join(found)}")
    return found, model or next(iter(found))
