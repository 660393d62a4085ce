"""The program of ``line_server``: tools that count, ask and misbehave. It imports what it must."""

# ruff: noqa: PTH123, PTH208 - pathlib and contextlib take their time to import

import os
import signal
import sys
import time

LOG = sys.argv[1]
ASKS_EARLY = "early" in sys.argv[2:]  # for folders, before any call


def count_processes() -> int:
    """The number of processes of this program that there are."""
    mark = sys.argv[0].encode() + b"\0" + LOG.encode()
    count = 0
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    count += mark in file.read()
            except OSError:
                pass
    return count


def cut(text: str, key: str) -> str:
    """The value of a member of a JSON text, as JSON; enough for what clients send here."""
    rest = text.partition(f'"{key}":')[2]
    end = min(at for at in (rest.find(","), rest.find("}"), len(rest)) if at >= 0)
    return rest[:end]


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


TOOLS = ",".join(
    f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}'
    for name in ("count", "die", "stop", "junk", "deaf", "wait", "ask")
)


FORM = '{"type":"object","properties":{"value":{"type":"string"}}}'


def call(name: str, id: str, calls: int) -> None:
    """Answer a call, or do not."""
    if name == "ask":
        say(
            f'{{"jsonrpc":"2.0","id":"asked-{id}","method":"elicitation/create",'
            f'"params":{{"message":"Which?","requestedSchema":{FORM}}}}}'
        )
    elif name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif name == "junk":
        block = b"no json at all, and a lot of it\n" * 2048
        until = time.monotonic() + 10.0
        while time.monotonic() < until:
            os.write(1, block)
    elif name == "deaf":
        while True:
            signal.pause()  # it reads no more
    elif name != "wait":
        say(
            f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{calls}"}}]}}}}'
        )


def main() -> None:
    """Serve."""
    with open(LOG, "a", encoding="ascii") as log:
        log.write(f"{count_processes()}\n")
    calls, listing = 0, ""
    for line in sys.stdin:
        method, id = cut(line, "method").strip('"'), cut(line, "id")
        if method == "initialize":
            say(
                f'{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18",'
                '"capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"1"}}}'
            )
        elif method == "tools/list" and ASKS_EARLY and not listing:
            listing = id
            say('{"jsonrpc":"2.0","id":"early","method":"roots/list"}')
        elif id == '"early"':
            with open(LOG, "a", encoding="ascii") as log:
                log.write(line)
            say(f'{{"jsonrpc":"2.0","id":{listing},"result":{{"tools":[{TOOLS}]}}}}')
        elif method == "tools/list":
            say(f'{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{TOOLS}]}}}}')
        elif method == "tools/call":
            calls += 1
            call(cut(line, "name").strip('"'), id, calls)
        elif id.startswith('"asked-'):
            text = '{"content":[{"type":"text","text":"answered"}]}'
            say(f'{{"jsonrpc":"2.0","id":{id[7:-1]},"result":{text}}}')
        elif method == "ping":
            say(f'{{"jsonrpc":"2.0","id":{id},"result":{{}}}}')
        elif '"id":' in line:
            say(f'{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}')


main()
