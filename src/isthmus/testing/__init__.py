"""Test tools for servers and clients: connections, scripts, transcripts, faults.

Everything runs in memory unless a test asks for a transport; see :func:`connect` first.
"""

from isthmus.testing.clock import VirtualLoop
from isthmus.testing.connect import (
    TRANSPORTS,
    connect,
    every_revision,
    every_transport,
    script,
    serving,
)
from isthmus.testing.replay import QuestionsChanged
from isthmus.testing.transcript import load, play

__all__ = [
    "TRANSPORTS",
    "QuestionsChanged",
    "VirtualLoop",
    "connect",
    "every_revision",
    "every_transport",
    "load",
    "play",
    "script",
    "serving",
]
