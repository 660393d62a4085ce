"""Policy page: layers with their rules and hits, a dry run of an attempt, a replay against the past."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from isthmus.cards.drafts import read_json
from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    NOTHING,
    TableColumn,
    draw_badge,
    draw_block,
    draw_choice,
    draw_code,
    draw_empty,
    draw_facts,
    draw_field,
    draw_fold,
    draw_notice,
    draw_section,
    draw_table,
    name_actor,
)
from isthmus.console.pages.access import draw_tabs
from isthmus.console.requests import ConsoleReply, ConsoleRequest, PageReply
from isthmus.errors import IsthmusError
from isthmus.host.model.attempt import Action, Origin
from isthmus.host.model.view import (
    AttemptDraft,
    PolicyAnswer,
    PolicyLayerLine,
    PromotionOutcome,
    ReplayReport,
)

RULE_COLUMNS = (
    TableColumn("rule", "name"),
    TableColumn("effect"),
    TableColumn("hits", "number"),
    TableColumn("says", "wide"),
)
MATCH_COLUMNS = (TableColumn("rule", "name"), TableColumn("layer"), TableColumn("effect"))
CHANGE_COLUMNS = (
    TableColumn("was"),
    TableColumn("would be"),
    TableColumn("by"),
    TableColumn("what", "wide"),
    TableColumn("times", "number"),
)
ACTIONS: tuple[Action, ...] = get_args(Action)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
SINCE_SPANS = (
    ("1h", "the last hour"),
    ("1d", "the last day"),
    ("7d", "the last 7 days"),
    ("30d", "the last 30 days"),
)
SINCE_SECONDS = {"1h": 3600.0, "1d": 86400.0, "7d": 7 * 86400.0, "30d": 30 * 86400.0}


PROMOTED_TEXT = (
    "The shadow policy is in force until the configuration is read again or the host ends. No file was "
    "changed."
)
KEPT_TEXT = "The shadow policy is in force, and {file} now names it as policy."


async def show_policy(request: ConsoleRequest) -> PageReply:
    """The layers of the policy in force, and forms to question it."""
    return await _make_page(request, NOTHING)


async def _make_page(
    request: ConsoleRequest, answer: Markup, faults: Mapping[str, str] | None = None
) -> PageReply:
    layers = await request.view.policy_layers()
    profiles = [one.name for one in await request.view.profiles()]
    body = element(
        "div",
        {},
        draw_tabs(request, "policy"),
        answer,
        draw_section("Rules in force", *_draw_layers(request, layers), key="rules"),
        draw_section(
            "Dry run",
            _draw_attempt_form(request, faults or {}, profiles),
            key="try",
            note="Shows how an attempt would be decided, by which rule and why. Nothing is called.",
        ),
        draw_section(
            "Replay",
            _draw_replay_form(request, faults or {}),
            key="replay",
            note="Shows how another policy would have decided the attempts in the audit log. Nothing is called.",
        ),
    )
    return PageReply(title="Policy", body=body, status=400 if faults else 200, section="access")


def _draw_layers(request: ConsoleRequest, layers: Sequence[PolicyLayerLine]) -> list[Markup]:
    return [_draw_layer(request, layer) for layer in layers] or [
        draw_empty("There are no rules: a person is asked about every attempt.")
    ]


def _draw_layer(request: ConsoleRequest, layer: PolicyLayerLine) -> Markup:
    head = element("h3", {}, layer.layer, " ", draw_code(layer.source))
    broken = draw_notice(layer.broken, "bad") if layer.broken else NOTHING
    table = draw_table(
        f"Rules of the layer {layer.layer}",
        RULE_COLUMNS,
        [
            [
                draw_code(rule.name),
                draw_badge(rule.effect),
                f"{rule.hits:,}",
                element("span", {"class": "rule-text"}, rule.text),
            ]
            for rule in layer.rules
        ],
        empty="It has no rules.",
    )
    promote = NOTHING
    if layer.layer == "shadow":
        keep = element("input", {"type": "checkbox", "id": "keep", "name": "keep", "value": "yes"})
        label = element("label", {"for": "keep"}, "Write it into the configuration")
        button = element("button", {"type": "submit", "class": "danger"}, "Put it in force")
        promote = draw_fold(
            "Let this shadow policy decide from now on",
            request.make_form(
                request.link("access", "policy", "promote"),
                element("p", {}, keep, label),
                button,
            ),
        )
    return element("div", {"class": "layer"}, head, broken, table, promote)


# Dry run


def _draw_attempt_form(
    request: ConsoleRequest, faults: Mapping[str, str], profiles: Sequence[str]
) -> Markup:
    fields = request.fields
    servers = [(one.name, one.name) for one in request.view.servers()]
    actions = [(action, action) for action in ACTIONS]
    # what a gateway's client does comes another way than what its operator does, and through a profile
    origins = [(origin, origin) for origin in ORIGINS]
    through = [("", "none"), *((name, name) for name in profiles)]
    return request.make_form(
        request.link("access", "policy", "try"),
        element(
            "div",
            {"class": "columns"},
            draw_choice("action", "Action", actions, fields.get("action", "tool.call")),
            draw_choice("server", "Server", servers, fields.get("server", "")),
            draw_field("object", "Tool, URI or prompt", fields.get("object", "")),
            draw_field(
                "principal", "Principal", fields.get("principal", request.visitor.principal)
            ),
            draw_choice("origin", "Comes by", origins, fields.get("origin", "local")),
            draw_choice("profile", "Through profile", through, fields.get("profile", ""))
            if profiles
            else NOTHING,
        ),
        draw_field(
            "arguments",
            "Arguments as JSON",
            fields.get("arguments", "{}"),
            rows=3,
            fault=faults.get("arguments", ""),
        ),
        element("button", {"type": "submit", "class": "main"}, "What would happen?"),
        attributes={"class": "stack"},
    )


async def try_attempt(request: ConsoleRequest) -> PageReply:
    """Say what would be decided about an attempt."""
    fields = request.fields
    arguments, fault = _read_arguments(fields.get("arguments", ""))
    if fault:
        return await _make_page(request, NOTHING, {"arguments": fault})
    action = next((one for one in ACTIONS if one == fields.get("action")), None)
    if action is None:
        return await _make_page(request, draw_notice("Choose an action from the list.", "bad"))
    draft = AttemptDraft(
        action=action,
        server=fields.get("server", ""),
        object=fields.get("object", ""),
        principal=fields.get("principal", ""),
        arguments=arguments,
        origin=next((one for one in ORIGINS if one == fields.get("origin")), "local"),
        profile=fields.get("profile", ""),
    )
    try:
        answer = await request.view.try_policy(draft)
    except IsthmusError as error:
        return await _make_page(request, draw_notice(str(error), "bad"))
    return await _make_page(request, draw_answer(answer))


def _read_arguments(text: str) -> tuple[dict[str, Any], str]:
    try:
        value = read_json(text or "{}")
    except ValueError as error:
        return {}, str(error)
    return (value, "") if isinstance(value, dict) else ({}, "arguments are a JSON object")


def draw_answer(answer: PolicyAnswer) -> Markup:
    """What would be decided, and every rule that fits."""
    return element(
        "div",
        {"class": "answer", "id": "answer"},
        draw_facts(
            [
                ("decision", draw_badge(answer.effect)),
                ("rule", draw_code(answer.rule)),
                ("because", answer.reason),
                ("grant", draw_code(answer.grant)),
                ("demands", ", ".join(answer.obligations)),
                ("flow of data", "; ".join(answer.chain)),
            ]
        ),
        draw_table(
            "Matching rules",
            MATCH_COLUMNS,
            [[draw_code(one.rule), one.layer, draw_badge(one.effect)] for one in answer.matches],
            empty="No rule matches: a person is asked.",
        ),
    )


# Replay


def _draw_replay_form(request: ConsoleRequest, faults: Mapping[str, str]) -> Markup:
    fields = request.fields
    return request.make_form(
        request.link("access", "policy", "replay"),
        draw_field(
            "text",
            "Policy file, or the name of a built-in policy",
            fields.get("text", ""),
            rows=8,
            fault=faults.get("text", ""),
            hint="developer, or [[rule]] tables as in a policy file",
        ),
        draw_choice("since", "Attempts of", SINCE_SPANS, fields.get("since", "7d")),
        element("button", {"type": "submit", "class": "main"}, "Test it on past calls"),
        attributes={"class": "stack"},
    )


async def replay_text(request: ConsoleRequest) -> PageReply:
    """Say what another policy would have decided in the past."""
    text = request.fields.get("text", "").replace("\r\n", "\n")
    if not text.strip():
        return await _make_page(request, NOTHING, {"text": "write a policy, or a name"})
    since = time.time() - SINCE_SECONDS.get(request.fields.get("since", ""), SINCE_SECONDS["7d"])
    try:
        report = await request.view.replay_policy(
            text.strip() if "\n" not in text.strip() else text, since
        )
    except IsthmusError as error:
        return await _make_page(request, NOTHING, {"text": str(error)})
    return await _make_page(request, draw_report(report))


def draw_report(report: ReplayReport) -> Markup:
    """What would be different, the most frequent first."""
    said = draw_notice(
        f"{report.attempts:,} attempts were decided again, {report.changed:,} of them differently."
    )
    table = draw_table(
        "What would be different",
        CHANGE_COLUMNS,
        [
            [
                draw_badge(one.before),
                draw_badge(one.after),
                draw_code(one.rule),
                f"{one.server}: {one.object}",
                f"{one.times:,}",
            ]
            for one in report.changes
        ],
        empty="Every attempt would be decided as before.",
    )
    return element("div", {"class": "answer", "id": "answer"}, said, table)


async def promote_shadow(request: ConsoleRequest) -> ConsoleReply:
    """Put the shadow policy in force."""
    keep = request.fields.get("keep") == "yes"
    done = await request.view.promote_shadow(by=name_actor(request.visitor.name), keep=keep)
    if done is None:
        return await _make_page(request, draw_notice("There is no shadow policy.", "bad"))
    return await _make_page(request, draw_promotion(done))


def draw_promotion(done: PromotionOutcome) -> Markup:
    """What has become of a shadow policy, and what makes it last."""
    if done.file:
        return draw_notice(KEPT_TEXT.format(file=done.file))
    where = f"into {done.place}, in place of shadow" if done.place else "where the host is started"
    return element(
        "div",
        {"class": "answer", "id": "answer"},
        draw_notice(PROMOTED_TEXT),
        draw_notice(f"No file was changed: {done.reason}.", "bad") if done.reason else NOTHING,
        element("p", {}, f"To keep it in force, put this {where}:") if done.paste else NOTHING,
        draw_block(done.paste) if done.paste else NOTHING,
    )
