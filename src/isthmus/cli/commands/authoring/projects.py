"""New projects: a template filled in, in a folder that was not there, as a whole or not at all."""

import keyword
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from string import Template
from typing import NamedTuple

from isthmus.cli.commands.authoring.templates import TEMPLATES
from isthmus.errors import UsageError

PROJECT_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?", re.ASCII)
TAKEN_PACKAGES = frozenset({"isthmus", "pytest", "src", "tests", "test", "server"})


class ProjectPlace(NamedTuple):
    """The folder of a new project, and its names.

    Attributes:
        folder: where it is to be.
        name: of the project.
        package: that can be imported.
        title: as people call it.
    """

    folder: Path
    name: str
    package: str
    title: str


def read_project_name(text: str) -> ProjectPlace:
    """Read the name of a project, with the folder that it is to stand in.

    Raises:
        UsageError: it is no name, or stands for something else in Python.
    """
    folder = Path(os.path.abspath(text))  # noqa: PTH100 - links stay links
    name = folder.name
    if PROJECT_NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is not a valid project name: use up to 64 letters, digits, - and _, a letter first"
        )
    package = name.lower().replace("-", "_")
    if keyword.iskeyword(package) or package in TAKEN_PACKAGES | sys.stdlib_module_names:
        raise UsageError(
            f"{package!r} is another module in Python: take another name, as in my-{name}"
        )
    title = " ".join(part.capitalize() for part in re.split("[-_]+", name))
    return ProjectPlace(folder, name.lower().replace("_", "-"), package, title)


def make_project(place: ProjectPlace, template: str) -> list[str]:
    """Make a project.

    Returns:
        Its files, below the folder.

    Raises:
        UsageError: the folder has files, cannot be written, or there is no such template.
    """
    if template not in TEMPLATES:
        known = "; ".join(f"{name}: {said}" for name, (said, _) in TEMPLATES.items())
        raise UsageError(f"--template {template}: there are {known}")
    files = _fill_template(place, template)
    try:
        _check_folder(place.folder)
        place.folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.folder.parent))
        try:
            _write_files(made, files)
            made.rename(place.folder)  # over an empty folder, or none
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise UsageError(f"{place.folder} cannot be made: {error.strerror}") from None
    return sorted(files)


def _fill_template(place: ProjectPlace, template: str) -> dict[str, str]:
    words = {"name": place.name, "package": place.package, "title": place.title}
    return {
        Template(path).substitute(words): Template(text).substitute(words)
        for path, text in TEMPLATES[template][1].items()
    }


def _check_folder(folder: Path) -> None:
    """Check that a folder is free.

    Raises:
        UsageError: there is something.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is there already, and is no folder")
    if folder.is_dir():
        if any(folder.iterdir()):
            raise UsageError(f"{folder} has files in it: take another name, or an empty folder")
        folder.rmdir()


def _write_files(folder: Path, files: dict[str, str]) -> None:
    folder.chmod(0o755)  # as mkdir would have made it
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
