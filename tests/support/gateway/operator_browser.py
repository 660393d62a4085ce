"""A browser at the pages of a gateway, for its operator."""

from urllib.parse import urlencode


class OperatorBrowser:
    """A browser that speaks to the app of a gateway, with the cookies that it was given."""

    def __init__(self, app):
        self.app = app
        self.cookie = ""
        self.headers = {}

    async def send(self, method, path, fields=None, **headers):
        """Send one request; status, headers by name, and text."""
        body = urlencode(fields or {}).encode()
        given = {"host": "127.0.0.1:8080", **headers}
        if self.cookie:
            given["cookie"] = self.cookie
        if method == "POST":
            given["content-type"] = "application/x-www-form-urlencoded"
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8080),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in given.items()],
        }  # fmt: skip
        sent = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        head = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        text = b"".join(part.get("body", b"") for part in sent[1:]).decode()
        return sent[0]["status"], head, text

    async def sign_in(self, token):
        """Sign in with a token."""
        status, head, _ = await self.send("POST", "/approvals/login", {"token": token})
        self.cookie = head.get("set-cookie", "").partition(";")[0]
        return status, head
