"""Tool search: an index of tools, and the meta-tools by which a model uses it."""
