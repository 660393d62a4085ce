"""Completion: who completes which argument, and in which order."""

import pytest

from both_eras import LEGACY, MODERN, Client
from isthmus.errors import UsageError
from isthmus.server import Server
from isthmus.server.features.completion import ranked
from isthmus.wire import Completion

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def letters():
    server = Server("letters")

    @server.prompt
    def apology(name: str, tone: str = "warm", place: str = "", plain: str = "") -> str:
        return ""

    @apology.completes("tone")
    def tones() -> list[str]:
        return ["warm", "formal", "informal", "brief"]

    @apology.completes("name")
    async def names(typed: str) -> list[str]:
        return [f"name {n}" for n in range(150)] if typed == "many" else [typed, "near miss"]

    @server.completes("apology", "place")
    def places(typed: str, others: dict[str, str]) -> Completion:
        return Completion(values=[f"{others.get('tone')} {typed}"], has_more=True)

    @server.resource("notes://{id}")
    def note(id: str) -> str:
        return id

    @note.completes("id")
    def ids(typed: str) -> list[str] | None:
        return None

    @server.resource("notes://all")
    def everything() -> str:
        return ""

    return server


async def complete(argument, value="", others=None, revision=MODERN, **ref):
    ref = ref or {"type": "ref/prompt", "name": "apology"}
    params = {"ref": ref, "argument": {"name": argument, "value": value}}
    if others is not None:
        params["context"] = {"arguments": others}
    result = await Client(letters(), revision).once("completion/complete", params)
    return result["completion"] if isinstance(result, dict) else result


def resource(uri):
    return {"type": "ref/resource", "uri": uri}


@BOTH
async def test_values_are_filtered_by_what_was_typed(revision):
    """A completer without parameters is a list to choose from (ours)."""
    assert {"values": ["formal", "informal"], "total": 2, "hasMore": False} == await complete(
        "tone", "FORM", revision=revision
    )


async def test_a_completer_that_sees_what_was_typed_may_answer_as_it_likes():
    """Only the order is ours: what fits comes first (ours)."""
    assert ["ab", "near miss"] == (await complete("name", "ab"))["values"]


async def test_at_most_a_hundred_values_are_sent():
    """MUST NOT exceed 100; ``total`` and ``hasMore`` tell of the rest (spec: completion results)."""
    completion = await complete("name", "many")

    assert (100, 150, True) == (
        len(completion["values"]),
        completion["total"],
        completion["hasMore"],
    )


@pytest.mark.parametrize(
    ("revision", "tone"), [("2024-11-05", None), ("2025-06-18", "warm"), (MODERN, "warm")]
)
async def test_a_completer_may_see_what_the_other_blanks_hold(revision, tone):
    """``context.arguments``, since 2025-06-18 (spec: completion)."""
    completion = await complete("place", "x", {"tone": "warm"}, revision)

    assert {"values": [f"{tone} x"], "hasMore": True} == completion


@pytest.mark.parametrize(
    ("argument", "ref"),
    [("plain", {}), ("id", resource("notes://{id}"))],
)
async def test_nothing_known_is_nothing_suggested(argument, ref):
    """An argument without a completer has no suggestions; that is no error (conformance)."""
    assert {"values": [], "total": 0, "hasMore": False} == await complete(argument, **ref)


@pytest.mark.parametrize(
    ("argument", "ref"),
    [
        ("x", {"type": "ref/prompt", "name": "nothing"}),
        ("x", {"type": "ref/prompt", "name": "apology"}),
        ("x", resource("notes://nothing")),
        ("x", resource("notes://{id}")),
        ("x", resource("notes://all")),
        ("tone", resource("apology")),
    ],
)
async def test_what_there_is_not_cannot_be_completed(argument, ref):
    """-32602 (spec: completion, error handling)."""
    assert -32602 == (await complete(argument, **ref)).code


def test_values_are_ranked_by_how_they_fit():
    """Beginning, part, letters in order, and nothing else; equals keep their order (ours)."""
    values = ["xxab", "a-b", "b", "AB", "abc", "ba"]

    assert ["AB", "abc", "xxab", "a-b"] == ranked(values, "ab", keep=False)
    assert ["AB", "abc", "xxab", "a-b", "b", "ba"] == ranked(values, "ab", keep=True)


@pytest.mark.parametrize(
    ("ref", "argument", "completer", "match"),
    [
        ("apology", "nothing", list, "it has name, tone"),
        ("apology", "tone", list, "completed already"),
        ("apology", "plain", lambda a, b, c: [], "and nothing else"),
    ],
)
def test_a_completer_that_cannot_be_is_refused_at_once(ref, argument, completer, match):
    """Found out at registration (our promise)."""
    with pytest.raises(UsageError, match=match):
        letters().completes(ref, argument)(completer)


async def test_a_completer_may_come_before_its_prompt():
    """Modules are imported in any order (ours)."""
    server = Server("letters")
    server.completes("later", "x")(lambda: ["y"])
    server.add_prompt(lambda x: "", name="later")
    params = {
        "ref": {"type": "ref/prompt", "name": "later"},
        "argument": {"name": "x", "value": ""},
    }

    result = await Client(server).once("completion/complete", params)
    assert ["y"] == result["completion"]["values"]
