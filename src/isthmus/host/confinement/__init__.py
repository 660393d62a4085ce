"""Confinement of servers: consent before they run, the folders they may know, and the sandbox."""
