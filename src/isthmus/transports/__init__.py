"""Bytes in and out: each transport is a module of channels."""
