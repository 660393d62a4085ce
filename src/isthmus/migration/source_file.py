"""Source files: read with their encoding, mode and line ends, and written back in one piece."""

import codecs
import contextlib
import io
import os
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import UsageError

MAX_SOURCE_BYTES = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A text file as it was read."""

    path: Path
    text: str
    encoding: str
    has_bom: bool = False

    def encode(self, text: str) -> bytes:
        """The bytes of another text of this file."""
        data = text.encode(self.encoding)
        return codecs.BOM_UTF8 + data if self.has_bom else data


def read_source(path: Path) -> SourceFile:
    """Read a Python file as Python does: by its BOM or the encoding that it declares.

    Raises:
        ValueError: its bytes are not text in that encoding, or there are too many of them.
    """
    data = path.read_bytes()
    if len(data) > MAX_SOURCE_BYTES:
        raise ValueError(f"it has {len(data)} bytes, more than {MAX_SOURCE_BYTES}")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise ValueError(str(error)) from error
    has_bom = data.startswith(codecs.BOM_UTF8)
    if has_bom:
        data, encoding = data[len(codecs.BOM_UTF8) :], "utf-8"
    return SourceFile(path, data.decode(encoding), encoding, has_bom)


def write_source(file: SourceFile, text: str) -> None:
    """Write another text in the place of a file, at once and with its mode.

    Raises:
        UsageError: it cannot be written; the old file stands as it was.
    """
    target = file.path
    temporary: str | None = None
    try:
        mode = target.stat().st_mode & 0o7777
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(file.encode(text))
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)  # noqa: PTH101 - it is a name, not a path
        os.replace(temporary, target)  # noqa: PTH105 - the same
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - the same
        raise UsageError(
            f"{target} cannot be written: {error.strerror}; it is as it was"
        ) from error
