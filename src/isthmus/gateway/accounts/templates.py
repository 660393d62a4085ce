"""HTML of the pages about accounts: functions from values to markup, which escape everything.

There is no script, no picture, and nothing from elsewhere; the layout and the style are those of the pages of
the authorization server.
"""

import html
from collections.abc import Mapping, Sequence
from string import Template

import msgspec

from isthmus.auth.authorization_server.pages.templates import (
    LAYOUT_TEMPLATE,
    STYLE_NAME,
    clean_text,
)
from isthmus.host.accounts.accounts import AccountStatus

STYLE_PATH = f"/connect/{STYLE_NAME}"

LOGIN_TEMPLATE = Template("""\
<p>Go on only if you have just been told, by the program that you work with, that you would come here.</p>
<div class="target"><span>Server</span><strong><bdi>$server</bdi></strong><span>$where</span></div>
<p>You sign in at <strong>$issuer</strong> next. $asked</p>
<p>What it grants is kept here, encrypted, and used for your calls alone. No model and no program sees it.</p>
<form method="post" action="/connect">
$fields<div class="choice">
<button class="main" type="submit" name="decision" value="allow">Continue</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>
<div class="who"><span>For <strong><bdi>$principal</bdi></strong></span></div>
""")

KEY_TEMPLATE = Template("""\
<p>Go on only if you have just been told, by the program that you work with, that you would come here.</p>
<div class="target"><span>Server</span><strong><bdi>$server</bdi></strong><span>$where</span></div>
<p>Paste a key of yours for this server. It is kept here, encrypted, and used for your calls alone. No model \
and no program sees it.</p>
$notice<form method="post" action="/connect" autocomplete="off">
$fields<label for="key">Key</label>
<input id="key" name="key" type="password" autocomplete="off" spellcheck="false" maxlength="4096">
<div class="choice">
<button class="main" type="submit" name="decision" value="allow">Keep this key</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>
<div class="who"><span>For <strong><bdi>$principal</bdi></strong></span></div>
""")

ROW_TEMPLATE = Template("""\
<li><strong><bdi>$server</bdi></strong> <span class="badge$style">$state</span>
<code>$detail</code>
<form method="post" action="/accounts">
$fields<div class="choice">
$buttons</div>
</form>
</li>
""")

STATE_TEXTS: Mapping[str, str] = {
    "connected": "Connected",
    "expired": "Expired",
    "refused": "Refused by the server",
    "missing": "Not connected",
}


class ConnectQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the page that asks whether an account is connected.

    Attributes:
        place: the host of this gateway.
        server: the server's name.
        where: its host.
        principal: whose account it is to be.
        fields: what goes with the answer.
        issuer: where they sign in next; empty where they paste a key.
        scopes: what is asked of that.
        notice: what was wrong with the answer before.
    """

    place: str
    server: str
    where: str
    principal: str
    fields: Mapping[str, str]
    issuer: str = ""
    scopes: Sequence[str] = ()
    notice: str = ""


def render_question(view: ConnectQuestion) -> bytes:
    """The page that asks whether an account is connected."""
    asked = ", ".join(f"<code>{escape(one, 64)}</code>" for one in view.scopes)
    values = {
        "server": escape(view.server, 64),
        "where": escape(view.where),
        "principal": escape(view.principal),
        "fields": render_fields(view.fields),
        "issuer": escape(view.issuer),
        "asked": f"This gateway asks there for: {asked}." if asked else "",
        "notice": f'<p class="notice bad" role="alert">{escape(view.notice)}</p>\n'
        if view.notice
        else "",
    }
    template = LOGIN_TEMPLATE if view.issuer else KEY_TEMPLATE
    return render_layout(
        view.place, f"Connect your account at {view.server}", template.substitute(values)
    )


def render_accounts(
    place: str, principal: str, rows: Sequence[tuple[AccountStatus, Mapping[str, str]]]
) -> bytes:
    """The page that lists the accounts of a principal.

    Args:
        place: the host of this gateway.
        principal: whose accounts they are.
        rows: each account, and what goes with the form about it.
    """
    items = "".join(_render_row(status, fields) for status, fields in rows)
    content = f'<ul class="scopes">\n{items}</ul>\n' if items else "<p>There are none.</p>\n"
    who = (
        f'<div class="who"><span>Of <strong><bdi>{escape(principal)}</bdi></strong></span></div>\n'
    )
    return render_layout(place, "Your accounts", content + who)


def _render_row(status: AccountStatus, fields: Mapping[str, str]) -> str:
    again = "Connect" if status.state == "missing" else "Connect again"
    buttons = [
        f'<button class="main" type="submit" name="decision" value="connect">{again}</button>'
    ]
    if status.state != "missing":
        buttons.append('<button type="submit" name="decision" value="forget">Forget</button>')
    return ROW_TEMPLATE.substitute(
        server=escape(status.server, 64),
        style="" if status.state == "connected" else " unverified",
        state=STATE_TEXTS[status.state],
        detail=escape(" ".join((status.issuer, *status.scopes)).strip() or status.kind),
        fields=render_fields(fields),
        buttons="\n".join(buttons) + "\n" if status.by_person else "",
    )


def render_message(place: str, heading: str, text: str) -> bytes:
    """A page that says something, and asks nothing."""
    return render_layout(place, heading, f"<p>{escape(text, 1000)}</p>\n")


def render_layout(place: str, heading: str, content: str) -> bytes:
    """A whole page around its content, which is markup."""
    return LAYOUT_TEMPLATE.substitute(
        title=f"{escape(heading)} | {escape(place)}",
        style=STYLE_PATH,
        place=escape(place),
        heading=escape(heading),
        content=content,
    ).encode("utf-8", "replace")


def render_fields(fields: Mapping[str, str]) -> str:
    """Hidden fields of a form."""
    return "".join(
        f'<input type="hidden" name="{escape(name)}" value="{html.escape(value, quote=True)}">\n'
        for name, value in fields.items()
    )


def escape(text: str, limit: int = 400) -> str:
    """A text as markup; there is no other way for one onto a page."""
    return html.escape(clean_text(text, limit), quote=True)
