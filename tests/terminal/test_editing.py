"""JSON in the user's own editor: what comes back is read, or kept to be mended."""

import asyncio
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from isthmus.cards.drafts import read_draft, to_editor_json
from isthmus.core.text import show_invisible
from isthmus.terminal.editing import edit_in_editor, find_editor
from support.examples import count_examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=count_examples(60))
@given(JSON)
def test_json_in_the_editor_means_what_was_asked_and_hides_nothing(value):
    """Ours: marks that nobody sees are escaped, and closing the editor at once changes nothing."""
    text = to_editor_json(value)

    assert value == json.loads(text)
    assert text == show_invisible(text)


def test_marks_piled_upon_a_letter_are_escaped():
    """Ours: an editor would draw them over the lines above."""
    assert r'"a\u0301\u0301\u0301\u0301\u0301"' == to_editor_json("a" + "\u0301" * 5).strip()


def test_a_value_of_another_kind_is_no_edit():
    """Ours: arguments stay an object, folders stay a list."""
    assert "this is no object" == read_draft("[]", {}).error
    assert "this is no list" == read_draft("{}", []).error
    assert UNSET is read_draft("{", {}).value
    assert {"a": 1} == read_draft('{"a": 1}', {}).value


def test_the_editor_is_the_users_own():
    """Ours: VISUAL before EDITOR, with its options, and no shell."""
    assert ["code", "--wait"] == find_editor({"VISUAL": "code --wait", "EDITOR": "ed"})
    assert ["ed"] == find_editor({"EDITOR": "ed"})
    assert ["vi"] == find_editor({"VISUAL": " "})


async def test_an_editor_that_fails_or_is_not_there_changes_nothing(tmp_path):
    """Ours: the user hears why, and what was asked stays as it was."""
    with pytest.raises(OSError, match="nowhere"):
        await edit_in_editor("{}", {"EDITOR": str(tmp_path / "nowhere")})
    with pytest.raises(OSError, match="ended with 3; nothing was changed"):
        await edit_in_editor("{}", {"EDITOR": f"{sys.executable} -c 'raise SystemExit(3)'"})


async def test_an_editor_ends_with_whoever_waits_for_it():
    """Ours: nothing is left behind on the terminal."""
    code = "import time; time.sleep(60)"
    editing = asyncio.create_task(edit_in_editor("{}", {"EDITOR": f"{sys.executable} -c '{code}'"}))
    await asyncio.sleep(0)
    editing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await editing


async def test_the_file_that_the_editor_leaves_is_read_or_refused():
    """Ours: no text, or a setting that names no program, changes nothing and breaks nothing."""
    code = "import sys; open(sys.argv[1], chr(119) + chr(98)).write(bytes([255]))"
    with pytest.raises(OSError, match="not UTF-8 text; nothing was changed"):
        await edit_in_editor("{}", {"EDITOR": f"{sys.executable} -c '{code}'"})
    with pytest.raises(OSError, match="No closing quotation"):
        await edit_in_editor("{}", {"EDITOR": "vi '"})
