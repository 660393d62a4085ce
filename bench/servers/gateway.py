"""The gateway of ``bench/gateway.py``: ``gateway.py PORT STATE NAME=URL …`` serves over HTTP.

An empty STATE keeps everything in memory. Each call passes policy, which allows it by a rule.
"""

import sys

from isthmus.gateway import Gateway, GatewayOptions
from isthmus.host import Host, HostConfig, HostOptions, Policy, ServerLimits
from isthmus.host.model.gateway_options import GatewayLimits
from isthmus.host.policy.rule_file import read_layers

RULES = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = ["tool.call"] }\n'

OPTIONS = GatewayOptions(limits=GatewayLimits(calls=None))
LIMITS = ServerLimits(calls=None, concurrency=64)


def main() -> None:
    """Serve."""
    port, state, *servers = sys.argv[1:]
    host = Host(
        HostConfig(options=HostOptions(gateway=OPTIONS)),
        policy=Policy.of(read_layers(RULES, "user")),
        state=state or None,
    )
    for one in servers:
        name, _, url = one.partition("=")
        host.add(name, url, limits=LIMITS)
    Gateway(host).run("http", port=int(port))


if __name__ == "__main__":
    main()
