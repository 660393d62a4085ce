"""The rows of ``tests/requirements/*.toml``, for the tests that tie them to other things."""

import tomllib
from pathlib import Path

__all__ = ["FOLDER", "load_requirements"]

FOLDER = Path(__file__).parents[2] / "requirements"


def load_requirements() -> list[tuple[str, dict[str, str]]]:
    """Every requirement, with the area whose file holds it."""
    return [
        (path.stem, row)
        for path in sorted(FOLDER.glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["requirement"]
    ]
