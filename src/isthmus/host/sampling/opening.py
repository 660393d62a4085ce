"""A sampler, put together from the file of models and what a program gives besides."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.host.sampling.models import Models
from isthmus.host.sampling.sampler import Sampler

if TYPE_CHECKING:
    from isthmus.host.pipeline import Pipeline
    from isthmus.host.providers.provider import Provider
    from isthmus.host.state import HostState

__all__ = ["opened", "reread"]


def opened(
    pipeline: "Pipeline",
    models: "Models | str | os.PathLike[str]",
    providers: "Mapping[str, Provider] | None",
    state: "HostState",
    *,
    environ: Mapping[str, str] = os.environ,
) -> Sampler:
    """A sampler with these models.

    Args:
        pipeline: what every request passes.
        models: the models, or their file.
        providers: those that a program has; they go before the file's of the same name.
        state: where budgets are kept.
        environ: where the file's keys are looked up, if they are not in the keyring.

    Raises:
        ConfigError: the file says what cannot be.
    """
    if not isinstance(models, Models):
        models = Models.read(models)
    return Sampler(pipeline, models, reachable(pipeline, models, providers, environ), state)


def reread(
    sampler: Sampler,
    path: "str | os.PathLike[str]",
    providers: "Mapping[str, Provider] | None",
    *,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Give a sampler the models that stand in a file by now; answers under way come to their end.

    Args:
        sampler: has the models of before, and keeps them where the file cannot be.
        path: the file.
        providers: those that a program has.
        environ: where the file's keys are looked up.

    Raises:
        ConfigError: the file says what cannot be.
    """
    models = Models.read(path)
    sampler.replace(models, reachable(sampler.pipeline, models, providers, environ))


def reachable(
    pipeline: "Pipeline",
    models: Models,
    providers: "Mapping[str, Provider] | None",
    environ: Mapping[str, str],
) -> dict[str, "Provider"]:
    """The providers that a program has, and those of the file."""
    given = dict(providers or {})
    entries = {name: one for name, one in models.providers.items() if name not in given}
    if not entries:
        return given
    from isthmus.host.providers.reach import reached
    from isthmus.host.secrets import UserSecrets

    found = reached(
        entries,
        environ=environ,
        secrets=UserSecrets(environ),
        ask=pipeline.broker.ask,
        source=models.source,
    )
    return {**found, **given}
