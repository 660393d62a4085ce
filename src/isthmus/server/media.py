"""Pictures and sounds as a tool's author has them: bytes or a file."""

import base64
import os
from typing import ClassVar

from isthmus.errors import UsageError
from isthmus.wire import AudioContent, ImageContent

__all__ = ["Audio", "Image"]


class Media:
    """Bytes with a MIME type, made from bytes or from a file.

    Args:
        data: the bytes themselves.
        path: a file to read them from, now; its ending tells the format.
        format: the usual file ending (``png``, ``wav``) or a whole MIME type.

    Raises:
        UsageError: neither or both of ``data`` and ``path`` were given, or no format is known.
    """

    FORMATS: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        data: bytes | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,
    ) -> None:
        if (data is None) == (path is None):
            raise UsageError(f"{type(self).__name__} needs either data=bytes or path=file")
        if path is not None:
            format = format or os.path.splitext(path)[1].lstrip(".")  # noqa: PTH122 - pathlib costs start-up time
            with open(path, "rb") as file:  # noqa: PTH123 - same
                data = file.read()
        self.data = data or b""
        self.mime_type = self._mime_type(format)

    def _mime_type(self, ending: str | None) -> str:
        if ending and "/" in ending:
            return ending
        known = self.FORMATS.get((ending or "").lower())
        if known is None:
            raise UsageError(
                f"{type(self).__name__} does not know the format {ending!r}: pass format= with "
                f"one of {', '.join(self.FORMATS)} or a MIME type"
            )
        return known

    @property
    def base64(self) -> str:
        """The bytes as they travel."""
        return base64.b64encode(self.data).decode("ascii")


class Image(Media):
    """A picture that a tool or prompt returns.

    Example::

        @server.tool
        def plot(values: list[float]) -> Image:
            return Image(render(values), format="png")
    """

    FORMATS: ClassVar[dict[str, str]] = {
        "png": "image/png",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "gif": "image/gif",
        "webp": "image/webp",
        "bmp": "image/bmp",
        "svg": "image/svg+xml",
    }

    def to_content(self) -> ImageContent:
        """The content block that travels."""
        return ImageContent(data=self.base64, mime_type=self.mime_type)


class Audio(Media):
    """A sound that a tool or prompt returns: ``Audio(path="bell.wav")``."""

    FORMATS: ClassVar[dict[str, str]] = {
        "wav": "audio/wav",
        "mp3": "audio/mpeg",
        "ogg": "audio/ogg",
        "flac": "audio/flac",
        "m4a": "audio/mp4",
        "aac": "audio/aac",
        "webm": "audio/webm",
    }

    def to_content(self) -> AudioContent:
        """The content block that travels."""
        return AudioContent(data=self.base64, mime_type=self.mime_type)
