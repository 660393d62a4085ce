"""Skills of a server, seen from its client: listed, and loaded only as their entries promise (SEP-2640)."""

import base64
import binascii
from typing import TYPE_CHECKING, Any

from isthmus.client.calls import collect_pages
from isthmus.errors import CapabilityMissing, Misbehaved, UsageError
from isthmus.runtime.failures import log_warning
from isthmus.skills.entry import (
    DYNAMIC,
    SKILLS,
    GetSkillParams,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsResult,
    ReadDirectoryParams,
    ReadDirectoryResult,
    Skill,
    get_skill_root,
)
from isthmus.skills.frontmatter import BadSkill, split_frontmatter
from isthmus.skills.verification import (
    SkillUnverified,
    check_entry,
    list_files,
    make_fingerprint,
    verify_file,
    verify_frontmatter,
)
from isthmus.wire import BlobResourceContents, Resource, TextResourceContents

if TYPE_CHECKING:
    from isthmus.client.client import Client


class ServedSkill:
    """A skill that a server offers. Nothing of it is read before it is asked for.

    Its text is a server's: whoever shows it to a model says where it is from, and follows nothing in it that
    the user has not allowed.

    Args:
        client: the connection to the server.
        entry: its entry, as the server listed it.

    Attributes:
        entry: its entry, as the server listed it.
    """

    def __init__(self, client: "Client", entry: Skill) -> None:
        self._client = client
        self.entry = entry
        self._root = get_skill_root(entry.uri) or entry.uri

    def __repr__(self) -> str:
        return f"ServedSkill({self.name!r}, uri={self.uri!r})"

    @property
    def name(self) -> str:
        """The name, which is no identifier: two skills may have the same."""
        return str(self.entry.frontmatter["name"])

    @property
    def description(self) -> str:
        """When to use it, for a model."""
        return str(self.entry.frontmatter["description"])

    @property
    def uri(self) -> str:
        """The URI of its ``SKILL.md``, which identifies it."""
        return self.entry.uri

    @property
    def files(self) -> list[str]:
        """Its files, relative to its folder; none where it is dynamic."""
        return [uri.removeprefix(f"{self._root}/") for uri in list_files(self.entry)]

    @property
    def is_dynamic(self) -> bool:
        """Whether it is generated, so that nothing of it can be verified."""
        return self.entry.resources == DYNAMIC

    @property
    def fingerprint(self) -> str:
        """A digest over its entry, for approvals: another one means that the skill has changed."""
        return make_fingerprint(self.entry)

    async def load(self, *, allow_dynamic: bool = False) -> str:
        """The text of its ``SKILL.md`` below the frontmatter, verified against the entry.

        Args:
            allow_dynamic: load it although it has no digests.

        Raises:
            SkillUnverified: it is not what the entry says, or has no digests.
        """
        if self.is_dynamic and not allow_dynamic:
            raise SkillUnverified(
                f"{self.uri} is dynamic: nothing says what it should be; pass allow_dynamic=True to load it"
            )
        text = await self._read_verified(self.uri)
        if not isinstance(text, str):
            raise SkillUnverified(f"{self.uri} is no text")
        verify_frontmatter(self.entry, text)
        return split_frontmatter(text)[1]

    async def read(self, path: str) -> str | bytes:
        """A file of the skill, by its path relative to the folder, verified against the entry.

        Args:
            path: as the skill's text refers to it: ``"references/FORMS.md"``.

        Returns:
            Text where the server sent text, else bytes.

        Raises:
            SkillUnverified: it is not what the entry says, or none of the skill's files.
        """
        parts = path.removeprefix("./").split("/")
        if any(part in ("", ".", "..") for part in parts) or "\\" in path:
            raise SkillUnverified(f"{path!r} is no file of the skill {self.name}")
        return await self._read_verified(f"{self._root}/{'/'.join(parts)}")

    async def list_directory(self, path: str = "") -> list[Resource]:
        """The files and folders that lie in a folder of the skill.

        Raises:
            CapabilityMissing: the server does not list directories.
        """
        client = self._client
        if client.require_extension(SKILLS).get("directoryRead") is not True:
            # SEP-2640 capability declaration: clients MUST NOT call it otherwise
            raise CapabilityMissing("the server does not list the directories of its skills")
        uri = f"{self._root}/{path.strip('/')}".rstrip("/")

        async def page(cursor: Any) -> ReadDirectoryResult:
            params = ReadDirectoryParams(uri=uri, cursor=cursor)
            return await client.request("resources/directory/read", params, ReadDirectoryResult)

        return await collect_pages(page, lambda found: found.resources)

    async def refresh(self) -> "ServedSkill":
        """The skill as it is now: another fingerprint says that it has changed."""
        return await get_skill(self._client, self.uri)

    async def _read_verified(self, uri: str) -> str | bytes:
        if not self.is_dynamic and uri not in list_files(self.entry):
            raise SkillUnverified(f"{uri} is none of the files of the skill {self.uri}")
        result = await self._client.read_resource(uri, fresh=True)
        for contents in result.contents:
            if contents.uri != uri:
                continue
            if isinstance(contents, TextResourceContents):
                verify_file(self.entry, uri, contents.text.encode())
                return contents.text
            if isinstance(contents, BlobResourceContents):
                data = _decode_blob(contents.blob, uri)
                verify_file(self.entry, uri, data)
                return data
        raise SkillUnverified(f"the server answered with something else than {uri}")


async def list_skills(client: "Client") -> list[ServedSkill]:
    """The skills that a server lists; it may have others, which :func:`get_skill` finds.

    An entry that cannot be true is left out, and logged.

    Raises:
        CapabilityMissing: the server does not offer the extension.
    """
    client.require_extension(SKILLS)

    async def page(cursor: Any) -> ListSkillsResult:
        return await client.request(
            "skills/list", ListSkillsParams(cursor=cursor), ListSkillsResult
        )

    served = []
    for skill in await collect_pages(page, lambda result: result.skills):
        try:
            served.append(_check(client, skill))
        except Misbehaved as error:
            log_warning("a skill is left out: %s", error)
    return served


async def get_skill(client: "Client", uri: str) -> ServedSkill:
    """A skill by the URI of its ``SKILL.md``, whether it is listed or not.

    Raises:
        CapabilityMissing: the server does not offer the extension.
        InvalidParams: there is no such skill.
        Misbehaved: its entry cannot be true, or is that of another one.
    """
    client.require_extension(SKILLS)
    if get_skill_root(uri) is None:
        raise UsageError(f"{uri!r} is no skill: write the URI of its SKILL.md")
    found = (await client.request("skills/get", GetSkillParams(uri=uri), GetSkillResult)).skill
    if found.uri != uri:
        raise Misbehaved(f"the server was asked for {uri}, and sent the entry of {found.uri}")
    return _check(client, found)


def _check(client: "Client", skill: Skill) -> ServedSkill:
    try:
        check_entry(skill)
    except BadSkill as error:
        raise Misbehaved(str(error)) from error
    return ServedSkill(client, skill)


def _decode_blob(blob: Any, uri: str) -> bytes:
    try:
        return base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SkillUnverified(f"{uri} is no base64") from error
