"""The configuration: its writer changes only what it is told, and its reader lets nothing out."""

import json
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.auth.tokens.secret import Secret
from isthmus.host.config.explain import explain_server
from isthmus.host.config.files import parse_document
from isthmus.host.config.load import merge_documents
from isthmus.host.config.syntax import TRIVIA, parse_jsonc
from isthmus.host.config.write import remove_member, replace_member
from isthmus.host.confinement.install import describe_install
from isthmus.host.model.errors import ConfigError
from support.examples import count_examples

FEW = settings(max_examples=count_examples(60), deadline=None)
CANARY = "canary-4711"

names = st.text(string.ascii_letters + '"\\ü/*', min_size=1, max_size=4)
leaves = st.none() | st.booleans() | st.integers(-9, 9) | names
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
blanks = st.sampled_from(
    ["", " ", "\n", "\n    ", "\t", " // a, b }\n", "/* { */", "\r\n", " /* x\n*/ "]
)


@st.composite
def texts(draw, value=None):
    """A text of JSON with comments and commas wherever they may be, and its value."""
    value = draw(st.dictionaries(names, values, max_size=4)) if value is None else value
    return draw(write_value(value)), value


@st.composite
def write_value(draw, value):
    """One way to write a value."""
    if isinstance(value, dict | list):
        marks = "{}" if isinstance(value, dict) else "[]"
        parts = []
        for key in value:
            one = value[key] if isinstance(value, dict) else key
            name = (
                f"{json.dumps(key)}{draw(blanks)}:{draw(blanks)}" if isinstance(value, dict) else ""
            )
            parts.append(f"{draw(blanks)}{name}{draw(write_value(one))}{draw(blanks)}")
        comma = "," if parts and draw(st.booleans()) else ""
        return f"{marks[0]}{','.join(parts)}{comma}{draw(blanks)}{marks[1]}"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def commented(text):
    """What the comments of a text say, without blanks, in their order."""
    found, at = "", 0
    while at < len(text):
        skipped = TRIVIA.match(text, at).end()
        if skipped > at:
            found += "".join(text[at:skipped].split())
            at = skipped
        elif text[at] == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            at += 1
        else:
            at += 1
    return found


@FEW
@given(texts())
def test_what_is_written_is_read(both):
    """Ours: comments and commas mean nothing."""
    text, value = both

    assert value == parse_jsonc(text).value


@FEW
@given(texts(), names, values)
def test_the_writer_changes_nothing_but_what_it_was_told(both, key, new):
    """Ours: one member is another, and every other member and every comment is as it was."""
    text, value = both
    after = replace_member(text, (key,), new)
    member = parse_jsonc(text).members.get(key)
    outside = text if member is None else text[: member.node.start] + text[member.node.end :]

    assert value | {key: new} == parse_jsonc(after).value
    assert list(value) == [name for name in parse_jsonc(after).value if name in value]
    assert commented(outside) == commented(after)


@FEW
@given(texts())
def test_what_is_taken_out_takes_nothing_with_it(both):
    """Ours: whichever member goes, the others and the comments outside of it stay."""
    text, value = both
    for key in value:
        node = parse_jsonc(text).members[key]
        after = remove_member(text, (key,))

        assert {k: v for k, v in value.items() if k != key} == parse_jsonc(after).value
        assert commented(text[: node.start] + text[node.node.end :]) == commented(after)


@FEW
@given(texts(), st.lists(names, min_size=1, max_size=3), values)
def test_setting_and_taking_out_is_no_change(both, keys, new):
    """Ours: a server that is added and removed again leaves what there was."""
    text, value = both
    path = ("mcpServers", *keys)
    after = (
        remove_member(replace_member(text, path, new), path) if "mcpServers" not in value else text
    )
    left = parse_jsonc(after).value
    left.pop("mcpServers", None)

    assert {k: v for k, v in value.items() if k != "mcpServers"} == left


fields = st.sampled_from(
    ["command", "args", "env", "headers", "url", "cwd", "envFile", "type", "host", "other"]
)
places = st.sampled_from(
    [
        "${secret:s}",
        "x${secret:s}y",
        "${TOKEN}",
        "${env:TOKEN}z",
        "${NONE}",
        "http://${TOKEN}@h/",
        "plain",
    ]
)
entries = st.dictionaries(
    fields,
    places
    | st.lists(places, max_size=2)
    | st.dictionaries(
        st.sampled_from(["A", "API_KEY", "Authorization", "b c", "idleStop", "sandbx"]),
        places,
        max_size=2,
    ),
    max_size=4,
)


class Kept:
    """One secret."""

    def get(self, path):
        """It."""
        return Secret(CANARY) if path == "s" else None


@FEW
@given(st.dictionaries(st.sampled_from(["a", "b", "c d"]), entries, min_size=1), st.booleans())
def test_variables_never_leak(tmp_path_factory, servers, host):
    """Ours: whatever is wrong with a file, no value of a secret is in what is said of it."""
    whole = {"mcpServers": servers} | (
        {"host": {"roots": [{"path": "${TOKEN}"}], "policy": "${TOKEN}"}} if host else {}
    )
    document = parse_document(
        tmp_path_factory.getbasetemp() / "mcp.json", json.dumps(whole).encode()
    )
    said = []
    try:
        loaded = merge_documents(
            [("user", document)], folder="/", environ={"TOKEN": CANARY}, secrets=Kept()
        )
        config = loaded.config
        said += [config.broken, config.notes, list(config.servers.values())]
        said += [explain_server(loaded, name) for name in servers]
        said += [describe_install(entry).argv for entry in config.servers.values()]
    except ConfigError as error:
        said.append(str(error))

    assert CANARY not in repr(said)


class Some:
    """Trusts some parts."""

    def __init__(self, digests):
        self.digests = digests

    def allows(self, path, name, digest):
        """Whether it is one of them."""
        return (name, digest) in self.digests


class Noting:
    """Trusts everything, and notes what that is."""

    def __init__(self):
        self.seen = set()

    def allows(self, path, name, digest):
        """Yes."""
        self.seen.add((name, digest))
        return True


simple = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.fixed_dictionaries({"command": st.sampled_from(["x", "y", "${TOKEN}"])}, optional={"args": st.lists(places, max_size=2)}),
)  # fmt: skip


@FEW
@given(simple, simple, simple)
def test_a_workspace_never_enables_what_was_not_trusted(tmp_path_factory, mine, before, after):
    """Ours: after any change, only parts that were seen run, and no server of the user's is another."""
    base = tmp_path_factory.getbasetemp()

    def read(name, servers):
        return parse_document(base / name, json.dumps({"mcpServers": servers}).encode())

    noting, environ = Noting(), {"TOKEN": CANARY}
    user, old, new = read("user.json", mine), read("w.json", before), read("w.json", after)
    merge_documents([("workspace", old)], folder=base, environ=environ, trusted=noting)
    config = merge_documents(
        [("user", user), ("workspace", new)],
        folder=base,
        environ=environ,
        trusted=Some(noting.seen),
    ).config

    for name, entry in config.servers.items():
        if entry.layer == "workspace":
            assert (before.get(name) == after[name]) == entry.trusted
            assert name not in mine
            assert entry.trusted or CANARY not in repr(entry.command)
    assert set(mine) <= {n for n, e in config.servers.items() if e.layer == "user"} | set(
        config.broken
    )
