from interop.page import PAGE, written


def test_the_page_on_compatibility_says_what_is_tested():
    """Ours: written by `python tests/interop/page.py` from the tables that the tests run."""
    page = PAGE.read_text(encoding="utf-8")

    assert written(page) == page
