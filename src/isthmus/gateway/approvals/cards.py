"""Markup of the approval pages: functions from values to HTML, which escape everything.

What servers and clients say is shown as text, with marks that reorder or hide letters made visible.
"""

import html
import json
from collections.abc import Iterator, Sequence

import msgspec

from isthmus.core.text import show_invisible
from isthmus.host.model.interaction import CallAsked, Interaction

MAX_EDITABLE_CHARS = 4_000  # of arguments: a form is refused that is longer than 16 KiB

LAYOUT = """\
<!DOCTYPE html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="stylesheet" href="{style}">
</head>
<body><main>
<h1>{title}</h1>
{content}
</main></body>
</html>
"""


def escape(text: object, *, line: bool = True) -> str:
    """A text of somebody else as markup, with what is invisible made visible."""
    return html.escape(show_invisible(str(text), line=line))


def make_layout(title: str, content: str, style: str) -> bytes:
    """A page."""
    return LAYOUT.format(title=escape(title), style=style, content=content).encode()


def make_text_markup(texts: Sequence[str], links: Sequence[tuple[str, str]] = ()) -> str:
    """Sentences, and a list of links to pages of ours."""
    paragraphs = "".join(f"<p>{escape(text)}</p>\n" for text in texts)
    items = "".join(
        f'<li><a href="{html.escape(path)}">{escape(text)}</a></li>\n' for path, text in links
    )
    return f"{paragraphs}<ul>\n{items}</ul>" if items else paragraphs


def make_login_markup(path: str, notice: str) -> str:
    """The form for the token that the gateway printed."""
    said = f'<p class="notice">{escape(notice)}</p>\n' if notice else ""
    return (
        f'{said}<form method="post" action="{path}">\n'
        '<label for="token">Token that the gateway printed, after #</label>\n'
        '<input id="token" name="token" type="password" autocomplete="off" required autofocus>\n'
        '<div class="choice"><button class="main" type="submit">Sign in</button></div>\n</form>'
    )


def make_card_markup(asked: Interaction, action: str, token: str) -> str:
    """The whole card of a question, with the form to decide it.

    Args:
        asked: the question.
        action: where the form goes.
        token: of the form.
    """
    return "".join(_list_card_parts(asked, action, token))


def _list_card_parts(asked: Interaction, action: str, token: str) -> Iterator[str]:
    attempt, trace, payload = asked.attempt, asked.trace, asked.payload
    facts = {
        "Asked by": attempt.principal,
        "Server": attempt.server,
        "Action": attempt.action,
        "Object": attempt.object,
        "Risk": asked.risk,
        "Rule": trace.rule,
        "Reason": trace.reason,
        "Who may say yes": trace.obligations.assurance,
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>\n" for name, value in facts.items())
    yield f"<dl>\n{rows}</dl>\n"
    if isinstance(payload, CallAsked):
        claimed = "" if payload.trusted else " (nobody has checked it)"
        yield f"<h2>The tool, as its server describes it{claimed}</h2>\n"
        yield f"<pre>{escape(payload.tool.description or '(no description)', line=False)}</pre>\n"
        yield f"<details><summary>Its whole definition</summary>{_quote(payload.tool)}</details>\n"
    else:
        yield f"<h2>What is asked</h2>\n{_quote(payload)}\n"
    yield f'<form method="post" action="{html.escape(action)}">\n'
    yield f'<input type="hidden" name="form" value="{html.escape(token)}">\n'
    text = json.dumps(msgspec.to_builtins(getattr(payload, "arguments", {})), indent=2)
    if isinstance(payload, CallAsked) and len(text) > MAX_EDITABLE_CHARS:
        yield f"<h2>Arguments</h2>\n<pre>{escape(text, line=False)}</pre>\n"
    elif isinstance(payload, CallAsked):
        # what is invisible stands here as JSON escapes, so that an edit keeps it
        yield '<h2>Arguments</h2>\n<label for="arguments">As they are; you may edit them</label>\n'
        yield f'<textarea id="arguments" name="arguments" rows="12">\n{html.escape(text)}</textarea>\n'
    if not can_allow(asked):
        yield "<p>This is answered at a terminal of the host; it can be denied here.</p>\n"
    else:
        yield '<button class="main" type="submit" name="verdict" value="allow">Allow once</button>\n'
    yield '<label for="reason">Why (for a no)</label><input id="reason" name="reason">\n'
    yield '<button type="submit" name="verdict" value="deny">Deny</button>\n</form>\n'


def can_allow(asked: Interaction) -> bool:
    """Whether a yes is all that a question wants; others want a text, or a model."""
    return not asked.attempt.action.startswith(("elicit.", "sampling.", "roots."))


def _quote(value: object) -> str:
    text = json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False, default=str)
    return f"<pre>{escape(text, line=False)}</pre>"
