"""Resources under the names of ``fastmcp.resources``."""

from isthmus.lazy import lazy_getattr

_RESOURCES = "isthmus.compat.fastmcp.resources"

_HOMES = {
    **dict.fromkeys(("Resource", "ResourceContent", "ResourceResult"), f"{_RESOURCES}.model"),
    **dict.fromkeys(("FunctionResource", "resource"), f"{_RESOURCES}.function_resource"),
    **dict.fromkeys(("ResourceTemplate", "FunctionResourceTemplate"), f"{_RESOURCES}.template"),
    **dict.fromkeys(
        ("TextResource", "BinaryResource", "FileResource", "HttpResource", "DirectoryResource"),
        f"{_RESOURCES}.types",
    ),
}

__all__ = [*_HOMES]  # noqa: PLE0604 - the keys of the table

__getattr__ = lazy_getattr(__name__, _HOMES)
