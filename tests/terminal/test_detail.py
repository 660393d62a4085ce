"""Text of any length on a screen of any width."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App

from isthmus.cards.lines import StyledLine
from isthmus.terminal.approver.widgets import MAX_WRAPPED_CHARS, Detail, wrap_lines
from support.examples import count_examples


@settings(max_examples=count_examples(60))
@given(st.text(st.sampled_from("ab |-\u00f6\u4e16\U0001f680"), max_size=200), st.integers(10, 60))
def test_nothing_is_cut_and_nothing_is_wider_than_the_screen(text, width):
    """Ours: rows fit, and put together they are the text; what is added is its margin again."""
    rows = [line.text for line in wrap_lines([StyledLine(text)], width)]
    margin = text[: len(text) - len(text.lstrip(" |"))][: width // 4]

    assert all(cell_len(row) <= width for row in rows)
    assert text == rows[0] + "".join(row[len(margin) :] for row in rows[1:])


class Page(App):
    """A screen with nothing but a text."""

    def compose(self):
        yield Detail()


def on_screen(app, width):
    """What stands in the first columns of the screen, row by row."""
    return [strip.crop(0, width).text for strip in app.screen._compositor.render_strips()]


LETTERS = {
    "ascii": "".join(chr(33 + n % 90) for n in range(1_000)),
    "wide": "".join(chr(0x4E00 + n) for n in range(500)),
    "mixed": "".join(chr(0x4E00 + n) if n % 3 else chr(97 + n % 26) for n in range(600)),
    "combining": "".join(f"{chr(97 + n % 26)}\u0301{chr(48 + n % 10)}" for n in range(400)),
}


@pytest.mark.covers("hostterminal.cards.columns")
@pytest.mark.parametrize("letters", LETTERS.values(), ids=LETTERS)
async def test_every_column_can_be_seen_at_every_width(letters):
    """Ours: with a scroll bar or without, when it has just been drawn and when it is drawn again."""
    app = Page()
    async with app.run_test(size=(200, 100)) as pilot:
        detail = app.query_one(Detail)
        for width in (200, 120, 99, 80, 79, 61, 40):
            for height in (100, 10):  # without a bar, and with one
                await pilot.resize_terminal(width, height)
                detail.show([StyledLine("short")])
                await pilot.pause()
                detail.show([StyledLine(letters)])
                await pilot.pause()
                seen = {}
                for top in range(0, len(letters), height):
                    detail.scroll_to(y=top, animate=False, immediate=True)
                    await pilot.pause()
                    rows = enumerate(on_screen(app, width - 2), int(detail.scroll_offset.y))
                    seen |= dict(rows)
                    if detail.scroll_offset.y >= detail.max_scroll_y:
                        break

                assert letters == "".join(seen.values()).replace(" ", ""), (width, height)


@pytest.mark.covers("hostterminal.cards.whole")
async def test_a_text_of_megabytes_is_there_to_its_end():
    """Ours: a description of any size can be scrolled through; its beginning is there at once."""
    app = Page()
    async with app.run_test(size=(60, 15)) as pilot:
        detail = app.query_one(Detail)
        await pilot.pause()
        detail.show(
            [StyledLine("w\u00f6rd " * 12) for _ in range(MAX_WRAPPED_CHARS // 50)]
            + [StyledLine("the end")]
        )
        assert 15 < detail.virtual_size.height <= 500
        await app.workers.wait_for_complete()
        detail.scroll_end(animate=False, immediate=True)
        await pilot.pause()
        rows = ["".join(s.text for s in strip) for strip in app.screen._compositor.render_strips()]

        assert "the end" == rows[-1].strip(" \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588")
