"""The pages of ``docs/reference/``: those made from tables are current, the others are whole."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

import isthmus.errors
from support.heap import own_heap

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
SOURCE = ROOT / "src" / "isthmus"


def tool(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "made"), tool("pages").PAGES.items())
def test_a_page_made_from_tables_is_current(name, made):
    """Ours: run ``python tools/pages.py`` after changing a table."""
    assert made() == (REFERENCE / name).read_text(encoding="utf-8")


# --- the index of errors ----------------------------------------------------------------------

# What becomes a message that somebody reads.
SAYING = {*isthmus.errors.__all__, "Refusal", "ErrorBody", "MalformedEnvelope", "Unreadable"}
SAYING |= {"NetworkFailed", "NetworkRefused", "KeysUnavailable", "VerifierUnavailable"}
SAYING |= {"LoginTimeout"}  # an AuthRequired
SAYING |= {"UpstreamDenied", "UpstreamFailed", "UpstreamUnavailable", "StoreBroken", "StoreBusy"}
SAYING |= {"StoreLocked", "StoreUnavailable", "StoreUnusable", "AuditUnavailable"}
SAYING |= {"RedisMisconfigured", "RedisFull", "RedisScriptMissing"}  # they are StoreUnavailable
SAYING |= {"HostGone", "HostRuns", "ControlUnavailable", "CannotOpen"}
SAYING |= {"Denied", "Quarantined", "UserDeclined", "Exhausted", "ServerUnavailable"}
SAYING |= {"OutcomeUnknown"}
SAYING |= {"AnswerMisfit"}  # a Refuse
# What an author or a person at a terminal is told before anything was sent says what to do about
# it in its own words; the index has the parts of isthmus that say it.
SELF_EXPLAINED = {"UsageError", "Unknown", "BadArguments", "ConfigError", "PolicyError"}
SELF_EXPLAINED |= {"BadMember", "UnresolvedVariable"}
SELF_EXPLAINED |= {"DocumentError", "BadValue", "ApiUnavailable"}  # of OpenAPI documents
SAYING |= SELF_EXPLAINED
UNLISTED = {"linter", "testing"}  # the first talks of other servers, the second to tests
ANY = "…"


def template(node):
    """A message with ``…`` for what varies; None where it is made elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else ANY for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (template(node.left) or ANY) + (template(node.right) or ANY)
    return None


def said_by(path):
    """The messages of one file: who says them, and their words."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in SAYING:
            arguments = [*node.args, *(k.value for k in node.keywords if k.arg == "message")]
            texts = [text for one in arguments if (text := template(one)) and len(text) > 3]
            if texts and texts[0].strip(f"{ANY}:; "):
                yield name, re.sub(rf"{ANY}+", ANY, texts[0].strip())


@cache
def messages():
    found = []
    with own_heap():  # Python 3.11.7 gives up where a collection runs while a tree is made
        for path in sorted(SOURCE.rglob("*.py")):
            where = path.relative_to(SOURCE)
            if where.parts[0] not in UNLISTED:
                found += ((where, kind, text) for kind, text in said_by(path))
    return found


def entries():
    """The messages of the index, from the first column of its tables."""
    pages = sorted(REFERENCE.glob("errors*.md"))
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    return [
        m[1].replace("\\|", "|")
        for line in lines
        if (m := re.match(r"\| ``? ?(.+?) ?``? \|", line))
    ]


@cache
def make_pattern(entry):
    return re.compile(".*".join(map(re.escape, entry.split(ANY))), re.DOTALL)


def fits(entry, text):
    # most entries begin with words that a text begins with, too, or not
    if not text.startswith(entry.partition(ANY)[0]):
        return False
    return make_pattern(entry).fullmatch(text) is not None


def test_every_message_of_an_answer_or_a_connection_is_in_the_index():
    """Ours: who searches the page for what they read finds its cause and its cure."""
    known = entries()
    missing = [
        f"{where}: {kind}: {text}"
        for where, kind, text in messages()
        if kind not in SELF_EXPLAINED and not any(fits(entry, text) for entry in known)
    ]

    assert [] == missing, "add them to docs/reference/errors.md"


def test_every_part_that_refuses_a_use_is_in_the_index():
    """Ours: of the messages that carry their own cure, each file has one in the index."""
    known = entries()
    parts = {}
    for where, kind, text in messages():
        if kind in SELF_EXPLAINED:
            parts.setdefault(where.as_posix(), []).append(text)
    missing = [
        (where, texts[0])
        for where, texts in parts.items()
        if not any(fits(entry, text) for entry in known for text in texts)
    ]

    assert [] == missing, "add one of each to docs/reference/errors.md"


def test_the_index_has_no_message_that_nobody_says():
    """Ours: a message that was changed takes its entry along."""
    said = {text for _, _, text in messages()}

    assert [] == [entry for entry in entries() if not any(fits(entry, text) for text in said)]


def test_an_entry_has_words_of_its_own():
    """Ours: an entry that fits everything would prove nothing."""
    vague = [entry for entry in entries() if len(re.sub(rf"[{ANY}\W]", "", entry)) < 6]

    assert [] == vague
