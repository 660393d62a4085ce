"""What a run takes over."""

import pytest

from host_policies import READS, call, facts
from isthmus.host.labels import MOST_LINES, Taken, flow, taken
from isthmus.wire import ToolAnnotations


@pytest.mark.parametrize(
    ("circumstances", "labels"),
    [
        (facts(), {"untrusted"}),
        (facts(reads=["private"], returns=["x"]), {"untrusted", "private", "x"}),
        (facts(trust="annotations", annotations=READS), set()),
        (
            facts(trust="annotations", annotations=ToolAnnotations(open_world_hint=True)),
            {"untrusted"},
        ),
        (facts(trust="annotations", annotations=ToolAnnotations()), {"untrusted"}),
        (facts(trust="annotations"), {"untrusted"}),
        (facts(annotations=READS), {"untrusted"}),
        (facts(trust="full"), set()),
        (facts(trust="full", returns=["untrusted"]), {"untrusted"}),
    ],
)
@pytest.mark.covers("hostpolicy.labels.taken")
def test_a_result_has_the_labels_of_what_it_comes_from(circumstances, labels):
    """Ours: what comes from a server that nobody trusts is to be distrusted as input of another."""
    assert labels == taken(circumstances)


@pytest.mark.covers("hostpolicy.labels.taken", "hostpolicy.labels.guard")
def test_a_run_takes_over_labels_and_knows_from_where():
    """Ours: each label where it first came from, in order."""
    run = Taken()
    assert {"untrusted"} == run.take(call("fetch", server="web"), facts())
    assert set() == run.take(call("fetch", server="web"), facts())
    assert {"private"} == run.take(call("", action="prompt.get"), facts(reads=["private"]))

    assert {"untrusted", "private"} == run.labels
    assert ("untrusted: tool.call 'fetch' of 'web'", "private: prompt.get of 'files'") == run.chain
    circumstances = facts(egress=True, labels=run.labels, chain=run.chain)
    assert (*run.chain, "egress: tool.call 'send' of 'mail' sends it out") == flow(
        call("send", server="mail"), circumstances
    )


def test_a_chain_has_an_end():
    """Ours: a run that goes on for days does not grow without bound."""
    run = Taken()
    for number in range(MOST_LINES + 50):
        run.take(call(), facts(trust="full", returns=[f"label-{number}"]))

    assert (MOST_LINES, MOST_LINES + 50) == (len(run.chain), len(run.labels))


@pytest.mark.parametrize("action", ["task.cancel", "server.connect", "tool.change"])
def test_what_sends_nothing_of_the_run_is_no_flow(action):
    """Ours: to stop a task gives nothing away."""
    assert () == flow(call(action=action), facts(egress=True, labels=["private", "untrusted"]))
