"""Legacy sessions over HTTP: the sessions, their requests, and the streams that are resumed."""
