"""Servers: functions in, the protocol out."""

from isthmus.server.context import Context
from isthmus.server.sampling import SampledMessage
from isthmus.server.server import Server

__all__ = ["Context", "SampledMessage", "Server"]
