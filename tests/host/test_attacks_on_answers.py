"""Attacks on what a person said: another question, another server, another surface."""

import asyncio
import json

import pytest

from isthmus.client.model.questions import QuestionOrigin, record_origin
from isthmus.host import Host
from isthmus.host.model.attempt import Attempt
from isthmus.host.pipeline.passage import Passage
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.remote.control import Control
from isthmus.host.remote.protocol import AskAttend, AskHello, AskLeave, encode_line
from isthmus.revisions import LATEST


@pytest.mark.covers("hostkernel.broker.other-question")
def test_an_answer_of_an_earlier_life_is_none_to_another_question():
    """Ours: the decision on a task's question is not given to what the server asks in its place."""
    names = set()
    for server, isolation, words in (
        ("shop", "", "Your colour?"),
        ("shop", "", "Your password?"),
        ("other", "", "Your colour?"),
        ("shop", "user:ann", "Your colour?"),
    ):
        attempt = Attempt(
            id="a",
            action="elicit.form",
            principal=f"server:{server}",
            server=server,
            isolation=isolation,
            arguments={"message": words},
        )
        with record_origin(QuestionOrigin("task", LATEST, task="1", key="first")):
            names.add(Pipeline._name_lasting(Passage(attempt)))

    assert 4 == len(names)


class Surface:
    """A surface that speaks to a host line by line, as it likes.

    Args:
        folder: of the host's state.
    """

    def __init__(self, folder):
        self._folder = folder

    async def __aenter__(self):
        self._reader, self._writer = await asyncio.open_unix_connection(self._folder / "host.sock")
        await self.says(AskHello(id=0, name="test"))
        return self

    async def __aexit__(self, *_):
        self._writer.close()

    async def says(self, ask):
        """Ask for something, and wait for the answer to it."""
        self._writer.write(encode_line(ask))
        while True:
            said = json.loads(await self._reader.readline())
            if said.get("id") == ask.id:
                return said


@pytest.mark.covers("hostaudit.control.attends-once")
async def test_a_surface_that_attends_twice_under_one_name_leaves_nobody_behind(tmp_path):
    """Ours: when it is gone nobody is there, and what has to be asked is denied at once."""
    host = Host(state=tmp_path)
    async with host, Control(host.view, tmp_path), Surface(tmp_path) as surface:
        first = await surface.says(AskAttend(id=1, name="one"))
        again = await surface.says(AskAttend(id=1, name="two"))
        attended = host.broker.attended
        await surface.says(AskLeave(id=2, attended=1))
        left = host.broker.attended

    assert ("answer", "failed") == (first["is"], again["is"])
    assert (True, False) == (attended, left)


@pytest.mark.covers("hostkernel.state.strange-rows")
@pytest.mark.parametrize("table", ["grant_", "decision", "task_handle"])
async def test_a_row_that_a_later_version_wrote_costs_nothing_else(tmp_path, table):
    """Ours: what cannot be read counts for nothing; the host opens, and says no more than that."""
    async with Host(state=tmp_path) as host:
        statement = {
            "grant_": "INSERT INTO grant_ (id, created_us, body) VALUES ('g', 1, x'7b7d')",
            "decision": "INSERT INTO decision VALUES ('i', 't', 'k', 9000000000000000, x'7b7d')",
            "task_handle": "INSERT INTO task_handle (identity, task, at_us, attempt) "
            "VALUES ('i', 't', 9000000000000000, x'7b7d')",
        }[table]
        await host.state.write(lambda db: db.execute(statement))
    async with Host(state=tmp_path) as host:
        await host.grants.refresh()
        found = (len(host.grants.all()), len(host.core.decisions), len(host.tasks.open))

    assert (0, 0, 0) == found
