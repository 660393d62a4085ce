"""Pages of the documentation site: links, sources, and the checks of what was built."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from docsite.check import check_site  # noqa: E402 - found through the line above
from docsite.links import LinkError, LinkMap  # noqa: E402 - found through the line above
from docsite.llms import read_summary, strip_tags  # noqa: E402 - found through the line above
from docsite.sources import write_source_pages  # noqa: E402 - found through the line above
from docsite.versions import prepare_for_disk, write_version_index  # noqa: E402 - found through the line above


@pytest.fixture
def repository(tmp_path):
    """A small repository with documentation."""
    files = {
        "README.md": "[guide](docs/guide/a.md)",
        "docs/README.md": "# All",
        "docs/guide/a.md": "# A",
        "docs/tutorial/README.md": "# T",
        "examples/x.py": "print(1)\n",
        "bench/README.md": "[results](RESULTS.md)",
        "bench/RESULTS.md": "# Results",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("../README.md", "../contents.md"),
        ("../../README.md#a-server", "../index.md#a-server"),
        ("../tutorial/README.md", "../tutorial/index.md"),
        ("../tutorial", "../tutorial/index.md"),
        ("../../examples/x.py", "../source/examples/x.py.md"),
        ("#here", "#here"),
        ("https://example.com/", "https://example.com/"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site(repository, link, leads):
    """Ours: files of the repository have pages, so no link needs the repository."""
    links = LinkMap(repository)

    assert f"[x]({leads})" == links.rewrite(f"[x]({link})", "docs/guide/a.md")


def test_links_in_code_stay_as_they_are(repository):
    """Ours: an example that shows Markdown is not rewritten."""
    text = "`[x](gone.md)`\n\n```text\n[x](gone.md)\n```\n"

    assert text == LinkMap(repository).rewrite(text, "docs/guide/a.md")


def test_a_link_to_nothing_is_an_error(repository):
    """Ours: the error names the page and the file."""
    with pytest.raises(LinkError, match=r"docs/guide/a\.md links to docs/guide/gone\.md"):
        LinkMap(repository).rewrite("[x](gone.md)", "docs/guide/a.md")


def test_sources_that_link_to_sources_have_pages_too(repository):
    """Ours: Markdown outside of docs/ is a page with links of its own."""
    links = LinkMap(repository)
    links.rewrite("[x](../../bench/README.md)", "docs/guide/a.md")

    assert write_source_pages(links, repository / "out") == 2
    page = repository / "out" / "source" / "bench" / "README.md.md"
    assert page.read_text(encoding="utf-8").endswith("[results](RESULTS.md.md)")


@pytest.fixture
def built(tmp_path):
    """A built site of one page."""
    site = tmp_path / "1.0"
    site.mkdir()
    (site / "index.html").write_text('<h1 id="top">x</h1>', encoding="utf-8")
    (site / "index.md").write_text("# x", encoding="utf-8")
    (site / "llms.txt").write_text("[x](index.md)", encoding="utf-8")
    (site / "llms-full.txt").write_text("<!-- index.md -->", encoding="utf-8")
    return site


@pytest.mark.parametrize(
    ("element", "fault"),
    [
        ('<a href="gone.html">', "index.html: gone.html: there is no such page"),
        ('<a href="#gone">', "index.html: #gone: the page has no such anchor"),
        (
            '<a href="../../../etc/passwd">',
            "index.html: ../../../etc/passwd: there is no such page",
        ),
        (
            '<script src="https://cdn.example/x.js">',
            "index.html: loads https://cdn.example/x.js from elsewhere",
        ),
        (
            '<link rel="stylesheet" href="//cdn.example/x.css">',
            "index.html: loads //cdn.example/x.css from elsewhere",
        ),
    ],
)
def test_a_fault_of_a_page_is_found(built, element, fault):
    """Ours: dead links, dead anchors, and anything that a browser would fetch from elsewhere."""
    with (built / "index.html").open("a", encoding="utf-8") as page:
        page.write(element)

    assert check_site(built, ["index.md"], {"index.md"}) == [fault]


def test_a_style_sheet_from_elsewhere_is_found(built):
    """Ours: fonts come by style sheets."""
    (built / "x.css").write_text("@import url(https://fonts.example/x)", encoding="utf-8")

    assert check_site(built, ["index.md"], {"index.md"}) == [
        "x.css: loads https://fonts.example/x from elsewhere"
    ]


def test_what_models_read_has_to_be_whole(built):
    """Ours: a page that llms.txt lacks is a fault."""
    for name in ("llms.txt", "llms-full.txt"):
        (built / name).write_text("", encoding="utf-8")

    assert check_site(built, ["index.md"], {"index.md"}) == [
        "llms.txt: index.md is missing",
        "llms-full.txt: index.md is missing",
    ]


def test_links_and_good_pages_have_no_faults(built):
    """Ours: a link to another site is no fault, nor is one to a page that is there."""
    with (built / "index.html").open("a", encoding="utf-8") as page:
        page.write('<a href="https://example.com/"></a><a href="index.html#top"></a>')

    assert check_site(built, ["index.md"], {"index.md"}) == []


def test_versions_are_ordered_by_their_numbers(tmp_path):
    """Ours: 0.10 is newer than 0.9."""
    for version in ("0.9.0", "0.10.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "index.html").touch()
    write_version_index(tmp_path, "0.10.0")

    text = (tmp_path / "versions.json").read_text(encoding="utf-8")
    assert text.index("0.10.0") < text.index("0.9.0")
    assert "0.10.0/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_summary_is_the_first_sentence():
    """Ours: without markup, and not from a table or a block of code."""
    text = "# Title\n\n```python\nx. y\n```\n\n| a |\n\nA [page](p.md) about it. More.\n"

    assert read_summary(text) == "A page about it."


def test_markdown_for_models_has_no_tags():
    """Ours: a type is code, with the bar that its table needs."""
    text = '## x {#X.y}\n| <code><a href="a.html">int</a> &#124; None</code> |'

    assert strip_tags(text) == "## x\n| `int \\| None` |"


def test_a_version_can_be_read_from_the_disk(tmp_path):
    """Ours: no link leads to a folder, and the search's index is a script, too."""
    (tmp_path / "guide").mkdir()
    page = tmp_path / "guide" / "tools.html"
    page.write_text('<a href="./..">home</a> <a href="..">up</a> <a href="../why.html">why</a>')
    (tmp_path / "search.json").write_text('{"items": []}')
    prepare_for_disk(tmp_path)

    assert page.read_text() == (
        '<a href="./../index.html">home</a> <a href="../index.html">up</a> <a href="../why.html">why</a>'
    )
    assert (tmp_path / "search.js").read_text() == 'var __index = {"items": []};\n'


def test_the_page_for_what_is_not_there_has_links_from_its_versions_folder(tmp_path):
    """Ours: the folder stands in one place, from where a script moves it below another path."""
    (tmp_path / "1.0").mkdir()
    (tmp_path / "1.0" / "index.html").write_text("")
    (tmp_path / "1.0" / "404.html").write_text(
        '<head><link href="/a.css"></head><a href="/">home</a><script id="__config">{}</script>'
    )
    write_version_index(tmp_path, "1.0", "/isthmus/")
    text = (tmp_path / "404.html").read_text()

    assert '<base href="/isthmus/1.0/">' in text.partition("<link")[0]
    assert 'href="a.css"' in text
    assert 'href="index.html"' in text
    assert "read.base = document.baseURI" in text.partition('id="__config"')[2]
