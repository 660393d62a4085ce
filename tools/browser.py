"""Runs the tests that need a browser, with Chromium installed first where that is possible.

Ends with 77, which counts as skipped, where there is none and none can be had: Debian's package is
tried where this program may install one. ``python tools/browser.py [pytest's arguments]``.
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_SECONDS = 600
SKIPPED = 77


def found() -> str | None:
    """Where Chromium is; ``CHROMIUM`` in the environment comes first."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def installed() -> str | None:
    """The same, after an attempt to install it where there is none."""
    if (there := found()) is not None:
        return there
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-q"], ["install", "-q", "-y", "chromium"]):
        try:
            done = subprocess.run(  # noqa: S603 - the commands are the ones above
                [apt, *arguments],
                env=environment,
                stdout=subprocess.DEVNULL,
                timeout=INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            return None
    return found()


def driver() -> bool:
    """Whether what drives Chromium is installed, after an attempt where it is not."""
    if find_spec("playwright") is not None:
        return True
    pip = [sys.executable, "-m", "pip", "install", "-q", "-c", "constraints.txt"]
    done = subprocess.run([*pip, "--group", "browser"], cwd=ROOT, check=False)  # noqa: S603 - ours
    return done.returncode == 0


def main() -> int:
    """Run them, or say why not."""
    chromium = installed()
    if chromium is None:
        print("browser tests skipped: there is no Chromium, and none can be installed here")
        return SKIPPED
    if not driver():
        print("browser tests skipped: playwright, which drives Chromium, cannot be installed here")
        return SKIPPED
    command = [sys.executable, "-m", "pytest", "-q", "-m", "browser", "tests/browser"]
    done = subprocess.run(  # noqa: S603 - our own tests
        [*command, *sys.argv[1:]], cwd=ROOT, env={**os.environ, "CHROMIUM": chromium}, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
