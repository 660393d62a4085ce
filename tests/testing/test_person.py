import http.server
import subprocess
import sys
import threading
from urllib.parse import parse_qs, urlsplit

import pytest

from isthmus.testing.person import Person

LOGIN = (
    '<form method="post" action="/login"><input type="hidden" name="ticket" value="t1">'
    '<input name="account"><input type="password" name="password">'
    '<input type="checkbox" name="stay" value="1"><button>Log in</button></form>'
)
CONSENT = (
    '<form method="post"><input type="hidden" name="csrf" value="c1">'
    '<button name="decision" value="approve">Allow</button>'
    '<button name="decision" value="deny">No, thanks</button></form>'
)


class Place(http.server.BaseHTTPRequestHandler):
    """A login, a consent, and the way back."""

    def log_message(self, *_):
        """Nothing."""

    def do_GET(self):
        """The first page, or the next."""
        if urlsplit(self.path).path == "/consent":
            return self.say(200, CONSENT)
        if urlsplit(self.path).path == "/dead-end":
            return self.say(400, "<p>Nothing here.</p>")
        if urlsplit(self.path).path == "/loop":
            return self.say(302, "", location="/loop")
        return self.say(200, LOGIN)

    def do_POST(self):
        """What a form sends."""
        size = int(self.headers["content-length"])
        form = {k: v[0] for k, v in parse_qs(self.rfile.read(size).decode()).items()}
        self.server.forms.append((self.path, form, self.headers["cookie"]))
        if self.path == "/login":
            return self.say(303, "", location="/consent", **{"set-cookie": "s=1; HttpOnly"})
        return self.say(302, "", location=f"http://client.test/cb?said={form['decision']}")

    def say(self, status, text, **headers):
        """Answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def place():
    """The server of this file's pages."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Place) as server:
        server.forms = []
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("approve", "said"), [(True, "approve"), (False, "deny")])
def test_a_person_logs_in_and_decides(place, approve, said):
    """Ours: forms are filled in as a browser would, and cookies go along."""
    ada = Person("ada", "secret", approve=approve)

    assert f"http://client.test/cb?said={said}" == ada.follow(f"{place.url}/authorize?a=1")
    assert [
        ("/login", {"ticket": "t1", "account": "ada", "password": "secret"}, None),
        ("/consent", {"csrf": "c1", "decision": said}, "s=1"),
    ] == place.forms
    assert 2 == len(ada.pages)


def test_a_page_without_a_way_on_is_an_error(place):
    """Ours: and the error says what stood there."""
    with pytest.raises(RuntimeError, match=r"400 without a form .*Nothing here"):
        Person("ada", "secret").follow(f"{place.url}/dead-end")
    with pytest.raises(RuntimeError, match="no end after"):
        Person("ada", "secret").follow(f"{place.url}/loop")


async def test_opening_goes_all_the_way_back(place):
    """Ours: what a client opens ends at the client's own door."""
    ada = Person("ada", "secret")
    ada.follow = lambda url: f"{place.url}/?back=1"

    await ada.open("http://elsewhere.test/authorize")

    assert ["http://elsewhere.test/authorize"] == ada.opened


def test_a_program_in_any_language_can_start_one(place):
    """Ours: the command prints where the browser was sent."""
    command = [sys.executable, "-m", "isthmus.testing.person", f"{place.url}/x", "ada", "secret"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "http://client.test/cb?said=approve\n" == done.stdout
