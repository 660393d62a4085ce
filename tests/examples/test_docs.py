"""The documentation is true: what it shows is run, what it points to is there."""

import logging
import re

import pytest

from isthmus.cli.exit_codes import EXIT_MEANINGS
from support.docs import blocks
from support.docs.blocks import ROOT, list_blocks, list_pages

LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in list_pages()]
PROGRAMS = [
    pytest.param(block, id=block.name)
    for page in list_pages()
    for block in list_blocks(page, "python")
    if blocks.find_excerpt(block) is None
]
EXCERPTS = [
    pytest.param(*taken, id=block.name)
    for page in list_pages()
    for block in list_blocks(page, "python")
    if (taken := blocks.find_excerpt(block))
]
COMMANDS = [
    pytest.param(command, shown, id=f"{block.name} {command[:40]}")
    for page in list_pages()
    for block in list_blocks(page, "console")
    for command, shown in blocks.list_commands(block)
]

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize("block", PROGRAMS)
def test_a_block_runs_as_a_file_of_its_own(block, caplog):
    """Ours: what a page shows can be pasted into a file, and runs."""
    caplog.set_level(logging.WARNING, "isthmus")
    assert blocks.is_whole(block), "it needs names of other blocks, or awaits outside of a function"
    blocks.run_program(block)


@pytest.mark.parametrize(("file", "part"), EXCERPTS)
def test_what_is_taken_from_an_example_stands_in_it(file, part):
    """Ours: a page and the file it quotes do not drift apart."""
    assert part in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_a_command_prints_what_the_page_shows(command, shown):
    """Ours: what a terminal shows is copied from one."""
    printed = blocks.run_command(command)

    assert blocks.is_same_output(shown, printed), f"$ {command}\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page):
    """Ours: a block without a word behind its fence would not be run, and nobody would notice."""
    assert [] == [b.name for b in list_blocks(page) if b.info not in blocks.KINDS]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short(page):
    """Ours: 200 lines, or it is two pages; the index has one more for each decision."""
    lines = page.read_text(encoding="utf-8").splitlines()

    assert len([line for line in lines if "](decisions/" not in line]) <= 200


@pytest.mark.parametrize(
    "page", [*PAGES, pytest.param(ROOT / "CONTRIBUTING.md", id="CONTRIBUTING.md")]
)
def test_every_link_leads_somewhere(page):
    """Ours: links between pages survive renames."""
    links = [link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8"))]
    inside = [link for link in links if link and not link.startswith(("http://", "https://"))]

    assert [] == [link for link in inside if not (page.parent / link).exists()]


def test_every_page_is_in_the_index():
    """Ours: what nobody can find is not documentation."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = [p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")]

    assert [] == [p for p in sorted(listed) if p not in index and p != "README.md"]


def test_the_files_that_contributing_names_are_there():
    """Ours: the reading path can be walked."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|tests|docs|bench)/[\w./-]+|tools/\w+\.py)`", text)

    assert named
    assert [] == [path for path in named if not (ROOT / path).exists()]


def test_the_exit_codes_are_those_of_the_command():
    """Ours: one table, in ``cli/exit_codes.py``, and the page that shows it."""
    page = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")

    assert [] == [
        f"{code.value} {meaning}"
        for code, meaning in EXIT_MEANINGS.items()
        if f"| {code.value} | {meaning} |" not in page
    ]


@pytest.mark.parametrize(("said", "right"), [("2", True), ("3", False)])
def test_a_print_that_prints_something_else_is_caught(said, right):
    """Ours: the check of what is printed can fail."""
    block = blocks.Block(ROOT / "README.md", 1, "python", f"print(1 + 1)  # {said}\n")
    try:
        blocks.run_program(block)
    except AssertionError:
        caught = True
    else:
        caught = False

    assert right is not caught


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        (["a", "..."], "a\nb\nc\n", True),
        (["...", "c"], "a\nb\nc\n", True),
        (["a", "...", "c"], "a\nc\n", True),
        (["a", "..."], "b\na\n", False),
        (["a"], "a\nb\n", False),
        ([], "", True),
        ([], "a\n", False),
    ],
)
def test_three_dots_stand_for_any_lines(shown, printed, alike):
    """Ours: what varies may be left out, and nothing else."""
    assert alike is blocks.is_same_output(shown, printed)
