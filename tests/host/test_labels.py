"""What a run takes over."""

import pytest

from isthmus.host.policy.flow_labels import MAX_CHAIN_LINES, RunLabels, derive_labels, find_flow
from isthmus.wire import ToolAnnotations
from support.host.policies import READS, make_attempt, make_facts


@pytest.mark.parametrize(
    ("circumstances", "labels"),
    [
        (make_facts(), {"untrusted"}),
        (make_facts(reads=["private"], returns=["x"]), {"untrusted", "private", "x"}),
        (make_facts(trust="annotations", annotations=READS), set()),
        (
            make_facts(trust="annotations", annotations=ToolAnnotations(open_world_hint=True)),
            {"untrusted"},
        ),
        (make_facts(trust="annotations", annotations=ToolAnnotations()), {"untrusted"}),
        (make_facts(trust="annotations"), {"untrusted"}),
        (make_facts(annotations=READS), {"untrusted"}),
        (make_facts(trust="full"), set()),
        (make_facts(trust="full", returns=["untrusted"]), {"untrusted"}),
    ],
)
@pytest.mark.covers("hostpolicy.labels.taken")
def test_a_result_has_the_labels_of_what_it_comes_from(circumstances, labels):
    """Ours: what comes from a server that nobody trusts is to be distrusted as input of another."""
    assert labels == derive_labels(circumstances)


@pytest.mark.covers("hostpolicy.labels.taken", "hostpolicy.labels.guard")
def test_a_run_takes_over_labels_and_knows_from_where():
    """Ours: each label where it first came from, in order."""
    run = RunLabels()
    assert {"untrusted"} == run.take(make_attempt("fetch", server="web"), make_facts())
    assert set() == run.take(make_attempt("fetch", server="web"), make_facts())
    assert {"private"} == run.take(
        make_attempt("", action="prompt.get"), make_facts(reads=["private"])
    )

    assert {"untrusted", "private"} == run.labels
    assert ("untrusted: tool.call 'fetch' of 'web'", "private: prompt.get of 'files'") == run.chain
    circumstances = make_facts(egress=True, labels=run.labels, chain=run.chain)
    assert (*run.chain, "egress: tool.call 'send' of 'mail' sends it out") == find_flow(
        make_attempt("send", server="mail"), circumstances
    )


def test_a_chain_has_an_end():
    """Ours: a run that goes on for days does not grow without bound."""
    run = RunLabels()
    for number in range(MAX_CHAIN_LINES + 50):
        run.take(make_attempt(), make_facts(trust="full", returns=[f"label-{number}"]))

    assert (MAX_CHAIN_LINES, MAX_CHAIN_LINES + 50) == (len(run.chain), len(run.labels))


@pytest.mark.parametrize("action", ["task.cancel", "server.connect", "tool.change"])
def test_what_sends_nothing_of_the_run_is_no_flow(action):
    """Ours: to stop a task gives nothing away."""
    assert () == find_flow(
        make_attempt(action=action), make_facts(egress=True, labels=["private", "untrusted"])
    )
