"""Relay of rounds between two sides since 2026-07-28: what one round leaves for the next, and nothing else.

The server in front seals it into ``requestState``: encrypted, with an expiry, and bound to the principal,
the method, the name and the arguments. Every gateway that has the secret can make the next round, and
what the server behind gave as its state never reaches the client in the clear.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from isthmus.client.model.relay import ContinuedRound, RoundRelayed
from isthmus.core.journal import UNUSABLE_STATE
from isthmus.errors import Refuse
from isthmus.host.model.round_proof import RoundProof
from isthmus.revisions import METHODS
from isthmus.runtime.warning_limit import WarningLimit
from isthmus.wire import InputRequiredResult
from isthmus.wire.jsonrpc import encode


class RelayedRound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A round that ended with questions of the server behind.

    Attributes:
        view: the endpoint that it was called at.
        server, own: the server behind, and its own name of what is called.
        asked: the methods of the questions that the client was given, by their keys.
        proof: that the round was let through.
        state: the state that the server behind wants to have back.
        answers: the answers that the gateway gave itself.
        edited: the arguments that a person put in place of the client's.
    """

    view: str
    server: str
    own: str
    asked: dict[str, str]
    proof: RoundProof
    state: str | UnsetType = UNSET
    answers: dict[str, Raw] = {}
    edited: dict[str, Any] | None = None

    def continue_with(self, method: str, given: Mapping[str, Any]) -> ContinuedRound:
        """The next round, with the answers that the client gave.

        Raises:
            Refuse: one of them is malformed.
        """
        answers = dict(self.answers)
        for key, asked in self.asked.items():
            if key not in given:  # the server behind asks once more
                continue
            answer = Raw(encode(given[key]))
            try:
                METHODS[asked].decode_result(answer)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise Refuse(-32603, f"The client's answer to {asked} is malformed") from error
            answers[key] = answer
        return ContinuedRound(method, answers, self.state)


_decode_round = msgspec.json.Decoder(RelayedRound).decode


def make_relayed_result(
    relayed: RoundRelayed, view: str, target: tuple[str, str], edited: Mapping[str, Any] | None
) -> InputRequiredResult:
    """The result that gives a client the questions of the server behind.

    Args:
        relayed: the round.
        view: the endpoint.
        target: the server behind, and its own name of what is called.
        edited: the arguments that a person put in place of the client's; None for none.
    """
    server, own = target
    left = RelayedRound(
        view=view,
        server=server,
        own=own,
        asked={key: question.method for key, question in relayed.questions.items()},
        proof=relayed.proof,
        state=relayed.state,
        answers=dict(relayed.answers),
        edited=None if edited is None else dict(edited),
    )
    return InputRequiredResult(
        input_requests=dict(relayed.questions), request_state=encode(left).decode()
    )


def read_relayed_round(state: str) -> RelayedRound | None:
    """The round that an unsealed state is about; None where it names a call that is parked here.

    Raises:
        Refuse: a gateway of another version has sealed it.
    """
    if not state.startswith("{"):
        return None
    try:
        return _decode_round(state)
    except msgspec.DecodeError as error:
        raise Refuse(-32602, UNUSABLE_STATE) from error


def check_relayed_round(
    left: RelayedRound, view: str, target: tuple[str, str], warnings: WarningLimit, principal: str
) -> None:
    """See that a round goes on at the endpoint and the server where it began.

    Args:
        left: what the round before left.
        view: the endpoint.
        target: the server behind, and its own name of what is called.
        warnings: writes that it does not.
        principal: who calls.

    Raises:
        Refuse: it does not; with the words for every state that cannot be used.
    """
    if (left.view, left.server, left.own) != (view, *target):
        warnings.warn(
            ("elsewhere", principal), f"requestState of another server or endpoint, of {principal}",
            "a requestState of %s at %s came to %s at %s",
            left.server, left.view, target[0], view,
        )  # fmt: skip
        raise Refuse(-32602, UNUSABLE_STATE)
