"""Measures the shape of the source tree: modules, folders, names, docstrings and import circles.

Run ``python tools/structure.py`` to print the table; a path as argument measures another checkout.
``tests/architecture/test_rooms.py`` holds the limits.
"""

import ast
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ROOMS = ("host", "server", "client", "auth", "cli")
"""The packages whose inside is measured, too: a room is a subpackage or a module beside it."""

RIDDLES = frozenset({"What", "Who", "Whoever", "Whatever", "Where", "How", "Which", "Whose"})

PARTICIPLE = re.compile(r"[a-z]+(ed|en|ing|own|old|ept|eft|ade|ound|ought|aid|uilt|ent|ead|ung)\Z")
IRREGULAR = frozenset({"met", "won", "hid", "due"})
VERBS_AND_NOUNS = frozenset(
    {
        *(
            "embed",
            "feed",
            "need",
            "seed",
            "speed",
            "proceed",
            "exceed",
            "open",
            "listen",
            "shorten",
        ),
        *("widen", "tighten", "token", "screen", "string", "ping", "bring", "setting", "heading"),
        *("own", "hold", "fold", "accept", "except", "intercept", "fade", "trade", "grade"),
        *(
            "sound",
            "round",
            "bound",
            "ground",
            "present",
            "prevent",
            "consent",
            "invent",
            "content",
        ),
        *("component", "document", "argument", "agent", "client", "event", "parent", "statement"),
        *("read", "head", "thread", "spread", "comment", "percent", "segment", "fragment"),
        *("element", "increment", "augment"),
    }
)
"""Words with such an ending that are verbs or nouns all the same."""


def parse_tree(root: Path) -> dict[str, ast.Module]:
    """Every module below ``src/isthmus``, by its dotted name."""
    found = {}
    for path in sorted((root / "src" / "isthmus").rglob("*.py")):
        parts = path.relative_to(root / "src").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def count_folders(root: Path) -> Counter[str]:
    """The number of modules in each folder, ``__init__`` aside."""
    return Counter(
        path.parent.relative_to(root / "src").as_posix()
        for path in (root / "src" / "isthmus").rglob("*.py")
        if path.name != "__init__.py"
    )


def find_homonyms(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Every name that several module-level classes share, with their modules."""
    homes = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


def is_participle(name: str) -> bool:
    """Whether a function is named by one word that is a participle."""
    word = name.strip("_")
    if "_" in word or word in VERBS_AND_NOUNS:
        return False
    return word in IRREGULAR or PARTICIPLE.match(word) is not None


def find_participles(trees: dict[str, ast.Module]) -> list[str]:
    """Module-level functions that are named by a bare participle."""
    return [
        f"{module}:{node.name}"
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name)
    ]


def find_riddles(trees: dict[str, ast.Module]) -> list[str]:
    """Modules whose docstring begins with a question word."""
    return [
        module
        for module, tree in trees.items()
        for words in [(ast.get_docstring(tree) or "").split()]
        if words and words[0].strip(",.:") in RIDDLES
    ]


def find_constant_docstrings(
    trees: dict[str, ast.Module], public: Collection[str] = ()
) -> list[str]:
    """Module-level constants, in capitals, that a docstring follows; public ones need it in the reference."""
    found = []
    for module, tree in trees.items():
        for node, after in zip(tree.body, tree.body[1:], strict=False):
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            names = [t.id for t in targets if isinstance(t, ast.Name) and t.id.isupper()]
            if (
                isinstance(after, ast.Expr)
                and names
                and names[0] not in public
                and isinstance(after.value, ast.Constant)
            ):
                found.append(f"{module}:{names[0]}")
    return found


def find_imports(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Every module of ours that a module imports for more than its types, also in functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # no statement is in one
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from find_imports(node, modules)


def find_room(module: str, package: str) -> str:
    """The room of a package that a module stands in; empty for a module of elsewhere."""
    inside = f"isthmus.{package}."
    return module.removeprefix(inside).split(".")[0] if module.startswith(inside) else ""


def find_arrows(trees: dict[str, ast.Module], package: str) -> dict[tuple[str, str], list[str]]:
    """Every arrow between two rooms of a package, with the imports that make it."""
    arrows = defaultdict(list)
    for module, tree in trees.items():
        room = find_room(module, package)
        for target in find_imports(tree, set(trees)) if room else ():
            other = find_room(target, package)
            if other and other != room:
                arrows[room, other].append(f"{module} imports {target}")
    return arrows


def find_circles(trees: dict[str, ast.Module], package: str) -> list[str]:
    """The imports between rooms of a package that import one another, be it on a way round."""
    arrows = find_arrows(trees, package)
    knot = find_knot(set(arrows))
    return [one for (a, b), ones in arrows.items() if a in knot and b in knot for one in ones]


def find_knot(arrows: set[tuple[str, str]]) -> set[str]:
    """The rooms that are left once all that stand below or above every circle are gone."""
    left = {room for arrow in arrows for room in arrow}
    while True:
        loose = {
            room
            for room in left
            if not any(a == room and b in left for a, b in arrows)
            or not any(b == room and a in left for a, b in arrows)
        }
        if not loose:
            return left
        left -= loose


def measure(root: Path) -> list[tuple[str, int | float]]:
    """The table: what is measured, and its figure."""
    trees, folders = parse_tree(root), count_folders(root)
    paths = list((root / "src" / "isthmus").rglob("*.py"))
    lines = [path.read_text(encoding="utf-8").count("\n") for path in paths]
    usual = [n for name, n in folders.items() if name not in {"isthmus/wire", "isthmus/core"}]
    classes = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    return [
        ("modules, each folder's __init__ aside", folders.total()),
        ("folders", len(folders)),
        ("lines of source", sum(lines)),
        ("lines of the longest module", max(lines)),
        ("lines of the median module", statistics.median(lines)),
        ("modules in the widest folder (wire and core aside)", max(usual)),
        ("modules in wire or core", max(folders["isthmus/wire"], folders["isthmus/core"])),
        ("class homonyms", classes.total() - len(classes)),
        ("bare participles as functions", len(find_participles(trees))),
        (
            "imports in circles between rooms of " + ", ".join(ROOMS),
            sum(len(find_circles(trees, package)) for package in ROOMS),
        ),
        ("module docstrings that begin with a question word", len(find_riddles(trees))),
        ("docstrings on constants", len(find_constant_docstrings(trees))),
    ]


if __name__ == "__main__":
    for what, figure in measure(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT):
        print(f"{figure:>9,g}  {what}")
