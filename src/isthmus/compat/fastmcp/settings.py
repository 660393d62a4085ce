"""Settings of the process, from the environment, under the names of ``fastmcp.settings``."""

import os
from typing import Any

PREFIX = "FASTMCP_"

DEFAULTS: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 8000,
    "debug": False,
    "log_level": "INFO",
    "log_enabled": True,
    "sse_path": "/sse",
    "message_path": "/messages/",
    "streamable_http_path": "/mcp",
    "json_response": False,
    "stateless_http": False,
    "mask_error_details": False,
    "strict_input_validation": False,
    "deprecation_warnings": True,
    "show_server_banner": True,
    "enable_rich_tracebacks": True,
    "resource_prefix_format": "path",
    "test_mode": False,
    "transport": "stdio",
    "home": "",
}

TRUE_WORDS = {"1", "true", "yes", "on"}


class Settings:
    """Settings of fastmcp; ``FASTMCP_PORT`` sets ``port``.

    Args:
        **given: values that go before the environment.
    """

    def __init__(self, **given: Any) -> None:
        for name, default in DEFAULTS.items():
            setattr(self, name, given.get(name, _read_variable(name, default)))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"fastmcp.settings.{name} has no effect in isthmus; docs/guide/from-fastmcp.md has what does"
        )


def _read_variable(name: str, default: Any) -> Any:
    text = os.environ.get(PREFIX + name.upper())
    if text is None:
        return default
    if isinstance(default, bool):
        return text.lower() in TRUE_WORDS
    return int(text) if isinstance(default, int) else text


settings = Settings()
"""The settings in force: defaults, and the variables ``FASTMCP_…`` of the environment."""
