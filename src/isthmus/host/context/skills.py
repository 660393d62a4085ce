"""Skills of all servers, as a host offers them to a model: named by their server, verified, and framed as untrusted."""

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from isthmus.client.client import Client
from isthmus.client.skills import list_skills
from isthmus.errors import IsthmusError
from isthmus.host.model.errors import Unknown
from isthmus.host.model.framing import frame_text
from isthmus.host.pipeline.acts.skill_act import SkillAct
from isthmus.runtime.failures import log_warning
from isthmus.skills.entry import SKILLS, Skill, get_skill_root
from isthmus.skills.verification import list_files, make_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus.host.model.attempt import Attempt
    from isthmus.host.pipeline.pipeline import Pipeline
    from isthmus.host.pipeline.runs import Run, Runs
    from isthmus.host.pipeline.servers import KnownServers


class HostSkill(Struct, frozen=True):
    """A skill that a server lists.

    Attributes:
        server: the server, by the name that the user gave it.
        name: how it is called here: its own name, or ``SERVER/PATH`` where another skill has that.
        entry: as the server lists it; nothing in it is to be trusted.
    """

    server: str
    name: str
    entry: Skill

    @property
    def uri(self) -> str:
        """The URI of its ``SKILL.md``."""
        return self.entry.uri

    @property
    def description(self) -> str:
        """What the server says that it is for."""
        return str(self.entry.frontmatter["description"])

    @property
    def files(self) -> list[str]:
        """Its files, relative to its folder."""
        root = get_skill_root(self.uri) or self.uri
        return [uri.removeprefix(f"{root}/") for uri in list_files(self.entry)]

    @property
    def fingerprint(self) -> str:
        """A digest over its files: another one says that it has changed, and asks for another yes."""
        return make_fingerprint(self.entry)


class HostSkills:
    """The skills of the servers of a host.

    Whatever is loaded goes through the pipeline: policy and, where it says so, a person agree to it, and a
    yes that lasts is bound to the files as they were. Permissions that a skill claims in its frontmatter
    (``allowed-tools``) are ignored, and nothing of it is run.

    Args:
        servers: what is known of servers.
        pipeline: the one way to servers.
        runs: the runs.
        attempt: makes attempts.
    """

    def __init__(
        self,
        servers: "KnownServers",
        pipeline: "Pipeline",
        runs: "Runs",
        attempt: "Callable[..., Attempt]",
    ) -> None:
        self._servers = servers
        self._pipeline = pipeline
        self._runs = runs
        self._attempt = attempt

    async def list_all(
        self, *, principal: str = "user:local", run: "Run | str | None" = None
    ) -> list[HostSkill]:
        """The skills that servers list; nothing of them is read.

        A server that cannot be reached, or that lists none, has none here.
        """
        # SEP-2640 no-prefetch: hosts MUST NOT retrieve a skill's files ahead of need
        found = [
            (server, skill)
            for server in self._list_servers()
            for skill in await self._list_server(server, principal, run)
        ]
        # SEP-2640 names: MUST be resolved per origin, and no skill shadows another one
        counts = Counter(skill.frontmatter["name"] for _, skill in found)
        return [
            HostSkill(server, _make_name(server, skill, counts), skill) for server, skill in found
        ]

    async def load(
        self,
        name: str,
        *,
        server: str = "",
        principal: str = "user:local",
        run: "Run | str | None" = None,
    ) -> str:
        """The text of a skill for a model, in a frame that says which server it is from.

        Args:
            name: as :meth:`list_all` has it; or with ``server``, the URI of its ``SKILL.md``.
            server: whose skill it is.
            principal: who loads it.
            run: in which run, which takes over the labels of the server.

        Raises:
            Unknown: there is no such skill.
            SkillUnverified: the server sent something else than it listed.
            Denied: policy, or a person, said no.
        """
        return await self._read(name, "", server, principal, run)

    async def read(
        self,
        name: str,
        path: str,
        *,
        server: str = "",
        principal: str = "user:local",
        run: "Run | str | None" = None,
    ) -> str:
        """A file of a skill for a model, by its path relative to the skill; only of the skill's own server.

        Raises:
            Unknown, SkillUnverified, Denied: as :meth:`load`.
        """
        return await self._read(name, path, server, principal, run)

    async def _read(
        self, name: str, path: str, server: str, principal: str, run: "Run | str | None"
    ) -> str:
        uri = name
        if not server:
            server, uri = await self._find(name, principal, run)
        attempt = self._attempt("resource.read", server, uri, None, principal, run)
        found = await self._pipeline.run(attempt, SkillAct(self._servers, path))
        text = found.contents if isinstance(found.contents, str) else "[bytes, not shown]"
        where = uri if not path else f"{get_skill_root(uri)}/{path}"
        # SEP-2640 security: MUST be tagged with its server where it enters the context of a model
        return frame_text(server, f"skill {where}", text)

    async def _find(self, name: str, principal: str, run: "Run | str | None") -> tuple[str, str]:
        skills = await self.list_all(principal=principal, run=run)
        for skill in skills:
            if skill.name == name:
                return skill.server, skill.uri
        known = ", ".join(sorted(skill.name for skill in skills)) or "none"
        raise Unknown(f"there is no skill {name!r}; there are: {known}")

    def _list_servers(self) -> list[str]:
        servers = self._servers.supervisor.servers
        return [
            name
            for name, hosted in servers.items()
            if hosted.entry.options.enabled and hosted.entry.options.start != "manual"
        ]

    async def _list_server(
        self, server: str, principal: str, run: "Run | str | None"
    ) -> list[Skill]:
        async def work(client: Client) -> list[Skill]:
            if client.extension(SKILLS) is None:
                return []
            return [one.entry for one in await list_skills(client)]

        use = self._servers.supervisor.run_repeatable
        try:
            resolved = self._servers.resolve(server, principal, self._runs.find_id(run))
            return await use(server, resolved.isolation, work)
        except IsthmusError as error:
            log_warning("the skills of server %r are not listed: %s", server, error)
            return []


def _make_name(server: str, skill: Skill, counts: Counter[str]) -> str:
    """The name of a skill among those of all servers."""
    name = str(skill.frontmatter["name"])
    if counts[name] == 1:
        return name
    root = get_skill_root(skill.uri) or skill.uri
    return f"{server}/{root.partition('://')[2]}"
