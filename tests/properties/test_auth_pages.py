"""Pages, whatever stands in them: the same elements, and nothing that cannot be seen."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.pages.templates import (
    ConsentView,
    PagePaths,
    clean_text,
    render_consent_page,
    render_message_page,
)

TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("<>&\"'$`\\/=\r\n\t\0\u202e\u2066\u200b\u0301\ud800{}%"),
    ),
    max_size=80,
)
TAGS = re.compile(r"<[^>]*>")


def consent(text):
    view = ConsentView(
        place=text, client=text, kind="document", domain=text, client_id=text, redirect_uri=text,
        target=text, local=True, scopes={text: text}, resource=text, user=text, provider=text,
        provider_scopes=(text,), handle=text, token="t", logout="l",
    )  # fmt: skip
    return render_consent_page(view, PagePaths())


def elements(page):
    """The tags of a page with their attributes' names."""
    return [re.sub(r'="[^"]*"', "", tag) for tag in TAGS.findall(page.decode())]


PLAIN = [elements(consent("x")), elements(consent("other words")), elements(consent(""))]


@given(TEXT)
def test_a_page_has_the_same_elements_whatever_stands_in_it(text):
    """We demand that no text ends an element or an attribute, or begins one."""
    assert elements(consent(text)) in PLAIN
    page = render_message_page(PagePaths(), text, text, text, text)
    assert elements(render_message_page(PagePaths(), "x", "x", "x", "x")) == elements(page)


@given(TEXT, st.integers(1, 100))
def test_what_is_shown_is_one_line_that_can_be_seen(text, limit):
    """We demand text without controls, bounded, and that showing it twice changes nothing."""
    line = clean_text(text, limit)
    assert len(line) <= limit
    assert [] == [c for c in line if unicodedata.category(c)[0] == "C" or c in "\r\n\u2028\u2029"]
    assert line == clean_text(line, limit)
    assert re.search(r"  |^ | $", line) is None
