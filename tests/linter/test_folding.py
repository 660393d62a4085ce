"""Findings that say the same are read once."""

from isthmus.cli.findings import print_findings
from isthmus.linter.doctor.doctor import Doctor
from isthmus.linter.rules.rule import Finding, fold_findings
from isthmus.revisions import BY_NAME
from support.linter.spoiled_servers import line_site


def finding(
    rule="messages.surplus",
    where="the answer to tools/list",
    said="",
    revision="2025-11-25",
    **more,
):
    """One finding."""
    severity = more.pop("severity", "note")
    return Finding(rule, severity, "ours", revision, where, said, "It holds.", "Mend it.", **more)


def test_surplus_members_are_one_row_for_each_member():
    """Ours: wherever it stands, in whatever revision."""
    said = [
        "no revision has a member 'x' here",
        "2025-11-25 has no member 'title' here; there is one since 2025-06-18",
        "2024-11-05 has no member 'title' here; there is one since 2025-06-18",
    ]
    many = [
        finding(where=f"the answer to tools/list $.result.tools[{i}].{i % 7}", said=text)
        for i in range(100)
        for text in said
    ]
    folded = fold_findings(many)

    assert [100, 200] == [one.times for one in folded]
    assert many[0] == folded[0].example


def test_what_is_said_of_many_items_is_one_row_and_other_places_are_others():
    """Ours: numbers and names of items make no difference; another question does."""
    listed = [
        finding(
            "tools.described", f"tools/list $.result.tools[{i}] 'tool {i}'", "it has no description"
        )
        for i in range(5)
    ]
    asked = [finding("errors.x", place, "HTTP 200") for place in ("GET", "PUT")]
    folded = fold_findings([*listed, *asked])

    assert [5, 1, 1] == [one.times for one in folded]


def test_the_summary_comes_first_with_how_often_and_one_example(capsys):
    """Ours: who reads the first line knows how it stands."""
    findings = [
        finding(said="no revision has a member 'x' here", where=f"a[{i}]") for i in range(3)
    ]
    print_findings([*findings, finding("ids.same", said="no", severity="error")])
    out = capsys.readouterr().out

    assert "1 error, 0 warnings, 3 notes of 1 kind" == out.splitlines()[0]
    assert "3 times, for example:" in out
    assert 1 == out.count("messages.surplus")


async def test_a_server_with_members_of_its_own_everywhere_is_read_in_a_few_rows():
    """Ours: a real server had 7,589 notes that were alike."""

    def spoil(asked, message):
        tools = message.get("result", {}).get("tools") if isinstance(message, dict) else None
        if not tools:
            return message
        schema = {"$schema": "http://json-schema.org/draft-07/schema#"}
        listed = [
            {**tools[0], "name": f"tool-{i}", "execution": {"taskSupport": "no"}, "own": schema}
            for i in range(50)
        ]
        return {**message, "result": {**message["result"], "tools": listed}}

    doctor = Doctor(line_site(spoil), timeout=0.5)
    report = await doctor.examine([BY_NAME[name] for name in ("2024-11-05", "2025-06-18")])
    surplus = [one for one in report.findings if one.rule == "messages.surplus"]

    assert len(surplus) > 200
    assert {"'execution'", "'own'"} >= {
        f"'{one.example.said.split(chr(39))[1]}'"
        for one in fold_findings(surplus)
        if one.times > 10
    }
    assert len(fold_findings(surplus)) < 10
