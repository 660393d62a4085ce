"""Output of commands: cleaned, sized, and in blocks."""

from isthmus.cli.output import format_size, print_line, print_lines, render_blocks, render_contents
from isthmus.wire import (
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    UnknownContent,
)


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
    ] == render_blocks(content).splitlines()


def test_bytes_of_a_resource_are_named_not_shown():
    """Ours: binary never reaches a terminal."""
    part = BlobResourceContents(uri="file:///b", blob="AAAA", mime_type="image/png")

    assert "[image/png, 3 B of file:///b]" == render_contents([part])


def test_a_line_that_names_what_others_made_is_one_line_of_plain_text(capsys):
    """Ours: what a terminal would obey is made visible, in a pipe, too."""
    print_line("a\x1b[31m\nb\u202ec\u200bd")
    print_lines("ours\nb\x1b]0;x\x07")

    assert "a<U+001B>[31m<U+000A>b<U+202E>c<U+200B>d\nours\nb<U+001B>]0;x<U+0007>\n" == (
        capsys.readouterr().out
    )


def test_sizes_read_as_people_say_them():
    """Ours: three figures are enough."""
    assert ["999 B", "1.5 KiB", "2.0 MiB"] == [
        format_size(999),
        format_size(1536),
        format_size(2 * 1024 * 1024),
    ]
