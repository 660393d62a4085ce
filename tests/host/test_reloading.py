"""Policy and models follow their files while the host runs."""

import asyncio
import json

import pytest

from isthmus.host.host import Host
from isthmus.host.model.entries import HostOptions
from isthmus.host.model.events import HostNotice
from isthmus.host.policy.policy import Policy
from isthmus.host.reloading import find_rule_files, replace_policy

RULE = """
[[rule]]
id = "{0}"
effect = "{1}"
when = {{ action = "tool.call" }}
"""


class Deciding:
    """What has a policy."""

    def __init__(self, policy):
        self.policy = policy


@pytest.mark.covers("hostservers.reload.rules")
def test_a_policy_that_cannot_be_read_leaves_the_one_before_in_force(tmp_path):
    """Ours: a file saved half-way locks nobody out and lets nobody in."""
    path, told = tmp_path / "policy.toml", []
    path.write_text(RULE.format("one", "deny"))
    deciding = Deciding(Policy.load(str(path)))
    before = deciding.policy
    replace_policy(deciding, Policy.load(str(path)), told.append)
    assert (before, []) == (deciding.policy, told)
    path.write_text("[[rule]]\nid = ")
    replace_policy(deciding, Policy.load(str(path)), told.append)
    assert before is deciding.policy
    assert told[0].text.endswith("the policy stays as it was")
    path.write_text(RULE.format("two", "deny"))
    replace_policy(deciding, Policy.load(str(path)), told.append)
    assert before.version != deciding.policy.version
    assert told[1].text == f"another policy is in force: {deciding.policy.version}"


def test_the_files_are_those_that_are_named_and_there(tmp_path):
    """Ours: names of policies that come with isthmus, and what a program has given, are no files."""
    policy, models = tmp_path / "p.toml", tmp_path / "m.toml"
    policy.touch()
    models.touch()
    options = HostOptions(policy=str(policy), models=str(models), shadow="locked-down")
    assert [models, policy] == find_rule_files(None, None, options)
    assert [models] == find_rule_files("developer", None, options)
    assert [policy] == find_rule_files(Policy.named("developer"), str(policy), options)


@pytest.mark.covers("hostservers.reload.rules")
async def test_a_host_decides_by_the_policy_as_it_was_saved_last(tmp_path):
    """Ours: an edit counts without a restart, and every surface is told."""
    policy, config = tmp_path / "policy.toml", tmp_path / "mcp.json"
    policy.write_text(RULE.format("one", "allow"))
    config.write_text(json.dumps({"mcpServers": {}, "host": {"policy": str(policy)}}))
    home = {"HOME": str(tmp_path)}
    host = Host.from_config(config, state=tmp_path / "state", environ=home, watch=True)
    async with host:
        before, events = host.policy.version, host.events()
        saving = asyncio.create_task(saved(policy, RULE.format("two", "deny")))
        async with asyncio.timeout(15):
            async for event in events:
                if isinstance(event, HostNotice) and event.about == "policy":
                    break
        await saving
        assert before != host.policy.version


async def saved(path, text):
    path.write_text(text)
