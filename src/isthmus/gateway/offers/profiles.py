"""Profiles of a gateway: their rules, and what is wrong with them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from isthmus.gateway.offers.views import matches_any
from isthmus.host.catalog.names import make_namespace
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile
from isthmus.host.policy.profiles import load_profile_layers

if TYPE_CHECKING:
    from isthmus.host.host import Host

MAX_SOURCE_CHARS = 4 * 1024 * 1024


class ProfileFault(Struct, frozen=True):
    """Something that is wrong with a profile.

    Attributes:
        profile: its name.
        text: what is wrong, in a sentence.
        place: the file and the line where it begins; empty where it stands in no file.
    """

    profile: str
    text: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


def find_profile_faults(
    options: GatewayOptions, config: HostConfig, sources: Mapping[str, str] | None = None
) -> Sequence[ProfileFault]:
    """What is wrong with the profiles of a gateway: names of nothing, and rules that cannot be read.

    Args:
        options: of the gateway.
        config: has the servers.
        sources: the texts of the configuration's files, by path, for the lines; None reads them.
    """
    texts = read_sources(config) if sources is None else sources
    found = []
    for name, profile in options.profiles.items():
        place = find_place(name, texts)
        found += [
            ProfileFault(name, f"profile {name!r}: {text}", place)
            for text in _find_faults(profile, config)
        ]
    return found


def _find_faults(profile: GatewayProfile, config: HostConfig) -> Sequence[str]:
    servers = [
        name for name in config.servers if not profile.servers or matches_any(name, profile.servers)
    ]
    faults = [
        f"no server is called {glob!r}"
        for glob in profile.servers
        if not any(matches_any(name, [glob]) for name in config.servers)
    ]
    if not servers:
        return [*faults, "it has no server, so that it offers nothing"]
    spaces = [make_namespace(name) for name in servers]
    named = [
        glob
        for glob in profile.include
        if any(matches_any(space, [glob.split("__", 1)[0]]) for space in spaces)
    ]
    faults += [
        f"{glob!r} is no name of a tool of its servers"
        for glob in profile.include
        if glob not in named
    ]
    if profile.include and not named:
        faults.append("it names no tool, so that it offers none")
    faults += [
        f"its policy locks everything: {layer.broken}"
        for layer in load_profile_layers(profile.policy)
        if layer.broken
    ]
    return faults


def read_sources(config: HostConfig) -> Mapping[str, str]:
    """The texts of a configuration's files, by path; without those that cannot be read."""
    found = {}
    for source in config.sources:
        try:
            found[str(source)] = Path(source).read_text()[:MAX_SOURCE_CHARS]
        except (OSError, UnicodeError):
            continue
    return found


def find_place(profile: str, sources: Mapping[str, str]) -> str:
    """The file and the line where a profile begins; empty where it stands in none."""
    key = re.compile(rf'(?:"{re.escape(profile)}"\s*:|profiles\.{re.escape(profile)}\])')
    for path, text in sources.items():
        begin = text.find("profiles")
        found = key.search(text, begin) if begin >= 0 else None
        if found is not None:
            return f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
    return ""


class ProfileRules:
    """The rules of a gateway's profiles, laid over the policy of its host.

    Args:
        host: has the policy.
    """

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._config: HostConfig | None = None

    def follow(self, options: GatewayOptions) -> None:
        """Take the rules from their files as they are now, where the configuration is another one."""
        config = self._host.config
        if self._config is config:
            return
        self._config = config
        self._host.parts.calls.pipeline.profiles.layers = {
            name: load_profile_layers(profile.policy) for name, profile in options.profiles.items()
        }
