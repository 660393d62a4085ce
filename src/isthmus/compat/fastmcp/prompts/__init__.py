"""Prompts under the names of ``fastmcp.prompts``."""

from isthmus.lazy import lazy_getattr

_PROMPTS = "isthmus.compat.fastmcp.prompts"

__getattr__ = lazy_getattr(
    __name__,
    {
        **dict.fromkeys(
            ("Message", "Prompt", "PromptArgument", "PromptMessage", "PromptResult"),
            f"{_PROMPTS}.model",
        ),
        **dict.fromkeys(("FunctionPrompt", "prompt"), f"{_PROMPTS}.function_prompt"),
    },
)
