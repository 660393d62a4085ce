"""Completion: who completes which argument, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import UsageError
from isthmus.server import Server
from isthmus.server.features.completion import rank_completions
from isthmus.server.guard.limits import Limits
from isthmus.store.meter import Rate
from isthmus.wire import Completion
from support.server.both_eras import LEGACY, MODERN, EraClient

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
    result = await EraClient(letters(), revision).once("completion/complete", params)
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


@pytest.mark.covers("completion.results.at-most-a-hundred")
async def test_at_most_a_hundred_values_are_sent():
    """MUST NOT exceed 100; ``total`` and ``hasMore`` tell of the rest (spec: completion results)."""
    completion = await complete("name", "many")

    assert (100, 150) == (len(completion["values"]), completion["total"])
    assert completion["hasMore"]


@pytest.mark.covers("completion.context.earlier-arguments")
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
@pytest.mark.covers("completion.ref.unknown-refused")
async def test_an_unknown_argument_cannot_be_completed(argument, ref):
    """-32602 (spec: completion, error handling)."""
    assert -32602 == (await complete(argument, **ref)).code


@pytest.mark.covers("completion.results.ranked")
def test_values_are_ranked_by_how_they_fit():
    """The spec: sorted by relevance, fuzzy where it helps; ours: in which order."""
    values = ["xxab", "a-b", "b", "x ab", "AB", "abc", "xAb", "ab", "ba", "abc"]
    fit = ["ab", "AB", "abc", "x ab", "xAb", "xxab", "a-b"]

    assert fit == rank_completions(values, "ab", keep=False)
    assert [*fit, "b", "ba"] == rank_completions(values, "ab", keep=True)


@pytest.mark.covers("completion.results.ranked")
@given(st.lists(st.text(max_size=6)), st.text(max_size=3))
def test_completion_makes_nothing_up_and_says_nothing_twice(values, typed):
    """Ours: a completion is one of the values, the very one first, and nothing typed fits all."""
    found = rank_completions(values, typed, keep=False)

    assert len(found) == len(set(found))
    assert set(found) <= set(values)
    if typed in values:
        assert typed == found[0] or not typed
    assert list(dict.fromkeys(values)) == rank_completions(values, "", keep=False)


async def test_a_completion_of_the_authors_own_is_cut_as_well():
    """The spec: at most 100, whoever made them."""
    server = Server("many")
    server.add_prompt(
        lambda x: "", name="p", completes={"x": lambda: Completion(values=["v"] * 101)}
    )
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}

    completion = (await EraClient(server).once("completion/complete", params))["completion"]

    assert (100, 101) == (len(completion["values"]), completion["total"])
    assert completion["hasMore"]


@BOTH
@pytest.mark.covers("limits.completions.refused")
async def test_too_many_completions_are_refused(revision):
    """The spec: implementations MUST limit their rate."""
    server = Server("busy", limits=Limits(completions=Rate(2, 60)))
    server.add_prompt(lambda x: "", name="p", completes={"x": lambda: ["v"]})
    client = EraClient(server, revision)
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}}

    *fine, error = [await client.once("completion/complete", params) for _ in range(3)]

    assert [["v"], ["v"]] == [result["completion"]["values"] for result in fine]
    assert (-31429, "completions") == (error.code, error.data["limit"])


async def test_methods_of_objects_are_completed_where_they_are_added():
    """Ours: a bound method takes no attributes, and needs none."""

    class Letters:
        def apology(self, tone: str) -> str:
            return tone

        def tones(self) -> list[str]:
            return ["warm"]

        def note(self, id: str) -> str:
            return id

    letters, server = Letters(), Server("bound")
    server.prompt(completes={"tone": letters.tones})(letters.apology)
    server.add_resource(letters.note, "notes://{id}", completes={"id": lambda: ["1"]})
    client = EraClient(server)

    for ref, argument, values in (
        ({"type": "ref/prompt", "name": "apology"}, "tone", ["warm"]),
        (resource("notes://{id}"), "id", ["1"]),
    ):
        params = {"ref": ref, "argument": {"name": argument, "value": ""}}
        result = await client.once("completion/complete", params)
        assert values == result["completion"]["values"]


def test_a_completer_for_nothing_is_found_when_the_server_begins_to_serve():
    """Ours: a mistyped name is no silence."""
    server = Server("letters")
    server.completes("mistyped", "x")(list)
    with pytest.raises(UsageError, match="no prompt of this name"):
        server.router  # noqa: B018 - asking for it begins to serve

    served = letters()
    assert served.router
    with pytest.raises(UsageError, match="no prompt of this name"):
        served.completes("mistyped", "x")(list)


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

    result = await EraClient(server).once("completion/complete", params)
    assert ["y"] == result["completion"]["values"]
