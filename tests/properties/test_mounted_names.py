"""Names of mounted servers: what goes out comes back, and nothing else comes in."""

from hypothesis import given
from hypothesis import strategies as st

from isthmus.server.composition.names import NameMap, check_prefix

PREFIXES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,20}[A-Za-z0-9])?", fullmatch=True)
NAMES = st.text(min_size=1, max_size=30)
URIS = st.from_regex(r"(?s)[A-Za-z][A-Za-z0-9+.-]{0,8}:(//)?.{0,30}", fullmatch=True)


@given(PREFIXES, NAMES)
def test_a_name_comes_back(prefix, name):
    """Ours: clients use the names that they were told."""
    names = NameMap(check_prefix(prefix))

    assert name == names.inner_name(names.outer_name(name))


@given(PREFIXES, URIS)
def test_a_uri_comes_back(prefix, uri):
    """Ours: also one that is odd: the mounted server judges it, as it would by itself."""
    names = NameMap(prefix)
    outer = names.outer_uri(uri)

    assert uri == names.inner_uri(outer)
    assert outer.partition(":")[0] == uri.partition(":")[0]


@given(PREFIXES, URIS)
def test_what_comes_in_has_the_very_prefix(prefix, uri):
    """Ours: whatever is taken for a mounted server's goes out as it came."""
    names = NameMap(prefix)
    inner = names.inner_uri(uri)

    assert inner is None or prefix in uri
    # ``x:p:`` before ``//`` is a second way to write what has ``//`` itself; both lead to one.
    assert inner is None or names.inner_uri(names.outer_uri(inner)) == inner


@given(PREFIXES, PREFIXES, URIS)
def test_nested_prefixes_come_back(outer, inner, uri):
    """Ours: a in b in c."""
    first, second = NameMap(inner), NameMap(outer)

    assert uri == first.inner_uri(second.inner_uri(second.outer_uri(first.outer_uri(uri))))


@given(PREFIXES, PREFIXES, URIS)
def test_two_prefixes_never_meet(one, two, uri):
    """Ours: a URI of one mount is never another's, be its prefix the beginning of the other."""
    outer = NameMap(one).outer_uri(uri)

    assert one == two or NameMap(two).inner_uri(outer) is None
