"""What is printed, and what a terminal must not be made to obey."""

import pytest

from isthmus.cli.output import blocks, clean, contents, size
from isthmus.wire import (
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    UnknownContent,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\r\nb", "a\nb"),
        ("red \x1b[31mred", "red [31mred"),
        ("over\rwritten", "overwritten"),
        ("\x9b2Jgone", "2Jgone"),
        ("safe\u202eexe.txt", "safeexe.txt"),
        ("a\u2066b\u2069", "ab"),
        ("zero\u200bwidth", "zerowidth"),
        ("bell\x07 nul\x00", "bell nul"),
        ("Grüße, 世界 👩\u200d🚀", "Grüße, 世界 👩\u200d🚀"),
    ],
)
def test_a_terminal_gets_no_text_it_would_obey(text, shown):
    """Ours: control characters and direction marks are dropped, letters of all scripts stay."""
    assert shown == clean(text)


def test_blocks_become_lines():
    """Ours: what is no text is named with its kind and size."""
    content = [
        TextContent(text="hello"),
        ImageContent(data="A" * 4096, mime_type="image/png"),
        ResourceLink(uri="file:///a", name="a"),
        EmbeddedResource(resource=TextResourceContents(uri="file:///b", text="inside")),
        UnknownContent(type="hologram"),
    ]

    assert [
        "hello",
        "[image/png, 3.0 KiB]",
        "[resource file:///a]",
        "inside",
        "[content of type 'hologram']",
    ] == blocks(content).splitlines()


def test_bytes_of_a_resource_are_named_not_shown():
    """Ours: binary never reaches a terminal."""
    part = BlobResourceContents(uri="file:///b", blob="AAAA", mime_type="image/png")

    assert "[image/png, 3 B of file:///b]" == contents([part])


def test_sizes_read_as_people_say_them():
    """Ours: three figures are enough."""
    assert ["999 B", "1.5 KiB", "2.0 MiB"] == [size(999), size(1536), size(2 * 1024 * 1024)]
