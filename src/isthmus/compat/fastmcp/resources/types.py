"""Resources of text, bytes, files, folders and URLs, under the names of ``fastmcp.resources.types``."""

import asyncio
import json
from pathlib import Path
from typing import Any

from pydantic import field_validator

from isthmus.compat.fastmcp.exceptions import ResourceError
from isthmus.compat.fastmcp.resources.model import Resource


class TextResource(Resource):
    """Resource whose text is known.

    Attributes:
        text: the text.
    """

    text: str

    async def read(self) -> str:
        """The text."""
        return self.text


class BinaryResource(Resource):
    """Resource whose bytes are known.

    Attributes:
        data: the bytes.
    """

    data: bytes

    async def read(self) -> bytes:
        """The bytes."""
        return self.data


class FileResource(Resource):
    """Resource that is a file, read whenever it is asked for.

    Attributes:
        path: the file; its path is absolute.
        is_binary: it has bytes; what has a type of text has none.
        encoding: how its text is written.
    """

    path: Path
    is_binary: bool = False
    encoding: str = "utf-8"

    @field_validator("path")
    @classmethod
    def check_path(cls, path: Path) -> Path:
        """See that the path is absolute."""
        if not path.is_absolute():
            raise ValueError("Path must be absolute")
        return path

    async def read(self) -> str | bytes:
        """Read the file.

        Raises:
            ResourceError: it cannot be read.
        """
        try:
            if self.is_binary or not self.mime_type.startswith("text/"):
                return await asyncio.to_thread(self.path.read_bytes)
            return await asyncio.to_thread(self.path.read_text, encoding=self.encoding)
        except OSError as error:
            raise ResourceError(f"Error reading file {self.path}") from error


class DirectoryResource(Resource):
    """Resource that lists a folder as JSON.

    Attributes:
        path: the folder; its path is absolute.
        recursive: also what is in the folders in it.
        pattern: which files.
    """

    path: Path
    recursive: bool = False
    pattern: str | None = None
    mime_type: str = "application/json"

    def list_files(self) -> list[Path]:
        """The files in it.

        Raises:
            FileNotFoundError: there is no such folder.
            NotADirectoryError: it is none.
        """
        if not self.path.exists():
            raise FileNotFoundError(f"Directory not found: {self.path}")
        if not self.path.is_dir():
            raise NotADirectoryError(f"Not a directory: {self.path}")
        look = self.path.rglob if self.recursive else self.path.glob
        return sorted(path for path in look(self.pattern or "*") if path.is_file())

    async def read(self) -> str:
        """The names of the files, as JSON.

        Raises:
            ResourceError: the folder cannot be read.
        """
        try:
            files = await asyncio.to_thread(self.list_files)
        except OSError as error:
            raise ResourceError(f"Error reading directory {self.path}: {error}") from error
        return json.dumps({"files": [str(path.relative_to(self.path)) for path in files]}, indent=2)


class HttpResource(Resource):
    """Resource at a URL; write a function that fetches it in its place.

    Attributes:
        url: the URL.
    """

    url: str

    async def read(self) -> Any:
        """Fetch nothing: which hosts may be reached is for a function to say.

        Raises:
            ResourceError: always; it says what to write.
        """
        raise ResourceError(
            "HttpResource is not offered by isthmus: write a function with @mcp.resource that fetches the URL "
            "(docs/guide/from-fastmcp.md)"
        )
