"""The API reference, made from the docstrings."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

pytest.importorskip("griffe", reason="pip install --group docs")

from docsite.api import make_api_pages  # noqa: E402 - found through the line above
from docsite.docstrings import convert_example, convert_inline  # noqa: E402 - see above
from docsite.meanings import OWN  # noqa: E402 - see above
from docsite.signatures import abbreviate_type, split_union  # noqa: E402 - see above

from support.heap import own_heap  # noqa: E402 - see above

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def pages():
    """Every page of the reference."""
    with own_heap():  # the collector would look at the syntax trees over and over
        return make_api_pages(ROOT)


def test_every_public_name_has_a_section(pages):
    """Ours: what the snapshot promises is documented."""
    text = "\n".join(pages.values())
    listed = (ROOT / "tests/architecture/exports.txt").read_text(encoding="utf-8").split()
    names = {path.rpartition(".")[2] for path in listed if not path.endswith("__")}
    foreign = {"UNSET", "UnsetType"}  # msgspec's own

    assert sorted(name for name in names if f"{{#{name}}}" not in text) == sorted(foreign & names)


def test_no_cell_of_the_reference_is_without_a_meaning(pages):
    """Ours: each parameter, field and name says what it means, its unit and its default."""
    empty = [
        f"{page}: {section}: {row}"
        for page, text in pages.items()
        for section, row in list_rows(text)
        if re.search(r"\|\s*\|$", row)
    ]

    assert [] == empty


def test_meanings_outside_of_docstrings_are_of_parameters_that_are_there(pages):
    """Ours: who renames a parameter finds the meaning that the tools keep for it."""
    text = "\n".join(pages.values())
    lost = [
        f"{method}: {name}"
        for method, meanings in OWN.items()
        for name in meanings
        if f"| `{name}` |" not in text.partition(f"{{#{method}}}")[2].partition("\n## ")[0]
    ]

    assert [] == lost


def list_rows(text):
    """The rows of all tables of a page, each with the heading above it."""
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line
        elif line.startswith("|"):
            yield heading, line


def test_a_facade_is_a_page_of_names(pages):
    """Ours: each name of another library that is pinned stands in a table, with what it is."""
    page = pages["reference/api/isthmus.compat.fastmcp.md"]
    section = page.split("{#isthmus.compat.fastmcp.server.middleware}")[1].split("\n## ")[0]

    assert "| `MiddlewareContext` |" in section
    assert "|  |" not in pages["reference/api/isthmus.compat.mcp.md"] + page


def test_the_fixtures_of_the_pytest_plugin_are_a_page(pages):
    """Ours: what a test file names without an import is documented, too."""
    page = pages["reference/api/isthmus.testing.plugin.md"]

    assert {"mcp_client", "assert_tools"} <= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert "pytest_addoption" not in page


def test_options_of_a_typed_dict_are_a_table(pages):
    """Ours: ``**options: ToolOptions`` says what may be given."""
    page = pages["reference/api/class-server.md"]
    section = page.split("{#Server.tool}")[1].split("\n## ")[0]

    assert "server.tool(**options: ToolOptions)" in section
    assert "| `read_only` |" in section


def test_a_type_leads_to_its_section(pages):
    """Ours: an exception in a table is a link."""
    assert "[`UsageError`](isthmus.errors.md#UsageError)" in pages["reference/api/class-server.md"]


def test_a_union_of_many_is_abbreviated():
    """Ours: brackets and quotes do not split it."""
    assert split_union('dict[str, int | None] | Literal["a|b"]') == [
        "dict[str, int | None]",
        'Literal["a|b"]',
    ]
    assert abbreviate_type("A | B | C | D | E | None") == "A | B | C | … | None"
    assert abbreviate_type("A | B | None") == "A | B | None"


def test_roles_become_links():
    """Ours: what has no section is code."""
    addresses = {"isthmus.errors.ToolError": "isthmus.errors.md#ToolError"}

    assert (
        convert_inline(":class:`~isthmus.errors.ToolError`, :meth:`open`, ``x``", addresses.get)
        == "[`ToolError`](isthmus.errors.md#ToolError), `open`, `x`"
    )


def test_an_example_can_be_pasted():
    """Ours: no prompts; what is printed is a comment."""
    assert convert_example(">>> for x in [1]:\n...     print(x)\n1") == (
        "```python\nfor x in [1]:\n    print(x)\n# 1\n```"
    )
