"""Sampling through a whole host: a server's ``ctx.sample`` in both eras, answered by a script."""

import asyncio

import pytest

from isthmus import Context, Server
from isthmus.host.host import Host
from isthmus.host.model.entries import Advertise
from isthmus.host.model.errors import ConfigError, UserDeclined
from isthmus.host.model.interaction import Decision
from isthmus.host.providers.provider import Delta
from isthmus.host.providers.scripted import Scripted
from isthmus.host.sampling.models import Models
from isthmus.revisions import REVISIONS
from support.host.sampling_desk import LARGE, SMALL

BOTH = ("2025-11-25", "2026-07-28")
ALL = tuple(revision.name for revision in REVISIONS)


def notes(revision):
    """A server that has a model write."""
    server = Server("notes", revisions=[revision])

    @server.tool
    async def summary(text: str, ctx: Context) -> str:
        """A summary."""
        return (await ctx.sample(f"Sum up: {text}", max_tokens=50)).text

    return server


def make_host(server, *answers):
    """A host, and what its person was asked; calls of tools are allowed."""
    asked, left = [], list(answers)

    def person(interaction):
        asked.append(interaction)
        if interaction.attempt.action == "tool.call":
            return Decision(verdict="allow")
        return Decision(verdict=left.pop(0))

    provider = Scripted("short")
    catalog = Models([SMALL, LARGE])
    host = Host(approver=person, models=catalog, providers={"scripted": provider})
    host.add("notes", server, advertise=Advertise(sampling=True))
    return host, asked, provider


@pytest.mark.covers("hostsampling.eras")
@pytest.mark.parametrize("revision", ALL)
async def test_both_eras_ask_the_same_person_the_same_things(revision):
    """We demand: one broker behind the routes; the run and the call it came from are known."""
    host, asked, provider = make_host(notes(revision), "allow", "allow")
    async with host:
        with host.run() as run:
            result = await host.call("notes__summary", {"text": "long"}, run=run)
        assert (4, 1) == (run.tokens, len(provider.asked))
    assert "short" == result.text
    call, before, after = (one.attempt for one in asked)
    assert ["tool.call", "sampling.request", "sampling.respond"] == [
        one.action for one in (call, before, after)
    ]
    assert (call.id, run.id, "server:notes") == (before.parent, before.run, before.principal)
    assert ("result" if revision == "2026-07-28" else "request") == before.origin


@pytest.mark.covers("hostsampling.review.denied")
@pytest.mark.parametrize("revision", BOTH)
async def test_a_no_ends_the_call_or_is_an_error_to_the_server(revision):
    """The spec: -1 for a request of its own; since 2026-07-28 nothing is sent."""
    host, _, provider = make_host(notes(revision), "deny")
    async with host:
        if revision == "2026-07-28":
            with pytest.raises(UserDeclined):
                await host.call("notes__summary", {"text": "long"})
        else:
            result = await host.call("notes__summary", {"text": "long"})
            assert result.is_error
        # a person refuses: the budget is not touched
        assert (0, 0, 0) == await host.sampler.budgets.read_today("notes")
    assert [] == provider.asked


async def test_models_of_a_file_are_there_for_servers_and_for_conversations(tmp_path):
    """We demand: a host reads its models from the file that its configuration names."""
    path = tmp_path / "models.toml"
    path.write_text(
        '[providers.local]\nbase_url = "http://127.0.0.1:1/v1"\n\n'
        '[[model]]\nid = "a"\nprovider = "local"\n'
    )
    async with Host(models=path) as host:
        assert ["a"] == [model.id for model in host.models]
        assert ["local"] == list(host.providers)
    path.write_text('[[model]]\nid = "a"\n')
    with pytest.raises(ConfigError, match="line 1: model 'a', provider: it is missing"):
        async with Host(models=path):
            pass


@pytest.mark.covers("hostsampling.models.reread")
async def test_a_file_of_models_that_has_changed_is_read_again(tmp_path):
    """We demand: other models count from then on, and a bad file leaves those there were."""
    path = tmp_path / "models.toml"
    form = '[providers.{0}]\nbase_url = "http://127.0.0.1:1/v1"\n[[model]]\nid = "{1}"\nprovider = "{0}"\n'
    path.write_text(form.format("one", "a"))
    mine = {"mine": Scripted("x")}
    async with Host(models=path, providers=mine) as host:
        before = host.providers["one"]
        path.write_text(form.format("two", "b"))
        await host.reload(host.config)
        assert (["b"], ["two", "mine"]) == ([m.id for m in host.models], list(host.providers))
        path.write_text("nonsense")
        news = host.events()
        await host.reload(host.config)
        assert f"{path}: Expected '=' after a key" in (await anext(news)).text
        news.close()
        assert ["b"] == [model.id for model in host.models]
        assert [before] == host.sampler._runner._retired
    assert mine["mine"].closed


async def test_a_host_without_models_offers_none():
    """We demand: what nobody can answer is not advertised."""
    async with Host() as host:
        assert (0, {}) == (len(host.models), host.providers)


class Endless(Scripted):
    """Writes for as long as somebody reads."""

    def __init__(self):
        super().__init__("word")
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def complete(self, completion):
        """One word, and nothing more."""
        self.asked.append(completion)
        try:
            yield Delta("word")
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.ended.set()


@pytest.mark.covers("hostsampling.cancelled")
@pytest.mark.parametrize("revision", ALL)
async def test_who_takes_the_request_back_ends_the_call_to_the_model(revision):
    """Spec: a cancelled request is worked on no more, whoever takes it back and by whichever way."""
    server, provider = Server("notes", revisions=[revision]), Endless()

    @server.tool
    async def summary(ctx: Context) -> str:
        """A summary, or none where that takes too long."""
        if revision == "2026-07-28":
            return (await ctx.sample("Sum up", max_tokens=50)).text
        asking = asyncio.ensure_future(ctx.sample("Sum up", max_tokens=50))
        await provider.begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
        return "given up"

    host = Host(
        approver=lambda _asked: True,
        models=Models([SMALL, LARGE]),
        providers={"scripted": provider},
    )
    host.add("notes", server, advertise=Advertise(sampling=True))
    async with host:
        calling = asyncio.ensure_future(host.call("notes__summary"))
        if revision != "2026-07-28":
            assert "given up" == (await calling).text
        else:
            await provider.begun.wait()
            calling.cancel()
            await asyncio.wait([calling])
        await provider.ended.wait()
        rows = await host.view.audit_tail(50)

    ends = [row.error for row in rows if (row.kind, row.action) == ("outcome", "sampling.request")]
    assert ["cancelled"] == ends
    assert 1 == len(provider.asked)
