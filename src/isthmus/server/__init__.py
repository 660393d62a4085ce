"""Servers: functions become tools, resources and prompts (layer 5)."""
