"""Start-up with a console: nothing of it is imported before its first request."""

import subprocess
import sys

import pytest

GATEWAY = """
from isthmus.cli.commands.gateway.app import LazyConsole
from isthmus.gateway import Gateway
from isthmus.host import Host
gateway = Gateway(Host())
gateway.open_pages("http://127.0.0.1:8080")
gateway.mount_console(LazyConsole(gateway, "http://127.0.0.1:8080"))
gateway.asgi()
"""
SERVER = "import isthmus.cli.commands.run, isthmus.cli.commands.host\n"
LIST = "import sys\nprint(*[name for name in sys.modules if name.startswith('isthmus.console')])"


@pytest.mark.parametrize("code", [GATEWAY, SERVER], ids=["gateway", "commands"])
def test_nothing_of_the_console_is_imported_before_it_is_asked_for(code):
    """Ours: whoever opens no browser pays for no page."""
    done = subprocess.run(
        [sys.executable, "-c", code + LIST], capture_output=True, text=True, check=True
    )
    assert "" == done.stdout.strip()
