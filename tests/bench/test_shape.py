"""The shape of the benchmarks: the rules of the house hold for them, too."""

import ast
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
SOURCES = sorted(BENCH.rglob("*.py"))
MODULES_PER_FOLDER, LINES_PER_FUNCTION, LINES_PER_MODULE = 16, 60, 800


def list_functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_a_folder_of_the_benchmarks_has_few_modules():
    """Ours: as in the package."""
    folders = {path.parent for path in SOURCES}
    modules = {folder.name: len(list(folder.glob("[!_]*.py"))) for folder in folders}

    assert {} == {name: count for name, count in modules.items() if count > MODULES_PER_FOLDER}


def test_functions_and_modules_of_the_benchmarks_are_short():
    """Ours: as in the package."""
    long = [
        f"{path.name}: {function.name}"
        for path in SOURCES
        for function in list_functions(path)
        if (function.end_lineno or 0) - function.lineno >= LINES_PER_FUNCTION
    ]

    assert [] == long
    assert [] == [
        p.name for p in SOURCES if len(p.read_text("utf-8").splitlines()) > LINES_PER_MODULE
    ]


def test_the_readme_names_every_part_and_every_file():
    """Ours: who looks for something finds it there."""
    text = (BENCH / "README.md").read_text(encoding="utf-8")
    parts = [path.stem for path in (BENCH / "parts").iterdir() if not path.name.startswith("_")]

    assert [] == [path.name for path in BENCH.glob("*.py") if f"`{path.name}`" not in text]
    assert [] == [part for part in parts if f"| `{part}` |" not in text]
