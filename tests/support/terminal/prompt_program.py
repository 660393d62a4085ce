"""A process that takes a terminal, asks one question there, and prints the decision."""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from isthmus.terminal.prompt.prompt import TerminalPrompt
from support.host.waiting_host import make_interaction


async def main():
    """Ask, where control-C answers the question and a hang-up ends nothing."""
    ticks = itertools.count() if "patient" in sys.argv else itertools.repeat(0)
    prompt = TerminalPrompt(clock=lambda: next(ticks))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, prompt.interrupt)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    sys.stdout.write(msgspec.json.encode(await prompt.offer(make_interaction("q1"))).decode())


os.close(os.open(sys.argv[1], os.O_RDWR))  # the first terminal a session opens becomes its own
if "background" in sys.argv and os.fork():
    os.waitpid(-1, 0)
else:
    if "background" in sys.argv:
        os.setpgid(0, 0)
    asyncio.run(main())
