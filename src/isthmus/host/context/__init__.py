"""Context of a model: resources, prompts and instructions chosen within a budget, and a manifest of them."""
