"""The smallest server of isthmus as an ASGI application, for a program that runs several of it."""

from example import server

app = server.asgi()
