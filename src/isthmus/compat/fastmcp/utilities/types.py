"""Images, sounds and files that tools return, under the names of ``fastmcp.utilities.types``."""

import base64
import mimetypes
import os
from pathlib import Path
from typing import Any, ClassVar

from isthmus.compat.fastmcp.flavour import FLAVOUR

NotSet: Any = ...
NotSetT = type(...)


class MediaSource:
    """Bytes that a tool returns, or a file that is read when they are sent.

    Args:
        path: the file; environment variables and ``~`` in it are expanded.
        data: the bytes.
        format: the usual ending of such files.
        annotations: annotations of the content block.

    Raises:
        ValueError: neither or both of ``path`` and ``data`` were given.
    """

    KIND: ClassVar[str] = "application"
    FORMATS: ClassVar[dict[str, str]] = {}
    DEFAULT_TYPE: ClassVar[str] = "application/octet-stream"

    def __init__(
        self,
        path: str | Path | None = None,
        data: bytes | None = None,
        format: str | None = None,
        annotations: Any = None,
    ) -> None:
        if path is None and data is None:
            raise ValueError("Either path or data must be provided")
        if path is not None and data is not None:
            raise ValueError("Only one of path or data can be provided")
        self.path = Path(os.path.expandvars(str(path))).expanduser() if path else None
        self.data = data
        self._format = format
        self.annotations = annotations
        self._mime_type = self._guess_type()

    def _guess_type(self) -> str:
        if self._format:
            ending = self._format.lower()
            return self.FORMATS.get(ending, f"{self.KIND}/{ending}")
        if self.path is None:
            return self.DEFAULT_TYPE
        known = self.FORMATS.get(self.path.suffix.lower().lstrip("."))
        if known is None and self.KIND != "audio":
            known = mimetypes.guess_type(self.path, strict=False)[0]
        return known or "application/octet-stream"

    def read_bytes(self) -> bytes:
        """The bytes, from the file where there is one."""
        return self.path.read_bytes() if self.path is not None else self.data or b""

    def _encode(self) -> str:
        return base64.b64encode(self.read_bytes()).decode()

    def to_content(self) -> Any:
        """The content block that travels."""
        raise NotImplementedError


class Image(MediaSource):
    """A picture that a tool returns; ``fastmcp.utilities.types.Image``."""

    KIND = "image"
    FORMATS: ClassVar[dict[str, str]] = {
        "jpg": "image/jpeg",
        "svg": "image/svg+xml",
        "tif": "image/tiff",
        "webp": "image/webp",
    }
    DEFAULT_TYPE = "image/png"

    def to_image_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """The content block, with another MIME type or annotations if they are given."""
        from isthmus.compat.types import ImageContent

        return ImageContent(
            type="image",
            data=self._encode(),
            mimeType=mime_type or self._mime_type,
            annotations=annotations or self.annotations,
        )

    def to_data_uri(self, mime_type: str | None = None) -> str:
        """The picture as a ``data:`` URI."""
        return f"data:{mime_type or self._mime_type};base64,{self._encode()}"

    def to_content(self) -> Any:
        """The content block that travels."""
        return self.to_image_content()


class Audio(MediaSource):
    """A sound that a tool returns; ``fastmcp.utilities.types.Audio``."""

    KIND = "audio"
    FORMATS: ClassVar[dict[str, str]] = {
        "wav": "audio/wav",
        "mp3": "audio/mpeg",
        "ogg": "audio/ogg",
        "m4a": "audio/mp4",
        "flac": "audio/flac",
    }
    DEFAULT_TYPE = "audio/wav"

    def to_audio_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """The content block, with another MIME type or annotations if they are given."""
        from isthmus.compat.types import AudioContent

        return AudioContent(
            type="audio",
            data=self._encode(),
            mimeType=mime_type or self._mime_type,
            annotations=annotations or self.annotations,
        )

    def to_content(self) -> Any:
        """The content block that travels."""
        return self.to_audio_content()


class File(MediaSource):
    """A file that a tool returns as an embedded resource; ``fastmcp.utilities.types.File``.

    Args:
        path: the file.
        data: its bytes.
        format: the usual ending of such files.
        name: its name in the URI; that of the file by default.
        annotations: annotations of the content block.
    """

    FORMATS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("plain", "txt", "text"), "text/plain"),
        "csv": "text/csv",
        **dict.fromkeys(("html", "htm"), "text/html"),
        **dict.fromkeys(("md", "markdown"), "text/markdown"),
    }

    def __init__(
        self,
        path: str | Path | None = None,
        data: bytes | None = None,
        format: str | None = None,
        name: str | None = None,
        annotations: Any = None,
    ) -> None:
        self._name = name
        super().__init__(path, data, format, annotations)

    def _guess_type(self) -> str:
        if self._format or self.path is None:
            return super()._guess_type()
        return mimetypes.guess_type(self.path)[0] or self.DEFAULT_TYPE

    def _make_uri(self) -> str:
        from urllib.parse import quote

        if self.path is not None:
            return self.path.resolve().as_uri()
        ending = self._format.lower() if self._format else self._mime_type.split("/")[1]
        name = self._name or "resource"
        if FLAVOUR.names_types:
            return f"file:///{quote(name)}.{self._mime_type.split('/')[1]}"
        return f"file:///{quote(name if Path(name).suffix else f'{name}.{ending}')}"

    def to_resource_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """The content block: text where the type is one of text, base64 otherwise."""
        from isthmus.compat.types import (
            BlobResourceContents,
            EmbeddedResource,
            TextResourceContents,
        )

        mime_type = mime_type or self._mime_type
        raw, uri = self.read_bytes(), self._make_uri()
        contents: Any
        if mime_type.startswith("text/"):
            try:
                text = raw.decode()
            except UnicodeDecodeError:
                text = raw.decode("latin-1")
            contents = TextResourceContents(text=text, mimeType=mime_type, uri=uri)
        else:
            blob = base64.b64encode(raw).decode()
            contents = BlobResourceContents(blob=blob, mimeType=mime_type, uri=uri)
        annotations = annotations or self.annotations
        return EmbeddedResource(type="resource", resource=contents, annotations=annotations)

    def to_content(self) -> Any:
        """The content block that travels."""
        return self.to_resource_content()
