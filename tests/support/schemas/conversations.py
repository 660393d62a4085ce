"""Whole conversations held against the official schema of their revision."""

import json

from support.schemas import official

SIDES = {"C": "client", "S": "server", "client": "client", "server": "server"}


def validate(wire, revision, sides=("client", "server")):
    """Hold every message of a conversation against its revision's schema.

    Args:
        wire: pairs of who said it (``"C"``/``"client"``, ``"S"``/``"server"``) and its bytes.
        revision: the revision that was agreed on.
        sides: whose messages are looked at; a transcript's client may talk nonsense on purpose.

    Raises:
        official_schemas.Mismatch: a message is not what its side may say.
    """
    asked = {}  # (who answers, id) -> method
    for who, data in wire:
        side = SIDES[who]
        whole = json.loads(data)
        if isinstance(whole, list) and side in sides:
            official.validate([], revision, side)  # whether it may say arrays at all
        for message in whole if isinstance(whole, list) else [whole]:
            method = message.get("method")
            if method is not None and "id" in message:
                asked[other(side), json.dumps(message["id"])] = method
            answers = None if method else asked.get((side, json.dumps(message.get("id"))))
            if side in sides:
                official.validate(message, revision, side, answers=answers)


def other(side):
    return "client" if side == "server" else "server"
