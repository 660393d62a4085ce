"""PyPI ``mcp`` 2.3's server and authorization server, on one port: one form, one user, one scope.

A token is good for three requests, so that a client has to renew it in the middle of its work;
``renewed`` says how often somebody did.
"""

import secrets
import sys
import time

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken
from mcp.server.auth.provider import construct_redirect_uri as redirect
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken
from starlette.responses import HTMLResponse, RedirectResponse

PORT = int(sys.argv[1])
ISSUER = f"http://127.0.0.1:{PORT}"
SCOPE = "notes"
SECONDS = 600
USES = 3
FORM = """<!doctype html><title>Log in</title><form method="post" action="/login">
<input type="hidden" name="ticket" value="{}"><input name="username">
<input type="password" name="password"><button>Log in</button></form>"""


class Provider:
    """Everything in memory, and nobody but ada."""

    def __init__(self):
        self.clients, self.asked, self.codes, self.access, self.refresh = {}, {}, {}, {}, {}
        self.renewed, self.used = 0, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        ticket = secrets.token_urlsafe()
        self.asked[ticket] = (client, params)
        return f"{ISSUER}/login?ticket={ticket}"

    def approved(self, ticket):
        client, params = self.asked.pop(ticket)
        code = secrets.token_urlsafe()
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject="ada",
        )
        return redirect(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issued(client, authorization_code, authorization_code.scopes)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        self.renewed += 1
        return self.issued(client, refresh_token, scopes)

    def issued(self, client, grant, scopes):
        granted = {
            "client_id": client.client_id,
            "scopes": scopes,
            "resource": grant.resource,
            "subject": grant.subject,
        }
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        ends = int(time.time()) + SECONDS
        self.access[access] = AccessToken(token=access, expires_at=ends, **granted)
        self.refresh[refresh] = RefreshToken(token=refresh, **granted)
        return OAuthToken(
            access_token=access,
            expires_in=SECONDS,
            scope=" ".join(scopes),
            refresh_token=refresh,
        )

    async def load_access_token(self, token):
        self.used[token] = self.used.get(token, 0) + 1
        return self.access.get(token) if self.used[token] <= USES else None

    async def revoke_token(self, token):
        self.access.pop(token.token, None)


provider = Provider()
server = MCPServer(
    "theirs",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=ISSUER,
        resource_server_url=f"{ISSUER}/mcp",
        validate_token_resource=True,
        required_scopes=[SCOPE],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
        ),
    ),
)


@server.custom_route("/login", methods=["GET", "POST"])
async def login(request):
    if request.method == "GET":
        return HTMLResponse(FORM.format(request.query_params["ticket"]))
    form = await request.form()
    if (form["username"], form["password"]) != ("ada", "correct horse"):
        return HTMLResponse("No.", 403)
    return RedirectResponse(provider.approved(form["ticket"]), 302)


@server.tool()
def whoami() -> str:
    """Who calls."""
    return str(get_access_token().subject)


@server.tool()
def write() -> str:
    """Write."""
    return "written"


@server.tool()
def renewed() -> int:
    """How often a token was renewed."""
    return provider.renewed


if __name__ == "__main__":
    uvicorn.run(server.streamable_http_app(), port=PORT, log_level="warning")
