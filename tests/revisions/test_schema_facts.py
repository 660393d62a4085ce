"""What is kept of the official schemas, against the official files where these are at hand."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.schemas import official

ROOT = Path(__file__).parents[2]
each_revision = pytest.mark.parametrize("revision", official.REVISIONS)


@pytest.fixture(scope="module")
def facts():
    """The script that writes them."""
    spec = importlib.util.spec_from_file_location("schema_facts", ROOT / "tools/schema_facts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each_revision
def test_the_facts_are_those_of_the_official_file(facts, revision):
    """Ours: nothing is lost but prose, and nothing is added."""
    path = official.OFFICIAL / revision / "schema.json"
    if not path.is_file():
        pytest.skip(
            f"no official schemas under {official.OFFICIAL}; ISTHMUS_SPEC names their folder"
        )
    whole = json.loads(path.read_text("utf-8"))
    kept = (official.KEPT / f"{revision}.json").read_text("utf-8")

    assert facts.write_facts(whole) == kept
    assert facts.extract_facts(whole) == json.loads(kept)


@each_revision
def test_no_prose_is_kept(facts, revision):
    """Ours: the facts are names and types; texts stay where they were written."""
    kept = json.loads((official.KEPT / f"{revision}.json").read_text("utf-8"))

    assert facts.extract_facts(kept) == kept
    assert {"name", "description"} <= kept[_where(kept)]["Tool"]["properties"].keys()


def _where(schema):
    return "$defs" if "$defs" in schema else "definitions"


def test_prose_is_told_from_members_of_that_name(facts):
    """Ours: a type may have a member that is called description."""
    schema = {
        "description": "a text",
        "title": "another",
        "properties": {"description": {"type": "string", "description": "a third"}},
        "anyOf": [{"const": "description", "description": "a fourth"}],
    }

    assert {
        "properties": {"description": {"type": "string"}},
        "anyOf": [{"const": "description"}],
    } == facts.extract_facts(schema)


@pytest.mark.timeout(120)
def test_tables_are_held_against_the_facts_where_nothing_lies_beside_the_project(tmp_path):
    """Ours: a bare clone skips only what compares the facts with their source."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider",
         "tests/revisions/test_against_schemas.py", "tests/revisions/test_schema_facts.py", "-k",
         "against_schemas or official_file"],
        cwd=ROOT,
        env={**os.environ, "ISTHMUS_SPEC": str(tmp_path / "missing")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip

    assert 0 == done.returncode, done.stdout
    assert f"{len(official.REVISIONS)} skipped" in done.stdout
