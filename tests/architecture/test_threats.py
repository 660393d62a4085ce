"""The page of threats says what the requirements and the tests say."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tool():
    spec = importlib.util.spec_from_file_location("threats", ROOT / "tools" / "threats.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_threat_is_tried_by_a_test():
    """Ours: a defence that nobody attacks is a hope."""
    tried = {name.removeprefix("auth.threat.")[:3] for name in tool().proofs()}

    assert [] == sorted(set(tool().THREATS) - tried)


def test_the_page_of_threats_says_what_the_files_say():
    """Ours: run ``python tools/threats.py`` after a change."""
    assert tool().page() == tool().PAGE.read_text(encoding="utf-8")
