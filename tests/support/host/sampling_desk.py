"""A sampler with all around it: a pipeline with rules, a person who answers, scripted models."""

from contextlib import asynccontextmanager

from msgspec import UNSET

from isthmus.host.approvals.broker import Broker
from isthmus.host.approvals.grants import Grants
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.entries import SamplingLimits, ServerEntry, ServerLimits, ServerOptions
from isthmus.host.model.interaction import Decision
from isthmus.host.pipeline.limits import CallLimits
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.runs import Runs
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.providers.scripted import Scripted
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.sampling.models import Model, Models
from isthmus.host.sampling.sampler import Sampler
from isthmus.host.state.database import HostState
from isthmus.wire import CreateMessageParams, SamplingMessage, TextContent

FREE = """
[[rule]]
id = "free"
effect = "allow"
when = { action = "sampling.*" }
obligations = { review = "none" }
"""
"""Nobody is asked: for tests of what else there is."""

SMALL = Model(
    id="small", provider="scripted", cost_in=1.0, cost_out=2.0, context=10_000, intelligence=10,
    tok_s=100.0,
)  # fmt: skip
LARGE = Model(
    id="large", provider="scripted", cost_in=10.0, cost_out=20.0, context=10_000, intelligence=90,
    tok_s=10.0, inputs=("text", "image"), tools=True,
)  # fmt: skip


class Person:
    """Answers questions with what was written down beforehand, and remembers them.

    An answer is ``"allow"`` or ``"deny"``, a ``Decision``, or a function of the question.
    """

    name, assurance = "test", "local_ui"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def offer(self, interaction):
        """Say what comes next."""
        self.asked.append(interaction)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(interaction)
        if isinstance(answer, Decision):
            return answer
        return Decision(verdict=answer, by="test", assurance="local_ui")

    @property
    def kinds(self):
        """The questions, in order."""
        return [interaction.attempt.action for interaction in self.asked]


def allow_decision(edited=UNSET, remember="once"):
    """A yes."""
    return Decision(
        verdict="allow", edited=edited, remember=remember, by="test", assurance="local_ui"
    )


class SamplingDesk:
    """A sampler and what is around it."""

    def __init__(self, person, provider, state, **parts):
        self.person = person
        self.provider = provider
        self.state = state
        for name, part in parts.items():
            setattr(self, name, part)

    async def answer(self, text="hello", *, asking=None, **members):
        """The result that the server gets."""
        return await self.sampler.answer(asking or make_asker(), sampling_params(text, **members))

    async def audited(self):
        """The rows of the audit log."""
        await self.audit.flush()
        return await self.audit.tail(100)


@asynccontextmanager
async def open_sampling_desk(
    *answers,
    script="an answer",
    rules="",
    models=(SMALL, LARGE),
    state=None,
    clock=None,
    provider=None,
    **options,
):
    """A sampler; without ``answers`` nobody is there to be asked."""
    own = state is None
    state = state or HostState(None, **({"clock": clock} if clock else {}))
    person = Person(*answers)
    audit = AuditLog(state)
    broker = Broker(audit)
    if answers:
        broker.attach(person)
    grants = Grants(state)
    await grants.load()
    runs = Runs(lambda: 0.0)
    pipeline = Pipeline(
        policy=Policy.of(read_layers(rules, "user") if rules else []),
        broker=broker,
        audit=audit,
        runs=runs,
        limits=CallLimits(lambda _: ServerLimits()),
        grants=grants,
    )
    provider = provider or Scripted(script)
    catalog = models if isinstance(models, Models) else Models(models)
    sampler = Sampler(pipeline, catalog, {"scripted": provider}, state, **options)
    try:
        yield SamplingDesk(
            person, provider, state, sampler=sampler, audit=audit, broker=broker, runs=runs,
            pipeline=pipeline, grants=grants,
        )  # fmt: skip
    finally:
        await sampler.close()
        await grants.close()
        await audit.close()
        if own:
            await state.close()


def make_asker(name="notes", *, depth=0, run="", parent=None, origin="request", **limits):
    """A server that asks, and what it may."""
    options = ServerOptions(sampling=SamplingLimits(**limits))
    entry = ServerEntry(name=name, command=("notes",), options=options)
    return ServerQuestion(
        entry=entry, identity="id", run=run, parent=parent, origin=origin, depth=depth,
        revision="2025-11-25",
    )  # fmt: skip


def sampling_params(text="hello", **members):
    """A request with one message."""
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return CreateMessageParams(**{"messages": messages, "max_tokens": 100, **members})


def read_written_text(result):
    """The text that was written."""
    return result.content.text
