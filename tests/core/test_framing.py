"""Newline framing: whole lines out of bytes cut anywhere, within a limit."""

from isthmus.core.framing import LineSplitter, Oversize

LIMIT = 100


def test_a_whole_line_comes_out_without_its_newline():
    """The specification ends each stdio message with a newline."""
    assert [b'{"a":1}'] == LineSplitter(LIMIT).feed(b'{"a":1}\n')


def test_many_lines_in_one_chunk_come_out_in_order():
    """A pipe hands over whatever it holds, often several messages."""
    assert [b"1", b"2", b"3"] == LineSplitter(LIMIT).feed(b"1\n2\n3\n")


def test_a_line_may_come_in_pieces():
    """A pipe may cut a message anywhere."""
    lines = LineSplitter(LIMIT)
    assert [] == lines.feed(b"ab")
    assert [] == lines.feed(b"cd")
    assert [b"abcdef", b"g"] == lines.feed(b"ef\ng\nh")
    assert b"h" == lines.rest()


def test_a_carriage_return_before_the_newline_is_no_part_of_the_line():
    """Windows programs end lines with CR LF; we read them too."""
    assert [b"a", b"b\rc"] == LineSplitter(LIMIT).feed(b"a\r\nb\rc\r\n")


def test_a_carriage_return_may_end_one_chunk_and_its_newline_begin_the_next():
    """Where the bytes are cut makes no difference to CR LF."""
    lines = LineSplitter(LIMIT)
    assert [] == lines.feed(b"a\r")
    assert [b"a"] == lines.feed(b"\n")


def test_lines_of_blanks_are_skipped():
    """Blank lines are no messages, and we do not answer them with an error."""
    assert [b"a", b" b "] == LineSplitter(LIMIT).feed(b"\n  \na\n\t\n b \n")
    assert [b"a"] == LineSplitter(LIMIT).feed(b"\r\n \r\na\r\n")


def test_a_blank_line_in_pieces_is_skipped():
    """A blank line stays one however it is cut."""
    lines = LineSplitter(LIMIT)
    assert [] == lines.feed(b" ")
    assert [] == lines.feed(b" \n")


def test_a_line_of_just_the_limit_is_kept():
    """The limit is the most that is allowed."""
    assert [b"x" * LIMIT] == LineSplitter(LIMIT).feed(b"x" * LIMIT + b"\n")


def test_a_line_over_the_limit_is_reported_once_and_later_lines_survive():
    """One message too many bytes long must not end the conversation."""
    chunk = b"a\n" + b"x" * (LIMIT + 1) + b"\nb\n"
    assert [b"a", Oversize(LIMIT + 1), b"b"] == LineSplitter(LIMIT).feed(chunk)


def test_a_line_over_the_limit_in_pieces_is_reported_with_its_whole_size():
    """The size says by how much the limit would have to grow."""
    lines = LineSplitter(LIMIT)
    for _ in range(10):
        assert [] == lines.feed(b"x" * 50)
    assert [Oversize(501), b"b"] == lines.feed(b"x\nb\n")


def test_an_over_long_line_is_not_kept_in_memory():
    """What is thrown away is thrown away at once, not at the end of the line."""
    lines = LineSplitter(LIMIT)
    for _ in range(10):
        lines.feed(b"x" * 50)
    assert [] == lines._held


def test_the_rest_is_the_unfinished_line_and_is_given_once():
    """A last message without a newline is still a message when the pipe closes."""
    lines = LineSplitter(LIMIT)
    lines.feed(b"a\nb\r")
    assert b"b" == lines.rest()
    assert b"" == lines.rest()
    assert [b"c"] == lines.feed(b"c\n")


def test_the_rest_of_an_over_long_line_is_nothing():
    """A line that was thrown away does not come back by its end."""
    lines = LineSplitter(LIMIT)
    lines.feed(b"x" * (LIMIT + 1))
    assert b"" == lines.rest()


def test_feeding_nothing_gives_nothing():
    """An empty read changes nothing."""
    lines = LineSplitter(LIMIT)
    lines.feed(b"a")
    assert [] == lines.feed(b"")
    assert [b"ab"] == lines.feed(b"b\n")


def test_a_line_of_five_megabytes_is_copied_once_however_many_pieces_it_has():
    """Linear time: no piece is joined to another before the line ends."""
    lines = LineSplitter(8 * 1024 * 1024)
    piece = b"x" * 65536
    for _ in range(80):
        lines.feed(piece)
    assert [piece] * 80 == lines._held
    assert [5242880] == [len(line) for line in lines.feed(b"\n") if isinstance(line, bytes)]
