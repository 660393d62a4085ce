"""Pages of the console: functions from a request to a reply, which :mod:`isthmus.console.routes` lists."""
