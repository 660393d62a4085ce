"""Forms of servers on the screen: what each kind of blank is filled in with."""

import pytest
from textual.app import App
from textual.widgets import Checkbox, Input, Select, SelectionList

from isthmus.terminal.answer_keys import KeyGuard
from isthmus.terminal.approver.forms import FormDialog, FormResult

SEAT = {
    "type": "object",
    "properties": {
        "row": {"type": "integer", "maximum": 30, "description": "Counted from the front."},
        "side": {
            "type": "string",
            "oneOf": [{"const": "a", "title": "[b]Aisle"}, {"const": "w", "title": "Window"}],
        },
        "meals": {"type": "array", "items": {"type": "string", "enum": ["soup", "bread", "tea"]}},
        "gift": {"type": "boolean", "default": True},
        "insured": {"type": "boolean"},
        "grade": {"type": "string", "enum": ["2", "1"]},
    },
    "required": ["row", "side", "insured"],
}


class Page(App):
    """A screen with a form."""

    def __init__(self, schema, texts=None):
        super().__init__()
        self.at = 0.0
        self.filled = []
        self.form = FormDialog("Which seat?", schema, texts or {}, KeyGuard(lambda: self.at))

    def on_mount(self):
        """Show it."""
        self.push_screen(self.form, self.filled.append)

    async def press(self, pilot, *keys):
        """Look for a while, then press keys."""
        await pilot.pause()
        self.at += 1
        await pilot.press(*keys)
        await pilot.pause()


def rows(app):
    """What stands on the screen."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


@pytest.mark.covers("hostterminal.forms.fields")
async def test_each_kind_of_blank_has_its_field():
    """Ours: what can be chosen is chosen and not typed; nothing is chosen beforehand but a default."""
    app = Page(SEAT)
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        kinds = [type(app.form.query_one(f"#field-{n}")) for n in range(6)]
        texts = app.form.texts()

    assert [Input, Select, SelectionList, Checkbox, Select, Select] == kinds
    assert {"row": "", "side": "", "meals": [], "gift": True, "insured": "", "grade": ""} == texts


@pytest.mark.covers("hostterminal.forms.fields")
async def test_a_form_is_filled_in_by_keys():
    """Ours: a choice is its value, whatever its number; a title is no markup."""
    app = Page(SEAT)
    async with app.run_test(size=(80, 40)) as pilot:
        await app.press(pilot, "7", "tab", "enter")
        assert any("[b]Aisle (a)" in row for row in rows(app))
        await app.press(pilot, "down", "down", "enter", "tab")
        await app.press(pilot, "space", "down", "down", "space", "tab")
        await app.press(pilot, "space", "tab")
        await app.press(pilot, "enter", "down", "down", "enter", "tab")
        await app.press(pilot, "enter", "down", "down", "enter")
        await app.press(pilot, "ctrl+s")

    content = {
        "row": 7,
        "side": "w",
        "meals": ["soup", "tea"],
        "gift": False,
        "insured": False,
        "grade": "1",
    }
    assert [content] == [one.content for one in app.filled]


@pytest.mark.covers("hostterminal.forms.first-wrong")
async def test_the_first_field_that_is_wrong_comes_into_view():
    """Ours: with what it asks and why it is wrong, on a screen that does not hold the form."""
    app = Page(SEAT)
    async with app.run_test(size=(60, 15)) as pilot:
        await app.press(pilot, "7", "tab", "tab", "tab", "tab", "tab")
        await app.press(pilot, "ctrl+s")
        await pilot.pause()
        seen = "\n".join(rows(app))
        focused = app.focused.id

    assert "field-1" == focused
    assert "side:" in seen
    assert "! an answer is needed here" in seen
    assert [] == app.filled


async def test_a_choice_is_there_again_when_the_form_is_opened_again():
    """Ours: also what was left open."""
    texts = {"row": "x", "side": "w", "meals": ["tea"], "gift": False, "insured": "", "grade": "2"}
    app = Page(SEAT, texts)
    async with app.run_test(size=(80, 40)) as pilot:
        await app.press(pilot, "escape")

    assert [FormResult(texts)] == app.filled
