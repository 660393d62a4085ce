"""``Image`` and ``Audio`` as the other libraries have them: what a tool returns for a picture or a sound."""

import base64
from pathlib import Path
from typing import Any

from isthmus.compat import types

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
AUDIO_TYPES = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".aac": "audio/aac",
    ".m4a": "audio/mp4",
}


class _Media:
    """Bytes, or a file of them, with their MIME type."""

    kind, types_by_ending, default_type = "", IMAGE_TYPES, ""

    def __init__(
        self,
        path: str | Path | None = None,
        data: bytes | None = None,
        format: str | None = None,
        annotations: Any = None,
    ) -> None:
        if (path is None) == (data is None):
            raise ValueError(f"{type(self).__name__} takes a path or data, and not both")
        self.path = None if path is None else Path(path)
        self.data = data
        self.annotations = annotations
        self._format = format
        self._mime_type = self._find_mime_type()

    def _find_mime_type(self) -> str:
        if self._format:
            return f"{self.kind}/{self._format.lower()}"
        if self.path is not None:
            return self.types_by_ending.get(self.path.suffix.lower(), "application/octet-stream")
        return self.default_type

    def _encode(self) -> str:
        data = self.path.read_bytes() if self.path is not None else self.data or b""
        return base64.b64encode(data).decode()


class Image(_Media):
    """A picture that a tool returns."""

    kind, default_type = "image", "image/png"

    def to_image_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """The picture as a content block."""
        return types.ImageContent(
            data=self._encode(),
            mime_type=mime_type or self._mime_type,
            annotations=annotations or self.annotations,
        )


class Audio(_Media):
    """A sound that a tool returns."""

    kind, types_by_ending, default_type = "audio", AUDIO_TYPES, "audio/wav"

    def to_audio_content(self, mime_type: str | None = None, annotations: Any = None) -> Any:
        """The sound as a content block."""
        return types.AudioContent(
            data=self._encode(),
            mime_type=mime_type or self._mime_type,
            annotations=annotations or self.annotations,
        )
