"""A pipeline with somebody to ask, for what passes it: what was asked, and what was written down."""

from contextlib import asynccontextmanager

from msgspec import UNSET

from isthmus.host.approvals.broker import Broker
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.entries import ServerLimits
from isthmus.host.model.interaction import Decision
from isthmus.host.pipeline.limits import CallLimits
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.runs import Runs
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.state.database import HostState

__all__ = ["ConsentDesk", "open_consent_desk"]


class ConsentDesk:
    """A pipeline, and a person who answers with what was written down beforehand.

    An answer is a verdict, or a verdict with what stands in place of what was asked. ``before`` is
    called with each question before it is answered.
    """

    name, assurance = "desk", "local_ui"

    def __init__(self, state, pipeline, answers):
        self.state = state
        self.pipeline = pipeline
        self.answers = list(answers)
        self.asked = []
        self.before = lambda question: None

    async def offer(self, interaction):
        """Say what comes next."""
        self.asked.append(interaction)
        self.before(interaction)
        verdict, *edited = self.answers.pop(0)
        return Decision(verdict=verdict, edited=edited[0] if edited else UNSET, by="desk")


@asynccontextmanager
async def open_consent_desk(*answers, rules="", folder=None):
    """A desk; nobody sits there if there are no answers.

    Args:
        *answers: what the person says, one after another.
        rules: a policy.
        folder: where the state is kept; in memory by default.
    """
    state = HostState(folder)
    audit = AuditLog(state)
    broker = Broker(audit)
    pipeline = Pipeline(
        policy=Policy.of(read_layers(rules, "user") if rules else []),
        broker=broker,
        audit=audit,
        runs=Runs(lambda: 0.0),
        limits=CallLimits(lambda _: ServerLimits()),
    )
    found = ConsentDesk(state, pipeline, answers)
    if answers:
        broker.attach(found)
    try:
        yield found
    finally:
        await audit.close()
        await state.close()
