"""Token counts of texts: estimated from their bytes, and corrected by what providers report."""

from base64 import b64decode
from collections.abc import Iterable
from math import ceil
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import msgspec

from isthmus.core.sampling import list_blocks
from isthmus.host.model.errors import ConfigError
from isthmus.wire import AudioContent, ImageContent, SamplingMessage

# a text is cut into these before its tokens are counted
SPLIT_PATTERN = r"\s?\p{L}+|\s?\p{N}{1,3}|\s?[^\s\p{L}\p{N}]+|\s+"
BYTES_PER_TOKEN = 3.6  # a first guess; what models read is between 2 and 5
MIN_BYTES_PER_TOKEN, MAX_BYTES_PER_TOKEN = 1.5, 6.0
SMOOTHING = 0.2  # how much one report of a provider changes the estimate
MAX_ESTIMATED_MODELS = 1_000


class TokenCounter(Protocol):
    """Counts tokens."""

    @property
    def name(self) -> str:
        """The name of the counter, for the manifest."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text; a longer text never has fewer."""
        ...


class TokenEstimator:
    """Estimates tokens from bytes, and learns from what providers report.

    Args:
        ratio: bytes to a token.
    """

    def __init__(self, ratio: float = BYTES_PER_TOKEN) -> None:
        self.ratio = ratio

    @property
    def name(self) -> str:
        """The name of the counter, for the manifest."""
        return f"estimated, {self.ratio:.2f} bytes to a token"

    def count(self, text: str) -> int:
        """Tokens of a text; a longer text never has fewer."""
        return ceil(len(text.encode("utf-8", "surrogatepass")) / self.ratio)

    def learn(self, text_bytes: int, tokens: int) -> None:
        """Learn from a provider's report of tokens."""
        if tokens > 0 and text_bytes > 0:
            seen = min(MAX_BYTES_PER_TOKEN, max(MIN_BYTES_PER_TOKEN, text_bytes / tokens))
            self.ratio += SMOOTHING * (seen - self.ratio)


def has_media(messages: Iterable[SamplingMessage]) -> bool:
    """Whether a message has a picture or a sound, whose bytes say nothing about tokens."""
    return any(
        isinstance(part, ImageContent | AudioContent)
        for message in messages
        for part in list_blocks(message.content)
    )


class TokenEstimators:
    """One estimator for each model."""

    def __init__(self) -> None:
        self._of: dict[str, TokenEstimator] = {}

    def of(self, model: str) -> TokenEstimator:
        """The estimator of a model.

        Args:
            model: ``provider/model``.
        """
        found = self._of.get(model)
        if found is None:
            if len(self._of) >= MAX_ESTIMATED_MODELS:
                self._of.clear()
            found = self._of[model] = TokenEstimator()
        return found


class TokenVocabulary:
    """Counts tokens exactly, by the package ``tiktoken`` and a vocabulary that is on this machine.

    Nothing is fetched: the vocabulary is a file of lines, each a token in base64 and its rank, as
    that package keeps them.

    Args:
        path: the file.

    Attributes:
        name: for the manifest.

    Raises:
        ConfigError: the package, or the file, is not there, or is something else.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            import tiktoken  # type: ignore[import-not-found]  # where somebody has installed it
        except ImportError:
            raise ConfigError("to count by a vocabulary: pip install tiktoken") from None
        try:
            lines = Path(path).read_bytes().splitlines()
            pairs = [line.split() for line in lines if line]
            ranks = {b64decode(token, validate=True): int(rank) for token, rank in pairs}
        except (OSError, ValueError) as error:
            raise ConfigError(f"the vocabulary {path} cannot be read: {error}") from None
        self.name = f"tiktoken, {Path(path).name}"
        self._encoding: Any = tiktoken.Encoding(
            self.name, pat_str=SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={}
        )

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return len(self._encoding.encode_ordinary(text))


def estimate_tokens(value: Any) -> int:
    """Estimate the tokens of a text or of plain data from its bytes."""
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    return ceil(len(data) / BYTES_PER_TOKEN)
