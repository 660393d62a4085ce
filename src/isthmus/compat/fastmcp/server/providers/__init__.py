"""Providers of components under the names of ``fastmcp.server.providers``."""

from isthmus.lazy import lazy_getattr

_PROVIDERS = "isthmus.compat.fastmcp.server.providers"

_HOMES = {
    "Provider": f"{_PROVIDERS}.component_provider",
    "LocalProvider": f"{_PROVIDERS}.local_provider",
    **dict.fromkeys(
        ("ClaudeSkillsProvider", "SkillProvider", "SkillsDirectoryProvider"), f"{_PROVIDERS}.skills"
    ),
    "FileSystemProvider": f"{_PROVIDERS}.filesystem",
    **dict.fromkeys(("FastMCPProvider", "ProxyProvider"), f"{_PROVIDERS}.servers"),
}

__all__ = [*_HOMES]  # noqa: PLE0604 - the keys of the table

_get_own = lazy_getattr(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name in _HOMES or name.startswith("__"):
        return _get_own(name)
    from isthmus.compat.imports import make_missing_getattr

    return make_missing_getattr("fastmcp.server.providers")(name)
