"""What a docstring says, in each of the styles people write."""

import pytest

from isthmus.server.schema.signatures import Docstring, parse_docstring

GOOGLE = """Book a place.

    Places are few.

    Args:
        date: ISO date,
            for example 2026-05-01.
        seats (Optional[tuple(int)]): how many: one to four.
        *rest: nobody knows.

    Returns:
        The booking.

    Raises:
        ValueError: never.

    Note:
        Be quick.
    """

NUMPY = """Book a place.

    Places are few.

    Parameters
    ----------
    date : str
        ISO date,
        for example 2026-05-01.
    seats, *rest : int, optional
        how many: one to four.

    Returns
    -------
    The booking.

    Raises
    ------
    ValueError
        never.

    Notes
    -----
    Be quick.
    """

SPHINX = """Book a place.

    Places are few.

    :param date: ISO date,
        for example 2026-05-01.
    :param int seats: how many: one to four.
    :type date: str
    :returns: The booking.
    :rtype: Booking
    :raises ValueError: never.
    """

DATE, SEATS = "ISO date, for example 2026-05-01.", "how many: one to four."


def test_google_sections_are_told_apart():
    """Ours: parameters go to the schema, the result to the output schema, the rest is text."""
    expected = Docstring(
        "Book a place.\n\nPlaces are few.\n\nNote:\n    Be quick.",
        {"date": DATE, "seats": SEATS, "rest": "nobody knows."},
        "The booking.",
    )

    assert expected == parse_docstring(GOOGLE)


def test_numpy_sections_are_told_apart():
    """Ours: as with Google's, and one text may speak for several names."""
    expected = Docstring(
        "Book a place.\n\nPlaces are few.\n\nNotes\n-----\nBe quick.",
        {"date": DATE, "seats": SEATS, "rest": SEATS},
        "The booking.",
    )

    assert expected == parse_docstring(NUMPY)


def test_sphinx_fields_are_told_apart():
    """Ours: types and exceptions are no news to a model."""
    expected = Docstring(
        "Book a place.\n\nPlaces are few.", {"date": DATE, "seats": SEATS}, "The booking."
    )

    assert expected == parse_docstring(SPHINX)


@pytest.mark.parametrize("doc", [None, "", "   \n  "])
def test_no_docstring_says_nothing(doc):
    """Ours: a function without a docstring has no description."""
    assert Docstring() == parse_docstring(doc)


@pytest.mark.parametrize(
    "text",
    [
        "See: the manual.",
        "Args:\n\nnothing is indented below it, so it is no section.",
        "Give me a list:\n    - one\n    - two\n\nDone.",
        ":unknown: field",
        "A ratio a:b and a time 10:30.",
    ],
)
def test_text_that_only_looks_like_a_section_stays_text(text):
    """Ours: nothing an author wrote for the model is lost."""
    assert Docstring(text) == parse_docstring(text)


def test_attributes_of_a_class_are_read_like_parameters():
    """Ours: a record's docstring describes its members."""
    doc = "A seat.\n\nAttributes:\n    row: from the front.\n"

    assert Docstring("A seat.", {"row": "from the front."}) == parse_docstring(doc)


def test_paragraphs_within_an_entry_stay_apart():
    """Ours: running text is joined, a blank line is kept."""
    doc = "X.\n\nArgs:\n    a: one\n        two\n\n        three\n    b: four\n"

    assert {"a": "one two\n\nthree", "b": "four"} == parse_docstring(doc).parameters


def test_an_entry_that_says_nothing_is_no_description():
    """Ours: an empty description would only be noise in the schema."""
    assert {} == parse_docstring("X.\n\nArgs:\n    a:\n").parameters


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("One.", "One."),
        ("One.\n\n\n\n    Two,\n      more.\n\n    ", "One.\n\nTwo,\n  more."),
        ("\n    One\n    Two\n", "One\nTwo"),
    ],
)
def test_a_docstring_without_sections_is_its_text(text, shown):
    """Ours: and it is the same text where a section follows."""
    assert Docstring(shown) == parse_docstring(text)
    assert Docstring(shown) == parse_docstring(f"{text}\n    :raises X: never")
