"""Act of loading a skill of a server (SEP-2640), or one of its files: verified, and bound to what was decided on."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct, structs

from isthmus.client.client import Client
from isthmus.client.skills import ServedSkill, get_skill
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Denied
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Payload, ReadAsked
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import ActOutcome
from isthmus.host.pipeline.acts.server_acts import UneditableAct
from isthmus.host.pipeline.servers import KnownServers
from isthmus.skills.entry import DYNAMIC, Skill
from isthmus.skills.verification import list_files, make_fingerprint

R = TypeVar("R")


class SkillContents(Struct, frozen=True):
    """The verified content of a skill.

    Attributes:
        skill: its entry, as it was decided on.
        contents: the text of its ``SKILL.md`` below the frontmatter, or a file.
    """

    skill: Skill
    contents: str | bytes


class SkillAct(UneditableAct[SkillContents]):
    """A read of a skill, or of a file of it.

    Args:
        servers: what is known of servers.
        path: the file, relative to the skill's folder; empty for the text of the skill itself.
    """

    def __init__(self, servers: KnownServers, path: str = "") -> None:
        super().__init__(servers)
        self._path = path
        self._entry: Skill | None = None

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Get the entry of the skill: what is decided on is its files as they are now.

        Raises:
            Denied: it is dynamic, so that nothing says what would be loaded.
        """
        attempt = self.resolve_server(attempt, attempt.server)

        entry = self._entry = await self._find(attempt)
        if entry.resources == DYNAMIC:
            # SEP-2640 resources: hosts may decline to load skills without digests
            raise Denied(
                f"the skill {attempt.object} of server {attempt.server!r} has no digests: nothing "
                "says what would be loaded"
            )
        said = {"skill": entry.frontmatter["name"], **({"file": self._path} if self._path else {})}
        return structs.replace(attempt, arguments=said)

    def facts(self, attempt: Attempt) -> Facts:
        """The facts of the server; a yes that lasts is bound to the files of the skill."""
        # SEP-2640 security: a persisted approval MUST be bound to the set of files and digests
        fingerprint = "" if self._entry is None else make_fingerprint(self._entry)
        return structs.replace(super().facts(attempt), fingerprint=fingerprint)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The skill: its name, what it says it is for, and its files."""
        entry = self._entry
        if entry is None:
            return ReadAsked(uri=attempt.object)
        return ReadAsked(
            uri=attempt.object,
            skill=entry.frontmatter["name"],
            description=entry.frontmatter["description"],
            files=tuple(list_files(entry)),
        )

    async def dispatch(self, attempt: Attempt) -> SkillContents:
        """Read it, verified against the entry that was decided on."""
        entry = self._entry or await self._find(attempt)

        async def read(client: Client) -> SkillContents:
            skill = ServedSkill(client, entry)
            found = await skill.read(self._path) if self._path else await skill.load()
            return SkillContents(entry, found)

        return await self._use(attempt, read)

    def redact(self, result: SkillContents, pointers: tuple[str, ...]) -> SkillContents:  # noqa: ARG002 - as Act has it
        """The contents as they are: there is no part of a text that a rule could name."""
        return result

    def outcome(self, result: SkillContents) -> ActOutcome:
        """The contents, by their digest."""
        return ActOutcome(result=result.contents, detail={"skill": result.skill.uri})

    async def _find(self, attempt: Attempt) -> Skill:
        async def find(client: Client) -> Skill:
            return (await get_skill(client, attempt.object)).entry

        return await self._use(attempt, find)

    async def _use(self, attempt: Attempt, work: Callable[[Client], Awaitable[R]]) -> R:
        run = self.servers.supervisor.run_repeatable
        return await run(attempt.server, attempt.isolation, work)
