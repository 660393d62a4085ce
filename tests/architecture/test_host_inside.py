"""The inside of the host: what decides is pure, what is timed is given its clock, faces see a view."""

import ast

from msgspec import Struct

from isthmus.host.model import entries

OUTSIDE = {
    *("asyncio", "socket", "select", "threading", "subprocess", "signal", "sqlite3"),
    *("time", "random", "secrets", "uuid", "os", "io", "pathlib", "tempfile", "shutil"),
    *("aiohttp", "textual", "watchfiles", "tomlkit", "yaml"),
}
"""What does I/O, keeps time or rolls dice."""

PURE = {
    "host/catalog/names.py",
    "host/catalog/offer.py",
    "host/config/syntax.py",
    "host/context/fitting.py",
    "host/approvals/differences.py",
    "host/model/framing.py",
    "host/policy/flow_labels.py",
    "host/sampling/selection.py",
    "host/model/entries.py",
    "host/supervisor/states.py",
}
"""What decides, beside policy: the same answer for the same arguments, on every machine."""

ASKING = {
    "host/policy/places.py": {"os"},  # where a path leads, only the kernel knows
    # a policy is read from its file, before anything is decided
    "host/policy/rule_file.py": {"pathlib"},
    "host/config/syntax.py": {"yaml"},  # it parses; what its scalars are is decided here
}
"""Who of policy asks the machine for something, and why."""

CLOCKS = {"time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "now", "utcnow", "today"}

TIMED = {
    "host/pipeline/passage.py": {"perf_counter"}
}  # how long a call took, which decides nothing

FACE = {
    "catalog.names", "chat.conversation", "model.attempt", "model.errors", "model.events",
    "model.interaction", "model.trace", "model.view", "providers.provider", "remote.view",
    "sampling.request", "turns",
}  # fmt: skip
"""What a face has of the host: its view, a conversation, and values."""

OPTIONS = [
    found
    for name in entries.__all__
    for found in [getattr(entries, name)]
    if isinstance(found, type) and issubclass(found, Struct)
]


def imports(tree):
    """Every module that is imported for more than its types, with its line."""
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module, node.lineno


def pure(name):
    """Whether a file decides, and does nothing else."""
    return name in PURE or name.startswith("host/policy/")


def test_what_decides_is_pure(sources):
    """Ours: policy and selection have no I/O, clock or dice, so that replay says what was decided."""
    wrong = [
        f"{s.name}:{line} imports {module}"
        for s in sources
        if pure(s.name)
        for module, line in imports(s.tree)
        if module.split(".")[0] in OUTSIDE - ASKING.get(s.name, set())
    ]

    assert [] == wrong, "what it needs to know arrives in its arguments"


def test_what_decides_waits_for_nothing(sources):
    """Ours: nothing can change between the question and the answer."""
    waits = ast.AsyncFunctionDef | ast.Await
    wrong = [
        f"{s.name}:{node.lineno}"
        for s in sources
        if pure(s.name)
        for node in s.nodes
        if isinstance(node, waits)
    ]

    assert [] == wrong


def test_the_files_that_are_named_here_exist(sources):
    """Ours: a file that has moved is not forgotten here."""
    named = {*PURE, *ASKING, *TIMED, *(f"host/{one.replace('.', '/')}.py" for one in FACE)}

    assert set() == named - {s.name for s in sources}


def test_the_host_is_given_its_clocks(sources):
    """Ours: who keeps time takes a clock as an argument, so that a test can be the clock."""
    wrong = [
        f"{s.name}:{node.lineno} calls {ast.unparse(node.func)}"
        for s in sources
        if s.package == "host"
        for node in s.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in {"time", "datetime", "date"}
        and node.func.attr in CLOCKS - TIMED.get(s.name, set())
    ]

    assert [] == wrong


def test_faces_see_a_view_and_values(sources):
    """Ours: a face may be another process: what it has of the host can be sent to it."""
    wrong = [
        f"{s.name}:{line} imports {module}"
        for s in sources
        if s.package == "terminal"
        for module, line in imports(s.tree)
        if module.startswith("isthmus.host")
        and module.removeprefix("isthmus.host").removeprefix(".") not in FACE
    ]

    assert [] == wrong, f"a face has {', '.join(sorted(FACE))}"


def test_the_parts_of_the_host_do_not_know_the_whole(sources):
    """Ours: what the host is made of is given what it needs, and never the host, nor what makes it."""
    known = {
        (s.name, module.removeprefix("isthmus.host."))
        for s in sources
        if s.package == "host"
        for node in s.nodes
        if isinstance(node, ast.ImportFrom)
        for module in [node.module or ""]
        if module.removeprefix("isthmus.host.") in {"host", "assembly"}
    }

    assert {
        ("host/__init__.py", "host"),
        ("host/chat/conversation.py", "host"),  # which is of a host, and no part of it
        ("host/host.py", "assembly"),
    } == known


ROOM_FLOORS = (
    {"model"},
    {"accounts", "catalog", "policy", "state"},
    {"supervisor"},
    {"approvals", "config"},
    {"audit"},
    {"pipeline", "remote", "traffic"},
    {"questions", "context", "providers"},
    {"sampling", "confinement"},
    {"host", "assembly", "lifecycle", "reloading", "settings", "sharing", "visibility"},
    {"chat"},
    {"turns"},
)
"""The rooms of the host from the ground up; on the last floors are its own modules, and faces of it."""


def test_the_rooms_of_the_host_stand_on_one_another(sources):
    """Ours: values below engines: no room imports from a floor above it, not even for types."""
    floors = {room: floor for floor, rooms in enumerate(ROOM_FLOORS) for room in rooms}
    up = {
        f"{s.name} imports {node.module}"
        for s in sources
        if s.package == "host" and s.name != "host/__init__.py"
        for node in s.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isthmus.host.")
        for here in [s.name.removesuffix(".py").split("/")[1]]
        if floors[(node.module or "").split(".")[2]] > floors[here]
    }

    assert set() == up


def test_every_option_is_read_by_what_it_is_for(sources):
    """Ours: an option that nobody reads would be a lie in the file of whoever wrote it."""
    read = {
        node.attr
        for s in sources
        if s.package in {"host", "gateway", "terminal", "cli"}
        and s.name != "host/config/json_schema.py"
        for node in s.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    unread = {
        f"{kind.__name__}.{field}"
        for kind in OPTIONS
        for field in kind.__struct_fields__
        if field not in read
    }

    assert set() == unread
