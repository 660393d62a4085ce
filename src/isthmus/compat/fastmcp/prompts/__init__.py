"""Prompts under the names of ``fastmcp.prompts``."""

from isthmus.lazy import lazy_getattr

_PROMPTS = "isthmus.compat.fastmcp.prompts"

_HOMES = {
    **dict.fromkeys(
        ("Message", "Prompt", "PromptArgument", "PromptMessage", "PromptResult"),
        f"{_PROMPTS}.model",
    ),
    **dict.fromkeys(("FunctionPrompt", "prompt"), f"{_PROMPTS}.function_prompt"),
}

__all__ = [*_HOMES]  # noqa: PLE0604 - the keys of the table

__getattr__ = lazy_getattr(__name__, _HOMES)
