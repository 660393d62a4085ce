"""URI templates: RFC 6570 in one direction, its safe inverse in the other."""

import pytest

from isthmus.core.uri_template import (
    MAX_URI_CHARS,
    BadTemplate,
    UriTemplate,
    _join_neighbours,
    _search_spans,
)

VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "half": "50%",
    "escaped": "a%20b",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "empty": "",
    "none": None,
    "nothing": [],
    "no_keys": {},
    "x": 1024,
    "y": 7.5,
    "yes": True,
    "umlaut": "ü",
}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        # RFC 6570 3.2.2: simple
        ("O{none}X", "OX"),
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("{escaped}", "a%2520b"),
        ("O{empty}X", "OX"),
        ("{x,y}", "1024,7.5"),
        ("{x,hello,empty}", "1024,Hello%20World%21,"),
        ("{x,none}", "1024"),
        ("{yes}", "true"),
        ("{umlaut}", "%C3%BC"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{umlaut:1}", "%C3%BC"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        ("O{nothing}{nothing*}{no_keys}{no_keys*}X", "OX"),
        # 3.2.3: reserved
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{+escaped}", "a%20b"),
        ("{+path}/here", "/foo/bar/here"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+list*}", "red,green,blue"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        # 3.2.4: fragments
        ("X{#var}", "X#value"),
        ("X{#hello}", "X#Hello%20World!"),
        ("X{#empty}", "X#"),
        ("X{#none}", "X"),
        ("X{#path,x}", "X#/foo/bar,1024"),
        # 3.2.5: labels
        ("X{.var}", "X.value"),
        ("X{.x,y}", "X.1024.7.5"),
        ("X{.empty}", "X."),
        ("X{.list}", "X.red,green,blue"),
        ("X{.list*}", "X.red.green.blue"),
        ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
        ("X{.none,var}", "X.value"),
        # 3.2.6: paths
        ("{/var}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/var,empty}", "/value/"),
        ("{/path}", "/%2Ffoo%2Fbar"),
        ("{/list*}", "/red/green/blue"),
        ("{/list*,var:1}", "/red/green/blue/v"),
        ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        # 3.2.7: path parameters
        ("{;x,y}", ";x=1024;y=7.5"),
        ("{;x,empty}", ";x=1024;empty"),
        ("{;list}", ";list=red,green,blue"),
        ("{;list*}", ";list=red;list=green;list=blue"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        # 3.2.8 and 3.2.9: queries
        ("{?x,empty}", "?x=1024&empty="),
        ("{?none}", ""),
        ("{?var:3}", "?var=val"),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        # 3.1: literals
        ("", ""),
        ("a b/ü/100%/%41", "a%20b/%C3%BC/100%25/%41"),
    ],
)
def test_a_template_expands_as_the_rfc_has_it(template, uri):
    """RFC 6570 section 3, some of it with the RFC's own values."""
    assert uri == UriTemplate(template).expand(VALUES)


def test_a_lone_surrogate_is_expanded_as_something():
    """No text of Python's makes the expansion fail."""
    assert "%3F" == UriTemplate("{a}").expand({"a": "\ud800"})


@pytest.mark.parametrize(
    "template",
    [
        "{",
        "}",
        "a{b",
        "a}b",
        "{a{b}}",
        "{}",
        "{?}",
        "{=a}",
        "{!a}",
        "{@a}",
        "{|a}",
        "{,a}",
        "{a,}",
        "{a b}",
        "{a-b}",
        "{é}",
        "{.}",
        "{a.}",
        "{a..b}",
        "{a:0}",
        "{a:10000}",
        "{a:x}",
        "{a:}",
        "{a*:3}",
        "{a**}",
        "{%4}",
    ],
)
def test_a_template_the_rfc_does_not_allow_is_refused(template):
    """RFC 6570 section 2; the message quotes the template."""
    with pytest.raises(BadTemplate, match=r"brace|no expression"):
        UriTemplate(template)


def test_a_template_knows_its_variables_and_which_may_be_missing():
    """A server checks its functions' parameters against them."""
    template = UriTemplate("{a}{/b}{?c,a,d.e_1,%41*}")
    assert ("a", "b", "c", "d.e_1", "%41") == template.names
    assert {"b", "c", "d.e_1", "%41"} == template.optional
    assert "UriTemplate('{a}{/b}{?c,a,d.e_1,%41*}')" == repr(template)


@pytest.mark.covers("resources.templates.places")
@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        # literals
        ("test://static", "test://static", {}),
        ("test://a b", "test://a%20b", {}),
        ("test://ü", "test://ü", {}),
        # one segment
        ("test://{id}/data", "test://123/data", {"id": "123"}),
        ("test://{id}", "test://a@b:c,d", {"id": "a@b:c,d"}),
        ("test://{id}", "test://a%20%C3%BC", {"id": "a ü"}),
        ("test://{id}", "test://a ü", {"id": "a ü"}),
        ("test://{id}", "test://100%", {"id": "100%"}),
        ("test://{id}.json", "test://a.b.json", {"id": "a.b"}),
        ("{a}-{b}", "x-y-z", {"a": "x-y", "b": "z"}),
        ("{a}{b}", "xyz", {"a": "xy", "b": "z"}),
        ("{a}{b}", "x%41", {"a": "x", "b": "A"}),
        ("{a}4{b}", "x%414y", {"a": "xA", "b": "y"}),
        ("{a:3}", "abc", {"a": "abc"}),
        ("{a}/{a}", "x/x", {"a": "x"}),
        ("{a,b}", "x,y", {"a": "x", "b": "y"}),
        ("{a,b}", "x", {"a": "x"}),
        ("{a,b*}", "x,y,z", {"a": "x", "b": ["y", "z"]}),
        ("{a*,b}", "x,y", {"a": ["x"], "b": "y"}),
        # several segments
        ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
        ("file:///{+path}", "file:///a%2Fb?c#d", {"path": "a/b?c#d"}),
        ("{+path}/info/{id}", "a/info/b/info/3", {"path": "a/info/b", "id": "3"}),
        ("f:/{/path*}", "f://a/b", {"path": ["a", "b"]}),
        ("f:{/a,b}", "f:/x/y", {"a": "x", "b": "y"}),
        ("f:{/a,b}", "f:/x", {"a": "x"}),
        ("f:{/a}/end", "f:/end", {}),
        ("f:{/a}/end", "f:/x/end", {"a": "x"}),
        ("f:{/a}", "f:/", {"a": ""}),
        # labels, parameters, fragments
        ("f{.ext}", "f.tar.gz", {"ext": "tar.gz"}),
        ("f{.a,b}", "f.tar.gz", {"a": "tar", "b": "gz"}),
        ("f{.a*}", "f.tar.gz", {"a": ["tar", "gz"]}),
        ("f{;a,b}", "f;b=2;a=1", {"a": "1", "b": "2"}),
        ("f{;a}", "f;a", {"a": ""}),
        ("f{#part}", "f#a/../b", {"part": "a/../b"}),
        ("f{#part}", "f", {}),
        # queries
        ("f{?a,b}", "f", {}),
        ("f{?a,b}", "f?a=1&b=2", {"a": "1", "b": "2"}),
        ("f{?a,b}", "f?b=2&a=1", {"a": "1", "b": "2"}),
        ("f{?a,b}", "f?b=", {"b": ""}),
        ("f{?a}", "f?a=x%26y=../%2F", {"a": "x&y=..//"}),
        ("f{?a*}", "f?a=1&a=2", {"a": ["1", "2"]}),
        ("f{?a}{&b}", "f?a=1&b=2", {"a": "1", "b": "2"}),
        ("f?x=1{&a}", "f?x=1&a=2", {"a": "2"}),
        ("f/{id}{?a}", "f/3?a=1", {"id": "3", "a": "1"}),
        ("f/{id}{?a}{#b}", "f/3#x", {"id": "3", "b": "x"}),
    ],
)
def test_a_uri_gives_back_the_values(template, uri, values):
    """We demand it: matching inverts expansion and decodes escapes."""
    assert values == UriTemplate(template).match(uri)


@pytest.mark.covers("resources.templates.places")
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("test://static", "test://static/"),
        ("test://static", "TEST://static"),
        ("test://{id}", "test://"),
        ("test://{id}", "other://1"),
        ("test://{id}/data", "test://1/data/more"),
        ("test://{id}/data", "test://1/date"),
        ("{a}-{b}", "xyz"),
        ("{a}-{b}", "x/y-z"),
        ("{a}-{b}", "-z"),
        ("{a}.{b}-{c}", "x.y"),
        ("test://{id}", "test://1?q=2"),
        ("test://{id}", "test://1#top"),
        ("test://{id}", "test://%ff"),
        ("{a:3}", "abcd"),
        ("{a}/{a}", "x/y"),
        ("{a,b}", "x,y,z"),
        ("f{?a}", "f?b=1"),
        ("f{?a}", "f?a=1&b=1"),
        ("f{?a}", "f?a=1&a=2"),
        ("f{?a}", "f?"),
        ("f{?a}", "f?a=%ff"),
        ("f{;a}", "f;a=x%2Fy"),
    ],
)
def test_a_uri_that_no_values_lead_to_does_not_match(template, uri):
    """We demand it: another resource is another resource."""
    assert None is UriTemplate(template).match(uri)


@pytest.mark.covers("resources.templates.places")
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("file:///{name}", "file:///a/b"),
        ("file:///{name}", "file:///a%2Fb"),
        ("file:///{name}", "file:///.."),
        ("file:///{name}", "file:///%2e%2E"),
        ("file:///{name}", "file:///."),
        ("file:///{name}", "file:///..%2F..%2Fetc%2Fpasswd"),
        ("file:///{name}", "file:///..%5Csecret"),
        ("file:///{folder}/{name}", "file:///../secret"),
        ("file:///{+path}", "file:///../secret"),
        ("file:///{+path}", "file:///a/../../secret"),
        ("file:///{+path}", "file:///a/%2E%2E/secret"),
        ("file:///{+path}", "file:///a%2F..%2Fsecret"),
        ("file:///{+path}", "file:///a\\..\\secret"),
        ("file:///{+path}", "file:///a/."),
        ("file://{/path*}", "file:///a/../secret"),
        ("file://{/path*}", "file:///a%2Fb"),
    ],
)
def test_no_value_leads_out_of_the_folder_it_is_joined_to(template, uri):
    """We demand it: a value is what its place in the template promises, also when escaped."""
    assert None is UriTemplate(template).match(uri)


def test_names_that_only_look_like_dot_segments_are_fine():
    """Files may begin with dots, or hold several."""
    template = UriTemplate("file:///{+path}")
    assert {"path": "..a/b../.c/..."} == template.match("file:///..a/b../.c/...")


def test_a_uri_too_long_to_be_one_does_not_match():
    """Nothing is spent on it."""
    template = UriTemplate("f:{id}")
    assert {"id": "x" * (MAX_URI_CHARS - 2)} == template.match("f:" + "x" * (MAX_URI_CHARS - 2))
    assert None is template.match("f:" + "x" * (MAX_URI_CHARS - 1))


def test_a_template_with_many_choices_takes_linear_time():
    """A regular expression that backtracks would take years for this one."""
    template = UriTemplate("{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}!")
    assert None is template.match("-" * 4000)


@pytest.mark.parametrize(
    ("template", "certain"),
    [
        ("test://{id}/data", True),
        ("test://{id}{?a,b}{#c}", True),
        ("file:///{+path}", True),
        ("{/a}x", False),
        ("{a}{b}", False),
        ("{a}-{b}", False),
        ("{+a}/x", False),
        ("{/a}/x", False),
        ("{/a,b}", False),
        ("{a}{/b}{/c}", False),
    ],
)
def test_templates_without_choices_are_matched_by_a_plain_expression(template, certain):
    """The fast way is taken only where it gives what the thorough one would."""
    made = UriTemplate(template)
    assert certain == ("_compile_spans" in getattr(made._spans, "__qualname__", ""))
    for uri in [
        "test://1/data",
        "test://1?a=2#3",
        "file:///a/b",
        "/x",
        "a-b-c",
        "a/x",
        "",
        "a/b/c",
    ]:
        slow = _search_spans(_join_neighbours(made._parts), uri)
        assert slow == (None if (fast := made._spans(uri)) is None else list(fast))
