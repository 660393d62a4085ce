"""Tools are found by what they are for."""

import pytest

from isthmus.search.tool_index import ToolIndex, split_words
from isthmus.wire import Tool
from support.host.tool_corpus import (
    find_misses,
    load_held_out,
    load_queries,
    load_real_held_out,
    load_real_tools,
    load_real_tuned,
    load_tools,
    load_tuned,
    measure_recall,
)


def tool(name, description="", **properties):
    """A tool with parameters that are described."""
    members = {one: {"type": "string", "description": about} for one, about in properties.items()}
    schema = {"type": "object", "properties": members}
    return Tool(name=name, description=description, input_schema=schema)


@pytest.fixture
def index():
    """An index over two servers."""
    found = ToolIndex()
    files = [
        tool("read_file", "Give the text of one.", path="where it is"),
        tool("delete_file", "It cannot be brought back."),
        tool("listDirectory", "What lies in a folder."),
    ]
    mail = [tool("send_mail", "Post a message to somebody.", recipient="who gets it")]
    found.replace("files", [(f"files__{one.name}", one) for one in files])
    found.replace("mail", [(f"mail__{one.name}", one) for one in mail])
    yield found
    found.close()


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("delete", "files__delete_file"),
        ("erase a document", "files__delete_file"),
        ("reading files", "files__read_file"),
        ("list directory", "files__listDirectory"),
        ("who is the recipient", "mail__send_mail"),
        ("recipent", "mail__send_mail"),
        ('"; DROP TABLE tools; --" mail', "mail__send_mail"),
        ("NEAR(mail*) AND -x", "mail__send_mail"),
    ],
)
def test_the_best_comes_first(index, query, name):
    """Ours: by name, by meaning, by parameter, with a slip, and whatever signs are in the query."""
    assert name == index.search(query).names[0]


def test_somebody_finds_only_what_they_may_know_of(index):
    """Ours: who may see what is asked at the time of the search, and what is hidden is not counted."""
    found = index.search("file", visible=lambda name: name != "files__delete_file")

    assert "files__delete_file" not in found.names
    assert index.search("file").total - 1 == found.total


def test_a_server_narrows_the_search(index):
    """Ours: one may look at one server alone."""
    assert ("mail__send_mail",) == index.search("send read delete", server="mail").names


def test_tools_that_went_are_found_no_more(index):
    """Ours: a list that has changed takes the place of the one before."""
    index.replace("files", [])

    assert () == index.search("delete file", server="files").names
    assert 1 == len(index)


def test_words_of_nothing_find_nothing(index):
    """Ours: a query of small words, or of none, is no query."""
    assert [(), ()] == [index.search(query).names for query in ("what is the", "  ")]


def test_names_fall_into_words():
    """Ours: the spelling of a name hides no word of it."""
    assert "get URL From Page x" == split_words("getURLFromPage_x")


@pytest.fixture(scope="module")
def library():
    """An index over some four hundred tools of forty servers."""
    found = ToolIndex()
    for server, tools in load_tools().items():
        found.replace(server, tools)
    yield found
    found.close()


@pytest.mark.covers("hostcontext.search.recall")
@pytest.mark.parametrize("queries", [load_tuned(), load_held_out()], ids=["chosen-by", "held-out"])
def test_what_is_meant_is_among_the_first_five(library, queries):
    """We demand: for nine queries of ten, paraphrases and slips among them, also of those held out."""
    missed = find_misses(library, queries)

    assert len(missed) <= len(queries) // 10, missed


def test_the_library_is_large_enough_to_say_something(library):
    """We demand: 200 queries over 300 tools at least, and every right answer is there."""
    names = {name for tools in load_tools().values() for name, _ in tools}

    assert len(library) >= 300
    assert len(load_queries()) >= 200
    assert set() == {name for _, right in load_queries() for name in right} - names


def test_one_index_serves_connections_of_their_own():
    """Ours: a server that has a connection for each user is searched at the one of who asks."""
    index = ToolIndex()
    index.replace("mail", [("mail__send", tool("send"))], isolation="user:ann")
    index.replace("mail", [("mail__send_all", tool("send_all"))], isolation="user:bob")

    assert [("mail__send",), ("mail__send_all",), ()] == [
        index.search("send", isolations=of).names
        for of in ({"mail": "user:ann"}, {"mail": "user:bob"}, {})
    ]


def test_what_is_forgotten_leaves_nothing_behind():
    """Ours: words and slips of tools that went are no longer known."""
    index = ToolIndex()
    index.replace("a", [("a__cannot", tool("cannot", "Tell all of it, cannot tell."))])
    index.remove("a")

    assert (0, {}, {}) == (len(index), index._known, index._slips)
    assert ({}, {}, {}) == (index._postings, index._spread, index._lengths)
    assert {0} == set(index._sums)


@pytest.fixture(scope="module")
def real():
    """An index over the tools of real servers."""
    found = ToolIndex()
    for server, tools in load_real_tools().items():
        found.replace(server, tools)
    yield found
    found.close()


@pytest.mark.covers("hostcontext.search.real")
def test_tools_of_real_servers_are_found_by_the_words_of_others(real):
    """We demand: no worse than it was measured, by names and parameters alone (bench/host_search.py)."""
    names = {name for tools in load_real_tools().values() for name, _ in tools}
    queries = load_real_tuned() + load_real_held_out()
    servers = [{name.partition("__")[0] for _, right in part for name in right}
               for part in (load_real_tuned(), load_real_held_out())]  # fmt: skip
    one, five, mean = measure_recall(real, load_real_held_out())

    assert len(real) >= 300
    assert set() == {name for _, right in queries for name in right} - names
    assert set() == servers[0] & servers[1]
    assert five >= 0.55
    assert one >= 0.24
    assert mean >= 0.37


def test_a_tool_that_has_more_of_the_words_comes_first():
    """Ours: one rare word in a long description is less than two in a name."""
    index = ToolIndex()
    talk = "It prints the zebra report. " + "It is about many other things. " * 20
    tools = [tool("print_zebra", talk), tool("list_branches"), tool("delete_branch", "Branches.")]
    index.replace("a", [(f"a__{one.name}", one) for one in tools])

    assert "a__list_branches" == index.search("list the branches please").names[0]
    assert "a__delete_branch" == index.search("deleting branches").names[0]


def test_accents_endings_and_joined_words_make_no_difference():
    """Ours: whatever is typed, and however a server spells it."""
    index = ToolIndex()
    tools = [tool("createMenüEntry"), tool("list_categories"), tool("stopJob")]
    index.replace("a", [(f"a__{one.name}", one) for one in tools])

    for query, name in (
        ("create menu entries", "a__createMenüEntry"),
        ("category", "a__list_categories"),
        ("stopping jobs", "a__stopJob"),
        ("show", "a__list_categories"),
    ):
        assert name == index.search(query).names[0]
