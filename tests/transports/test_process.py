"""Processes of ours: what can go wrong around them, and their last words."""

import asyncio
import errno
import os
import subprocess

import pytest

from isthmus.transports import process as module
from isthmus.transports.process import ProcessGuard, ServerProcess, StderrTail, strip_controls


def descriptors():
    """The numbers of all that is open here."""
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - they are no files


async def test_a_server_that_cannot_be_talked_to_is_not_left_running(monkeypatch):
    """Ours: when descriptors run out half-way, the process that was started is ended."""
    started = []
    popen = subprocess.Popen

    def start(*args, **options):
        started.append(popen(*args, **options))
        return started[-1]

    def refuse(fd):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(os, "dup", refuse)

    with pytest.raises(OSError, match="Too many open files"):
        ServerProcess(["sleep", "60"], os.environ, None)

    assert [-9] == [process.returncode for process in started]
    for pipe in (started[0].stdin, started[0].stdout, started[0].stderr):
        pipe.close()


async def test_without_a_shell_there_is_no_guard(monkeypatch):
    """Ours: a container without /bin/sh still runs servers; nothing is left open."""
    before = descriptors()

    def refuse(*args, **options):
        raise FileNotFoundError("/bin/sh")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    guard = ProcessGuard(1)
    guard._start()
    guard.dismiss()

    assert before == descriptors()


async def test_a_guard_that_was_dismissed_does_nothing(monkeypatch):
    """Ours: closing in good order ends the guard, not what it guarded."""
    guarded = subprocess.Popen(["sleep", "60"], start_new_session=True)  # noqa: S607, ASYNC220
    guard = ProcessGuard(guarded.pid)
    guard._start()
    shell = guard._popen

    guard.dismiss()
    guard.dismiss()

    assert -9 == shell.returncode
    assert None is guarded.poll()
    guarded.kill()
    await asyncio.to_thread(guarded.wait)


def test_the_last_words_are_the_last():
    """Ours: 64 KiB and 200 lines of them are kept, however many there were."""
    tail = StderrTail()
    for number in range(100_000):
        tail.add(b"line %d\n" % number)

    assert [f"line {number}" for number in range(99_800, 100_000)] == tail.lines()


def test_each_line_is_passed_on_once():
    """Ours: lines come whole, however they are cut, and the last one even without its end."""
    heard = []
    tail = StderrTail(heard.append)

    for piece in (b"on", b"e\ntwo\nth", b"ree"):
        tail.add(piece)
    tail.end()
    tail.end()

    assert ["one", "two", "three"] == heard


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tab\tand ünïcödé 😀", "tab\tand ünïcödé 😀"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("bell\x07 back\x08 null\x00 del\x7f c1\x9b", "bell back null del c1"),
        ("exe\u202etxt.gpj", "exetxt.gpj"),
    ],
)
def test_last_words_cannot_fool_a_terminal(text, shown):
    """Ours: what a server wrote is quoted in errors, which people read in terminals."""
    assert shown == strip_controls(text)


async def test_a_flood_of_standard_error_is_read_with_rests(monkeypatch):
    """Ours: who writes without end waits at its own end of the pipe, and loses no last word."""
    monkeypatch.setattr(module, "MAX_STDERR_BURST_BYTES", 256 * 1024)
    loop = asyncio.get_running_loop()
    began = loop.time()
    flood = (
        "i=0; while [ $i -lt 16 ]; do head -c 65536 /dev/zero >&2; i=$((i+1)); done; echo end >&2"
    )
    process = ServerProcess(["/bin/sh", "-c", flood], dict(os.environ), None)
    os.close(process.input)
    try:
        assert 0 == await process.wait_exit(15)
        assert loop.time() - began >= module.STDERR_REST_S
        assert process.tail.lines()[-1].endswith("end")
    finally:
        await process.end()
        os.close(process.output)
