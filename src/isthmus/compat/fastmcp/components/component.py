"""Component: what tools, resources, templates and prompts of fastmcp have in common."""

from typing import Annotated, Any, ClassVar, Self

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.utilities.tasks import TaskConfig


def coerce_version(version: Any) -> str | None:
    """A version as text.

    Raises:
        TypeError: it is no text and no number.
    """
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, str | int | float):
        raise TypeError(f"Version must be a string, int, or float, got {type(version).__name__}")
    return str(version)


def make_public_meta(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """Meta without what fastmcp keeps there for itself; None where nothing is left."""
    if not meta:
        return None
    public = dict(meta)
    own = public.get("fastmcp")
    if isinstance(own, dict):
        public["fastmcp"] = {key: one for key, one in own.items() if not key.startswith("_")}
        if not public["fastmcp"]:
            del public["fastmcp"]
    return public or None


class FastMCPComponent(BaseModel):
    """Tool, resource, template or prompt of a server written for fastmcp.

    Attributes:
        name, version, title, description, icons, meta: as they are listed.
        tags: words by which it is found.
        task_config: whether its calls run as tasks.
        enabled: whether it is listed and may be used (2.x).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    KEY_PREFIX: ClassVar[str] = ""

    name: str
    version: Annotated[str | None, BeforeValidator(coerce_version)] = None
    title: str | None = None
    description: str | None = None
    icons: list[Any] | None = None
    tags: Annotated[set[str], BeforeValidator(lambda tags: set(tags or ()))] = Field(
        default_factory=set
    )
    meta: dict[str, Any] | None = None
    task_config: TaskConfig = Field(default_factory=lambda: TaskConfig("forbidden"))
    enabled: bool = True
    auth: Any = None

    @property
    def identifier(self) -> str:
        """What requests name it by: its name, or its URI."""
        return self.name

    @property
    def key(self) -> str:
        """Kind, identifier and version in one text."""
        return f"{self.KEY_PREFIX}:{self.identifier}@{self.version or ''}"

    def get_meta(self, include_fastmcp_meta: bool = True) -> dict[str, Any]:
        """Its meta as it is listed: with its tags below ``fastmcp``."""
        meta = make_public_meta(self.meta) or {}
        if include_fastmcp_meta:
            own: dict[str, Any] = {"tags": sorted(self.tags)}
            if self.version is not None:
                own["version"] = self.version
            meta[FLAVOUR.meta_key] = {**meta.get(FLAVOUR.meta_key, {}), **own}
        return meta

    def enable(self) -> None:
        """Offer it again (2.x)."""
        self.enabled = True

    def disable(self) -> None:
        """Hide it from everybody (2.x)."""
        self.enabled = False

    def copy(self, **update: Any) -> Self:
        """Copy it, with other values for some attributes."""
        return self.model_copy(update=update)

    def list_shared_members(self) -> dict[str, Any]:
        """The members that every kind has on the wire; those that are None are left out."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "icons": [dump_model(icon) for icon in self.icons] if self.icons else None,
            "_meta": self.get_meta(),
        }


def dump_model(value: Any) -> Any:
    """A model of pydantic or of isthmus as it travels; plain data stays as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if hasattr(type(value), "__struct_fields__"):
        return msgspec.to_builtins(value)
    return value


def drop_none(members: dict[str, Any]) -> dict[str, Any]:
    """Members of an object without those that are None."""
    return {key: value for key, value in members.items() if value is not None}
