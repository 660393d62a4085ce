"""Killed between any two statements, the server neither gives twice nor loses what it answered."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.auth.authorization_server.core.requests import OAuthParameters
from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
from support.auth.small_authority import SmallAuthority

pytestmark = pytest.mark.timeout(120)  # processes are made by the dozen

KEY = "k" * 43
MOST = 60
"""Statements of a token request, and more."""


class Dying(SQLiteAuthStore):
    """Ends the process at the n-th statement from a moment on; what is not committed is lost."""

    left = -1

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.plain, self.database.connect = self.database.connect, self.connect

    def connect(self):
        db = self.plain()
        db.set_trace_callback(self.traced)
        return db

    def traced(self, statement):
        if self.left == 0:
            os._exit(9)
        self.left -= 1


async def prepare(path, kind):
    """A file with a client and something to present; and who presents what."""
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
        client_id = await small.public()
        if kind == "code":
            return [client_id, await small.code(client_id)]
        return [client_id, (await small.tokens(client_id))["refresh_token"]]


async def present(path, kind, client_id, text, at):
    """Send one token request, and die at its n-th statement."""
    store = Dying(path, key=KEY)
    async with SmallAuthority(store=store) as small:
        await store.read(lambda records: records.client(client_id))  # the file is open, and checked
        store.left = at
        answer = await (small.redeem if kind == "code" else small.refresh)(text, client_id)
        store.left = -1
        return [answer.status, answer.json["refresh_token"]]


def forked(work):
    """What something says that is done in a process of its own; None if that died."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(asyncio.run(work)).encode())
        os._exit(0)
    work.close()
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.wait()
    return json.loads(text) if text else None


def kill_at_each(folder, kind):
    """Kill one request after the other, each at its next statement, until one lives; say how it went.

    Each finds a copy of the same file. What all of them import is imported before the first.
    """
    made = f"{folder}/made.db"
    client_id, text = asyncio.run(prepare(made, kind))
    for at in range(MOST):
        path = shutil.copy(made, f"{folder}/{at}.db")
        said = forked(present(path, kind, client_id, text, at))
        print(json.dumps([path, client_id, text, said]))  # noqa: T201 - the test reads it
        if said is not None:
            return
    raise SystemExit(f"a token request has more than {MOST} statements")


async def outcomes(folder, kind, judge):
    """What each of the killed requests left behind."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, __file__, str(folder), kind],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    found = []
    for line in done.stdout.splitlines():
        path, client_id, text, said = json.loads(line)
        async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
            found.append(await judge(small, client_id, text, said))
    return found


@pytest.mark.covers("auth.authority.codes-once")
async def test_a_code_is_redeemed_once_over_any_crash(tmp_path):
    """Ours: either nothing happened and the code is good, or it was redeemed and is not."""

    async def judge(small, client_id, code, said):
        first, second = [(await small.redeem(code, client_id)).status for _ in range(2)]
        assert second == 400
        # Whoever was answered is not overtaken, and whoever was not may try again.
        assert not (said and first == 200)
        return first

    found = await outcomes(tmp_path, "code", judge)

    assert found[0] == 200
    assert found[-1] == 400
    assert found == sorted(found), "redeemed, then not any more"


@pytest.mark.covers("auth.authority.refresh-rotates")
async def test_a_crash_while_refreshing_logs_nobody_out(tmp_path):
    """Ours: the token that was sent gets the one successor, and what was answered stays good."""

    async def judge(small, client_id, token, said):
        again = await small.refresh(token, client_id)
        successor = again.json["refresh_token"]
        assert again.status == 200
        if said:
            assert said == [200, successor]
        assert (await small.refresh(successor, client_id)).status == 200
        return 200

    found = await outcomes(tmp_path, "refresh", judge)

    assert len(found) > 3


async def test_a_pending_request_survives_a_restart(tmp_path):
    """Ours: requests, keys and the key behind refresh tokens are in the file, not in the process."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as before:
        client_id = await before.public()
        tokens = await before.tokens(client_id)
        pending = await before.app.ask(make_parameters(before, client_id))
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as after:
        user = await after.users.get("ada")
        url = await after.app.approve(pending, user)
        refreshed = await after.refresh(tokens["refresh_token"], client_id)

        assert "code=" in url
        assert await after.verified(tokens["access_token"]) is not None
        assert 200 == refreshed.status


def make_parameters(small, client_id):
    return OAuthParameters(method="GET", pairs=tuple(small.request(client_id).items()))


if __name__ == "__main__":
    kill_at_each(sys.argv[1], sys.argv[2])
