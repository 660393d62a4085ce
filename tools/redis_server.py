"""Runs the tests that need Redis, with Debian's redis-server unpacked first where that is possible.

Ends with 77, which counts as skipped, where there is no Redis and none can be had.
``python tools/redis_server.py [pytest's arguments]``.
"""

import os
import subprocess
import sys

from debian import REDIS, ROOT

SKIPPED = 77


def main() -> int:
    """Run them, or say why not."""
    server = None
    if not os.environ.get("ISTHMUS_TEST_REDIS"):
        server = REDIS.install()
        if server is None:
            print("redis tests skipped: there is no redis-server, and none can be unpacked here")
            return SKIPPED
    environment = {**os.environ, REDIS.variable: server} if server else os.environ
    command = [sys.executable, "-m", "pytest", "-q", "-m", "redis", "tests"]
    done = subprocess.run(  # noqa: S603 - our own tests
        [*command, *sys.argv[1:]], cwd=ROOT, env=environment, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
