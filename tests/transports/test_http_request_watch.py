"""The request_watch: one timer for all that run on, one for all signs of life."""

import asyncio

from isthmus.transports.http.request_watch import RequestWatch


class Clock:
    """A loop whose timers go off when a test says so."""

    def __init__(self) -> None:
        self.timers = []

    def call_later(self, delay, callback):
        """Remember a timer."""
        timer = Timer(delay, callback)
        self.timers.append(timer)
        return timer

    def due(self, delay):
        """The timers with this delay that have not gone off."""
        return [timer for timer in self.timers if timer.delay == delay and timer.waiting]

    def pass_(self, delay):
        """Let the timers with this delay go off, once."""
        for timer in self.due(delay):
            timer.waiting = False
            timer.callback()


class Timer:
    """A timer that waits for its test."""

    def __init__(self, delay, callback) -> None:
        self.delay = delay
        self.callback = callback
        self.waiting = True

    def cancel(self):
        """Never go off."""
        self.waiting = False


class Watched:
    """Something that writes down what it is told."""

    def __init__(self) -> None:
        self.told = []

    def linger(self, _loop):
        """It has stayed for a while."""
        self.told.append("linger")

    def beat(self, _loop):
        """It is to show a sign of life."""
        self.told.append("beat")


LOOK, BEAT = 0.02, 15.0


def request_watch():
    """A request_watch and its clock."""
    clock = Clock()
    return RequestWatch(clock, BEAT, LOOK), clock


def test_who_leaves_before_the_second_look_is_told_nothing():
    """A quick call costs two dictionary operations."""
    watch, clock = request_watch()
    one = Watched()

    watch.enter(one)
    clock.pass_(LOOK)
    watch.leave(one)
    clock.pass_(LOOK)

    assert [] == one.told
    assert [] == clock.due(LOOK)


def test_who_stays_for_two_looks_lingers_once_and_then_beats():
    """The order of a long call's life."""
    watch, clock = request_watch()
    one = Watched()
    watch.enter(one)

    for _ in range(3):
        clock.pass_(LOOK)
    assert ["linger"] == one.told
    for _ in range(2):
        clock.pass_(BEAT)
    assert ["linger", "beat", "beat"] == one.told

    watch.leave(one)
    clock.pass_(BEAT)
    assert ["linger", "beat", "beat"] == one.told


def test_a_thousand_calls_share_one_timer():
    """Calls come and go without timers of their own."""
    watch, clock = request_watch()
    for _ in range(1000):
        watch.enter(Watched())

    assert 1 == len(clock.timers)


def test_timers_rest_when_nobody_is_there_and_wake_up_again():
    """An idle server does nothing at all."""
    watch, clock = request_watch()
    for _ in range(2):
        one = Watched()
        watch.enter(one)
        for _ in range(3):
            clock.pass_(LOOK)
        clock.pass_(BEAT)
        watch.leave(one)
        clock.pass_(BEAT)

        assert ["linger", "beat"] == one.told
        assert [] == clock.due(LOOK) + clock.due(BEAT)


def test_a_stream_beats_without_having_lingered():
    """It is known to last from the start."""
    watch, clock = request_watch()
    stream = Watched()

    watch.stay(stream)
    clock.pass_(BEAT)

    assert ["beat"] == stream.told


def test_everybody_is_known_and_the_timers_stop():
    """What a server that stops needs."""
    watch, clock = request_watch()
    recent, staying = Watched(), Watched()
    watch.enter(recent)
    watch.stay(staying)

    assert [recent, staying] == watch.all()
    watch.close()
    assert [] == clock.due(LOOK) + clock.due(BEAT)


async def test_it_works_on_a_real_loop():
    """The clock above keeps to what event loops offer."""
    lingered = asyncio.Event()

    class Long(Watched):
        """Tells its test."""

        def linger(self, _loop):
            """It has stayed for a while."""
            lingered.set()

    watch = RequestWatch(asyncio.get_running_loop(), 15.0)
    watch.enter(Long())

    await lingered.wait()
    watch.close()
