"""A server of 2025-06-18 that asks as soon as it is connected: where it may work, then two forms.

What it is answered goes into the file that is named on the command line, a line each.
"""

import json
import sys
from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "side": {"type": "string", "enum": ["aisle", "window"], "default": "window"},
    },
    "required": ["name"],
}
FORM = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": SCHEMA}}
QUESTIONS = [{"method": "roots/list"}, FORM, FORM]
OPENED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "serverInfo": {"name": "asker", "version": "1"},
}


def send(message):
    """One line to the host."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main(file):
    """Answer what opens the connection, and ask one question after the other."""
    asked = 0
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            send({"id": message["id"], "result": OPENED})
        elif method == "ping":
            send({"id": message["id"], "result": {}})
        elif method and "id" in message:
            refusal = {"code": -32601, "message": "Method not found"}
            send({"id": message["id"], "error": refusal})
        elif method != "notifications/initialized" and "result" not in message:
            continue
        else:
            if "result" in message:
                with file.open("a") as answers:
                    answers.write(json.dumps(message["result"]) + "\n")
            if asked < len(QUESTIONS):
                send({"id": f"q{asked}", **QUESTIONS[asked]})
                asked += 1


main(Path(sys.argv[1]))
