"""The documentation site: pages staged, rendered by Zensical, and checked."""
