"""Balancers before nodes, each in round robin and without sticky sessions.

Each is configured as the guide to deployment tells, so that what the guide says is what is tested.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import debian

BALANCERS = ("nginx", "haproxy", "envoy")
START_TIMEOUT_S = 15.0
POLL_S = 0.02

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream isthmus {{
    {servers}
    keepalive 32;
  }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 8m;
    location / {{
      proxy_pass http://isthmus;
      proxy_http_version {version};
      proxy_set_header Connection {connection};
      proxy_set_header Host $host;
      proxy_buffering {buffering};
      proxy_read_timeout {idle}s;
      proxy_connect_timeout 1s;
      proxy_next_upstream error timeout;
      proxy_next_upstream_tries 2;
    }}
  }}
}}
"""

HAPROXY = """
global
  maxconn 1024
defaults
  mode http
  option http-no-delay
  option redispatch 1
  retries 3
  retry-on conn-failure
  timeout connect 1s
  timeout client {idle}s
  timeout server {idle}s
  timeout http-keep-alive 30s
frontend mcp
  bind 127.0.0.1:{port}
  default_backend isthmus
backend isthmus
  balance roundrobin
  option httpchk GET /ready
  http-check expect status 200
  default-server inter 200ms fall 1 rise 1 observe layer4 error-limit 1 on-error mark-down
  {servers}
"""

ENVOY = """
static_resources:
  listeners:
  - name: mcp
    address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: mcp
          stream_idle_timeout: {idle}s
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{prefix: "/"}}
                route:
                  cluster: isthmus
                  timeout: 0s
                  retry_policy:
                    retry_on: connect-failure,reset-before-request
                    num_retries: 3
                    host_selection_retry_max_attempts: 3
                    retry_host_predicate:
                    - name: envoy.retry_host_predicates.previous_hosts
                      typed_config:
                        "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: isthmus
    type: STATIC
    connect_timeout: 1s
    lb_policy: ROUND_ROBIN
    common_lb_config: {{healthy_panic_threshold: {{value: 0}}, update_merge_window: 0s}}
    circuit_breakers: {{thresholds: [{{max_retries: 100}}]}}
    health_checks:
    - timeout: 1s
      interval: 0.2s
      no_traffic_interval: 0.2s
      unhealthy_threshold: 1
      healthy_threshold: 1
      http_health_check: {{path: /ready}}
    load_assignment:
      cluster_name: isthmus
      endpoints:
      - lb_endpoints:
{servers}
"""


def find_balancer(name):
    """The program of a balancer, or None; the environment may name another one."""
    if name == "envoy":
        return os.environ.get("ENVOY") or shutil.which(name)
    return {"nginx": debian.NGINX, "haproxy": debian.HAPROXY}[name].find()


def write_config(name, folder, port, nodes, *, idle=60, buffering=False, version="1.1"):
    """Write a balancer's configuration; gives its command.

    Args:
        name: of the balancer.
        folder: for all that it writes.
        port: where it listens.
        nodes: the ports of the nodes.
        idle: seconds without a byte until it ends a stream.
        buffering: hold answers back until they are whole (nginx).
        version: of HTTP to the nodes (nginx).
    """
    program = find_balancer(name)
    if name == "nginx":
        servers = "\n    ".join(
            f"server 127.0.0.1:{node} max_fails=1 fail_timeout=1s;" for node in nodes
        )
        path = folder / "nginx.conf"
        text = NGINX.format(
            folder=folder, port=port, servers=servers, idle=idle,
            buffering="on" if buffering else "off", version=version,
            connection='""' if version == "1.1" else "close",
        )  # fmt: skip
        command = [program, "-e", str(folder / "early.log"), "-p", str(folder), "-c", str(path)]
    elif name == "haproxy":
        servers = "\n  ".join(f"server n{node} 127.0.0.1:{node} check" for node in nodes)
        path = folder / "haproxy.cfg"
        text = HAPROXY.format(port=port, servers=servers, idle=idle)
        command = [program, "-db", "-f", str(path)]
    else:
        line = (
            "        - endpoint: {{address: {{socket_address: "
            "{{address: 127.0.0.1, port_value: {node}}}}}}}"
        )
        path = folder / "envoy.yaml"
        text = ENVOY.format(
            port=port, servers="\n".join(line.format(node=node) for node in nodes), idle=idle
        )
        base = str(os.getpid() * 1000 + port % 1000)
        command = [
            program,
            "-c",
            str(path),
            "--base-id",
            base,
            "-l",
            "warning",
            "--concurrency",
            "1",
        ]
    path.write_text(text)
    return command


@contextlib.contextmanager
def run_balancer(name, folder, port, nodes, **options):
    """A balancer before nodes; gives its URL."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    command = write_config(name, folder, port, nodes, **options)
    with (folder / "output.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_until_open(process, port, folder)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_open(process, port, folder):
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5):
            return
        time.sleep(POLL_S)
    raise AssertionError(f"the balancer does not listen: {(folder / 'output.log').read_text()}")
