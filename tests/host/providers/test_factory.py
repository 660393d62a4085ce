"""The providers of a file of models."""

import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers.anthropic import Anthropic
from isthmus.host.providers.factory import make_providers
from isthmus.host.providers.manual import Manual
from isthmus.host.providers.openai_compatible import OpenAICompatible
from isthmus.host.providers.provider import BadCredentials, Completion, ProviderEntry
from isthmus.host.sampling.models import EXAMPLE_FILE, Models

URL = "http://127.0.0.1:1/v1"


class Secrets:
    """A keyring with one key."""

    def get(self, path):
        """A secret."""
        return Secret("k") if path == "there" else None


async def test_each_kind_is_made():
    """We demand: the file says how each provider is reached."""
    entries = {
        "a": ProviderEntry(base_url=URL, key="${env:KEY}"),
        "b": ProviderEntry(kind="anthropic", key="${secret:there}"),
        "c": ProviderEntry(kind="manual"),
        "d": ProviderEntry(base_url=URL),
    }
    found = make_providers(entries, environ={"KEY": "k"}, secrets=Secrets(), ask=lambda _: None)
    kinds = [OpenAICompatible, Anthropic, Manual, OpenAICompatible]
    assert kinds == [type(found[name]) for name in "abcd"]
    assert list("abcd") == [provider.name for provider in found.values()]


async def test_a_missing_key_is_told_when_the_provider_is_needed():
    """We demand: one provider without its key costs the others nothing."""
    entries = {
        "a": ProviderEntry(base_url=URL, key="${env:GONE}"),
        "b": ProviderEntry(kind="anthropic"),
        "c": ProviderEntry(base_url=URL, key="${secret:gone}"),
    }
    found = make_providers(entries, environ={}, secrets=Secrets())
    says = ["the variable GONE", "providers.b: it needs a key", "no secret 'gone'"]
    for provider, why in zip(found.values(), says, strict=True):
        with pytest.raises(BadCredentials, match=why):
            await provider.models()
        with pytest.raises(BadCredentials, match=why):
            await anext(provider.complete(Completion(model="m", messages=[], max_tokens=1)))
        await provider.close()


@pytest.mark.covers("hostsampling.secrets.key")
@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (ProviderEntry(base_url=URL, key="sk-verbatim"), "a key must not be in the file"),
        (ProviderEntry(base_url="localhost:1"), "providers.a, base_url: it must be a URL"),
        (ProviderEntry(kind="manual"), "needs a person to ask"),
    ],
)
async def test_what_cannot_be_is_an_error_that_never_shows_a_key(entry, why):
    """We demand: keys stand in the environment or the keyring, and errors repeat none."""
    with pytest.raises(ConfigError, match=why) as error:
        make_providers({"a": entry}, environ={})
    assert "verbatim" not in str(error.value)


async def test_the_example_needs_its_key_only():
    """We demand: the file that people start from works as it is, but for the key."""
    found = make_providers(Models.read(EXAMPLE_FILE).providers, environ={"FARAWAY_API_KEY": "k"})
    assert ["local", "faraway"] == list(found)
