"""Version of fastmcp that a program was written for: what is installed, or the newest known."""

from importlib.metadata import PackageNotFoundError, version

NEWEST_VERSION = "4.2.3"


def find_library_version() -> str:
    """The version of fastmcp that is installed, whose texts and lists the program expects."""
    try:
        return version("fastmcp")
    except PackageNotFoundError:
        return NEWEST_VERSION


LIBRARY_VERSION = find_library_version()

MAJOR_VERSION = int(LIBRARY_VERSION.partition(".")[0])
