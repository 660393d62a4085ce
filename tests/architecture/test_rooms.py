"""Folders, imports between rooms, and names: the rules that keep the tree readable."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import structure  # noqa: E402 - tools/structure.py: found through the line above

MODULES_PER_FOLDER = {"isthmus/wire": 24, "isthmus/core": 24}
"""Where each module is one noun of the specification; every other folder has at most 16."""

MAX_HOMONYMS = 11
FACADES = "isthmus.compat."  # their classes have the names that other libraries gave them
MAX_PARTICIPLES = 10
MAX_CONSTANT_DOCSTRINGS = 20

RUNNING_UP: dict[str, str] = {}
"""Imports that run up between the rooms of a package, at most three, each with its reason."""


def test_a_folder_has_few_modules():
    """Ours: a folder is a room that one can overlook."""
    wide = {
        folder: number
        for folder, number in structure.count_folders(ROOT).items()
        if number > MODULES_PER_FOLDER.get(folder, 16)
    }

    assert {} == wide


@pytest.mark.parametrize("package", structure.ROOMS)
def test_imports_between_rooms_go_one_way(trees, package):
    """Ours: values stand below engines; two rooms that import one another are one room."""
    circles = [one for one in structure.find_circles(trees, package) if one not in RUNNING_UP]

    assert [] == circles, "move what both need to a room below them"


def test_few_imports_run_up(trees):
    """Ours: an exception that is no longer needed goes."""
    made = {
        f"{module} imports {target}"
        for module, tree in trees.items()
        for target in structure.find_imports(tree, set(trees))
    }

    assert len(RUNNING_UP) <= 3
    assert set() == set(RUNNING_UP) - made


def test_class_names_are_unique(trees):
    """Ours: one name is one class, but for a few that two packages share on purpose."""
    ours = {name: tree for name, tree in trees.items() if not name.startswith(FACADES)}
    homonyms = structure.find_homonyms(ours)

    assert sum(len(homes) - 1 for homes in homonyms.values()) <= MAX_HOMONYMS, homonyms


def test_functions_are_named_by_verbs(trees):
    """Ours: `parse_revisions` can be searched for; `spoken` cannot."""
    found = structure.find_participles(trees)

    assert len(found) <= MAX_PARTICIPLES, "\n".join(found)


def test_module_docstrings_say_what_the_module_is(trees):
    """Ours: a first sentence has the word that a reader searches for."""
    assert [] == structure.find_riddles(trees)


def test_constants_say_their_unit_and_object(trees):
    """Ours: `MAX_PROOFS` and `QUEUE_TIMEOUT_S` need no docstring."""
    listed = Path(__file__).with_name("exports.txt").read_text(encoding="utf-8").split()
    public = {path.rpartition(".")[2] for path in listed}
    found = structure.find_constant_docstrings(trees, public)

    assert len(found) <= MAX_CONSTANT_DOCSTRINGS, "\n".join(found)
