"""Composition of servers: providers, mounted servers, transformed tools and visibility."""
