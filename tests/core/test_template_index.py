"""The index of URI templates, which finds the few that can match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.core.template_index import TemplateIndex
from isthmus.core.uri_template import BadTemplate, UriTemplate, quote_uri


def index_templates(texts):
    """An index of templates by their texts, in this order."""
    index = TemplateIndex()
    for text in texts:
        template = UriTemplate(text)
        index.add(text, template.literals, text)
    return index


@pytest.mark.parametrize(
    ("template", "literals"),
    [
        ("notes://{id}", ("notes://",)),
        ("{+uri}", ("",)),
        ("{scheme}/x", ("", "/x")),
        ("repo://{owner}/{name}/issues/{n}{?page}", ("repo://", "/", "/issues/")),
        ("repo://{owner}#top", ("repo://", "#top")),
        ("a://{x}.txt/{y}/z", ("a://",)),
        ("a://{+x}/y", ("a://",)),
        ("a://{x,y}/z/{w}/v", ("a://", "/z/", "/v")),
        ("a://{x}{/y}/z", ("a://",)),
        ("ü://{x}/ö", ("%C3%BC://", "/%C3%B6")),
    ],
)
def test_literals_stand_where_every_matching_uri_has_them(template, literals):
    """Ours: a variable of one segment ends where the next literal begins."""
    assert literals == UriTemplate(template).literals


@pytest.mark.parametrize(
    "family",
    [
        "t{n}://{{x}}",
        "res://{n}/{{x}}",
        "res://{{x}}/{n}",
        "res://{{x}}/a/{{y}}/{n}/{{z}}",
        "res://{{x}}/{n}{{?page}}",
    ],
)
def test_few_of_many_templates_are_tried(family):
    """Ours: what finds one of thousands looks at those alone that its literals lead to."""
    texts = [family.format(n=n) for n in range(2000)]
    index = index_templates(texts)
    for text in (texts[0], texts[1234], texts[-1]):
        template = UriTemplate(text)
        uri = template.expand(dict.fromkeys(template.names, "v"))
        found = index.find(uri)
        assert text in found
        assert len(found) <= 4  # those that it begins with, as 1, 12 and 123 for 1234

    assert [] == index.find(family.format(n="no").replace("{x}", "v").replace("{y}", "w"))
    assert [] == index.find("none://a/b/c/d")


def test_what_was_removed_leaves_nothing_behind():
    """Ours: a server may add and remove templates for as long as it runs."""
    texts = ["a://{x}", "a://{x}/b", "a://{x}/b/{y}/c", "b://{x}", "{+all}"]
    index = index_templates(texts)
    for text in texts:
        index.remove(text)

    root = index._root
    assert ({}, {}, {}, {}) == (root.entries, root.children, root.lengths, index._places)


def test_a_template_that_comes_back_comes_last():
    """As in the list of templates: the first that matches is the one that was offered first."""
    index = index_templates(["a://{x}", "a://{+x}"])
    index.remove("a://{x}")
    index.add("a://{x}", ("a://",), "a://{x}")

    assert ["a://{+x}", "a://{x}"] == index.find("a://1")


pieces = st.sampled_from(
    ["a", "b", "ab", "/", "/a", "/b", "?", "#", ".", "é", "%", "%41", "{x}", "{y}", "{+x}", "{/z}",
     "{#f}", "{?q}", "{&r}", "{x,y}", "{x:2}", "{/z*}", "{.e}", "{;p}"]
)  # fmt: skip
templates = st.lists(pieces, min_size=1, max_size=7).map("".join)
uris = st.lists(st.sampled_from("ab/?#.é%41=&;,q"), max_size=12).map("".join)


@given(st.lists(templates, max_size=12, unique=True), st.lists(uris, max_size=8), st.data())
def test_the_index_finds_what_trying_all_of_them_finds(texts, given_uris, data):
    """Ours: the same template wins, whatever comes and goes."""
    kept = {}
    for text in texts:
        try:
            kept[text] = UriTemplate(text)
        except BadTemplate:
            continue
    index = index_templates(kept)
    if kept:
        for text in data.draw(st.lists(st.sampled_from(sorted(kept)), unique=True)):
            index.remove(text)
            del kept[text]
    expanded = [one.expand(dict.fromkeys(one.names, "ab")) for one in kept.values()]
    for uri in [*given_uris, *expanded]:
        plain = [text for text, one in kept.items() if one.match(uri) is not None]
        found = [text for text in index.find(quote_uri(uri)) if kept[text].match(uri) is not None]
        assert plain == found
