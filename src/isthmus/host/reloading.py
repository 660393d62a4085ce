"""Reloading of configuration, policy and models: what is whole is used at once, what is not changes nothing."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.host.catalog.metatools import parse_search_settings
from isthmus.host.config.watch import watch_files
from isthmus.host.lifecycle import BackgroundTasks, watch_roots
from isthmus.host.model.entries import ConfigDiff, HostConfig, HostOptions
from isthmus.host.model.errors import ConfigError
from isthmus.host.model.events import HostEvent, HostEvents, HostNotice
from isthmus.host.model.row import AuditRow
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.policy.policy import Policy

if TYPE_CHECKING:
    import asyncio

    from isthmus.host.audit.log import AuditLog
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.confinement.roots import RootGrants
    from isthmus.host.sampling.sampler import Sampler
    from isthmus.host.supervisor.supervisor import Supervisor


class RuleReloader:
    """Reads policy and models again when their files change.

    Args:
        pipeline: decides by the policy.
        sampler: has the models; None where there are none.
        policy: the policy that a program gave: a name, a file or a policy; None for none.
        models: the same of models.
        providers: those that a program has.
        events: told of what became of it.
        background: runs what follows the files.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        sampler: "Sampler | None",
        *,
        policy: Any,
        models: Any,
        providers: Any,
        events: HostEvents,
        background: BackgroundTasks,
    ) -> None:
        self._pipeline = pipeline
        self._sampler = sampler
        self._policy = policy
        pipeline.is_given = bool(policy)
        self._models = models
        self._providers = providers
        self._events = events
        self._background = background
        self._following = False
        self._config = HostConfig()
        self._paths: list[Path] = []
        self._task: asyncio.Task[None] | None = None

    def read(self, config: HostConfig) -> None:
        """Take policy and models from their files as they are now; a bad one changes nothing."""
        self._config = config
        policy = load_policy(self._policy, config.options)
        replace_policy(self._pipeline, policy, self._events.tell)
        self._pipeline.mode = config.options.mode
        self._pipeline.shadow = load_shadow_policy(config.options)
        if self._sampler is not None:
            self._read_models(self._sampler, config)

    def follow(self, config: HostConfig) -> None:
        """Read them again whenever the files change that the configuration names, until the end."""
        self._config, self._following = config, True
        paths = find_rule_files(self._policy, self._models, config.options)
        if paths == self._paths:
            return
        self._paths = paths
        if self._task is not None:
            self._task.cancel()
        self._task = self._background.start(self._watch(paths))

    def reload(self, config: HostConfig) -> None:
        """The configuration is another one: read what it names, and follow that if files are followed."""
        self.read(config)
        if self._following:
            self.follow(config)

    def _read_models(self, sampler: "Sampler", config: HostConfig) -> None:
        """Read the file of models again; one that cannot be leaves the models of before."""
        from isthmus.host.sampling.sampler import reload_models

        path = self._models or config.options.models
        if isinstance(path, str | os.PathLike) and path:
            try:
                reload_models(sampler, path, self._providers)
            except ConfigError as error:
                self._events.tell(HostNotice(about="config", text=str(error)))

    async def _watch(self, paths: list[Path]) -> None:
        try:
            async for _ in watch_files(paths):
                self.read(self._config)
        except ConfigError as error:
            self._events.tell(HostNotice(about="config", text=str(error)))


class ConfigReloader:
    """Has a host follow another configuration.

    Args:
        supervisor, catalog, roots: follow it.
        rules: reads the policy and the models that it names.
        audit: where it is written down.
        events: told of what cannot be.
        background: runs what takes time.
    """

    def __init__(
        self,
        supervisor: "Supervisor",
        catalog: "HostCatalog",
        roots: "RootGrants",
        rules: RuleReloader,
        *,
        audit: "AuditLog",
        events: HostEvents,
        background: BackgroundTasks,
    ) -> None:
        self._supervisor = supervisor
        self._catalog = catalog
        self._roots = roots
        self._rules = rules
        self._audit = audit
        self._events = events
        self._background = background

    async def reload(self, config: HostConfig) -> ConfigDiff:
        """Follow another configuration; what is different."""
        diff = await self._supervisor.reload(config)
        if diff:
            told = {name: list(getattr(diff, name)) for name in ("added", "removed", "changed")}
            self._audit.note(AuditRow(kind="config", action="config.reload", detail=told))
        self._catalog.configure(self._supervisor.config.servers)
        self._configure_search(config)
        self._roots.replace(config.options.roots)
        self._background.start(watch_roots(self._roots))
        self._rules.reload(self._supervisor.config)
        return diff

    def _configure_search(self, config: HostConfig) -> None:
        """Search as a configuration says; one that cannot be leaves it as it was."""
        try:
            self._catalog.search = parse_search_settings(config.options.search)
        except ConfigError as error:
            self._events.tell(HostNotice(about="config", text=str(error)))


def load_shadow_policy(options: HostOptions) -> Policy | None:
    """The policy that is tried beside the one in force, where there is one."""
    return Policy.load(options.shadow) if options.shadow else None


def load_policy(given: Any, options: HostOptions) -> Policy:
    """The policy that somebody gave, or that the configuration names.

    What the machine's administrator set, and a workspace tightens, holds beside a named one.
    """
    if isinstance(given, Policy):
        return given
    if not given:
        return Policy.configured(options)
    layers = options.policies
    return Policy.load(
        str(given), managed=layers.get("managed", ""), workspace=layers.get("workspace", "")
    )


def replace_policy(pipeline: Pipeline, policy: Policy, tell: Callable[[HostEvent], None]) -> None:
    """Decide by another policy, unless it cannot be read: then the one before goes on.

    Args:
        pipeline: decides.
        policy: as its files are now.
        tell: told what became of it.
    """
    if policy.version == pipeline.policy.version:
        return
    if policy.broken and not pipeline.policy.broken:
        text = "; ".join(policy.broken)
        tell(HostNotice(about="policy", text=f"{text}; the policy stays as it was"))
        return
    pipeline.policy = policy
    tell(HostNotice(about="policy", text=f"another policy is in force: {policy.version}"))


def find_rule_files(policy: Any, models: Any, options: HostOptions) -> list[Path]:
    """The files that policy and models stand in; none for what a program has given.

    Args:
        policy: the policy that a program gave: a name, a file or a policy; None for none.
        models: the same of models.
        options: what the configuration says.
    """
    named: Mapping[Any, str] = options.policies or {"user": options.policy}
    rules = [policy] if policy else list(named.values())
    said = [*rules, options.shadow, models or options.models]
    paths = [
        Path(one).expanduser().absolute()
        for one in said
        if isinstance(one, str | os.PathLike) and one
    ]
    return sorted({path for path in paths if path.is_file()})
