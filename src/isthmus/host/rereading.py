"""Policy and models follow their files: what is whole is used at once, what is not changes nothing."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.host.config.entries import HostConfig, HostOptions
from isthmus.host.config.watch import looks
from isthmus.host.errors import ConfigError
from isthmus.host.events import HostEvent, Noticed
from isthmus.host.pipeline import Pipeline
from isthmus.host.policy.policy import Policy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

__all__ = ["Rereading", "renew", "rule_files"]


def renew(pipeline: Pipeline, policy: Policy, tell: Callable[[HostEvent], None]) -> None:
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
        tell(Noticed(about="policy", text=f"{text}; the policy stays as it was"))
        return
    pipeline.policy = policy
    tell(Noticed(about="policy", text=f"another policy is in force: {policy.version}"))


def rule_files(policy: Any, models: Any, options: HostOptions) -> list[Path]:
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


class Rereading:
    """Has a host read policy and models again when their files change.

    Args:
        beside: does something as long as the host is open.
        files: the files, by the configuration.
        reread: reads them again.
        tell: told why they are not followed.
    """

    def __init__(
        self,
        beside: "Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]",
        files: Callable[[HostConfig], list[Path]],
        reread: Callable[[], None],
        tell: Callable[[HostEvent], None],
    ) -> None:
        self._beside = beside
        self._files = files
        self._reread = reread
        self._tell = tell
        self._paths: list[Path] = []
        self._task: asyncio.Task[None] | None = None

    def follow(self, config: HostConfig) -> None:
        """Look at the files that a configuration names from now on."""
        paths = self._files(config)
        if paths == self._paths:
            return
        self._paths = paths
        if self._task is not None:
            self._task.cancel()
        self._task = self._beside(self._look(paths))

    async def _look(self, paths: list[Path]) -> None:
        try:
            async for _ in looks(paths):
                self._reread()
        except ConfigError as error:
            self._tell(Noticed(about="config", text=str(error)))
