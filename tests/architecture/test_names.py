"""Names: a module is named for its noun, and one word stays in its rooms."""

import re

FORBIDDEN = {"utils", "helpers", "common", "shared", "manager", "handler", "handlers", "misc"}
BASES = {"wire/struct.py"}

# The seams: where the two eras truly behave differently, and the tables that say which is which.
ERA_FILES = {
    "core/phases.py",
    "core/negotiation.py",
    "core/caller.py",
    "server/asking/rounds.py",
    "server/subscriptions.py",
    "client/subscriptions.py",
    "transports/http/sessions/session.py",
    "transports/http/response.py",
    # which one a configuration says, and what is written down of an attempt
    "host/supervisor/targets.py",
    "host/pipeline/passage.py",
    "host/pipeline/attempt_events.py",
    "host/audit/writer.py",
}


def test_modules_are_named_for_their_noun(sources):
    """Ours: a name that says nothing collects everything."""
    wrong = [
        s.name
        for s in sources
        for part in s.name.removesuffix(".py").split("/")
        if part in FORBIDDEN or (part == "base" and s.name not in BASES)
    ]

    assert [] == wrong, f"never {', '.join(sorted(FORBIDDEN))}, nor base outside {BASES}"


def test_no_module_hides_behind_an_underscore(sources):
    """Ours: public is what `__all__` lists, so no module needs an underscore."""
    wrong = [s.name for s in sources if re.search(r"(^|/)_(?!_)", s.name)]

    assert [] == wrong


def test_the_era_is_named_in_its_files_only(sources):
    """Ours: everybody else asks `revision.has(Feature.X)`."""
    wrong = [
        f"{s.name}:{number}: {line.strip()}"
        for s in sources
        if s.package != "revisions" and s.name not in ERA_FILES
        for number, line in enumerate(s.text.splitlines(), 1)
        if re.search(r"\bEra\b|\.era\b", line)
    ]

    assert [] == wrong, f"only revisions/* and {', '.join(sorted(ERA_FILES))} may"


def test_every_module_says_what_it_is_for(sources):
    """Ours: the docstring is the map."""
    silent = [s.name for s in sources if s.text and not s.text.lstrip().startswith(('"""', 'r"""'))]

    assert [] == silent
