"""Blocks of code in Markdown pages, and how each kind of them is run.

A block's info string says what it is. ``python`` is a whole program: it is run as a file of its own,
and what a ``print(…)  # this`` prints must be what its comment says, in any order. A block that
begins with ``# examples/NAME.py`` is an excerpt: it must stand in that file, which has tests of its
own. ``console`` has lines ``$ command``, run in ``examples/``, each followed by what it prints; a
line ``...`` there stands for any lines. ``text`` and ``json`` are shown and not run.
"""

import asyncio
import builtins
import contextlib
import inspect
import io
import itertools
import os
import re
import subprocess
import symtable
import sys
import types
import unittest
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
# "py" is a program for another library: it is shown, and not run
KINDS = {"python", "py", "console", "text", "json", "nginx", "haproxy", "yaml", "ini", "dockerfile"}
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISED = re.compile(r"^[ \t]*print\(.*\)  # (.*)$", re.MULTILINE)
EXCERPT = re.compile(r"# examples/(\S+\.py)\n")
SECONDS = 60


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        page: the file it is in.
        line: of its first line of code, counted from 1.
        info: what stands behind the fence.
        code: what stands in it.
    """

    page: Path
    line: int
    info: str
    code: str

    @property
    def name(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def list_pages():
    """Every page of documentation, with those that stand elsewhere."""
    return [
        ROOT / "README.md",
        ROOT / "src/isthmus/core/README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def list_blocks(page, kind=None):
    """The blocks of a page, of one kind or all."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(page, text.count("\n", 0, m.start("code")) + 1, m["info"], m["code"])
        for m in FENCE.finditer(text)
    ]
    return [block for block in found if kind in (None, block.info)]


def find_excerpt(block):
    """The file of ``examples/`` the block is taken from, and the part of it; None for its own."""
    taken = EXCERPT.match(block.code)
    return None if taken is None else (EXAMPLES / taken[1], block.code[taken.end() :].strip())


def is_whole(block):
    """Whether a block is a file that Python can run: no ``await`` outside, no missing name."""
    try:
        table = symtable.symtable(block.code, str(block.page), "exec")
        compile(block.code, str(block.page), "exec")
    except SyntaxError:
        return False
    defined = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    return not list_globals(table) - defined - {*dir(builtins), "__file__", "__name__"}


def list_globals(table):
    """The global names that a symbol table and those within it refer to."""
    here = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_global() or (table.get_type() == "module" and symbol.is_referenced())
    }
    return here.union(*map(list_globals, table.get_children()))


def run_program(block):
    """Run one block as a file of its own, and hold what it prints against its comments.

    A block that calls ``asyncio.run`` is run as the main program; of others only the module.
    """
    name = "__main__" if "asyncio.run(" in block.code else f"docs_{block.page.stem}"
    module = types.ModuleType(name.replace("-", "_"))
    known = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    source = "\n" * (block.line - 1) + block.code
    code = compile(source, str(block.page), "exec", dont_inherit=True)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, module.__dict__)  # noqa: S102 - our own documentation
            for test in [name for name in vars(module) if name.startswith("test_")]:
                asyncio.run(run_test(getattr(module, test)))
    finally:
        del sys.modules[module.__name__]
        if known is not None:
            sys.modules[module.__name__] = known
    check_output(block, out.getvalue())


async def run_test(test):
    """Run a test that a page shows, once for each case that pytest would not skip.

    One that has fixtures is run by pytest, in tests/testing/plugin/test_page.py.
    """
    marks = [m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
    if not {mark.args[0] for mark in marks} >= inspect.signature(test).parameters.keys():
        return
    axes = [
        [
            {mark.args[0]: getattr(case, "values", (case,))[0]}
            for case in mark.args[1]
            if not getattr(case, "marks", ())
        ]
        for mark in marks
    ]
    for parts in itertools.product(*axes):
        with contextlib.suppress(unittest.SkipTest):  # what a revision does not have
            await test(**{name: value for part in parts for name, value in part.items()})


def check_output(block, output):
    """Hold what a block has printed against its comments."""
    promised = PROMISED.findall(block.code)
    printed = output.splitlines()
    assert not promised or sorted(promised) == sorted(printed), f"{block.name}: {printed}"


def list_commands(block):
    """The commands of a console block, each with the lines it is said to print."""
    found = []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run_command(command):
    """The output of a command, both streams together, as a terminal shows them."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(  # noqa: S602 - our own documentation
        command,
        shell=True,
        check=False,
        cwd=EXAMPLES,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        text=True,
    )
    return done.stdout


def is_same_output(shown, printed):
    """Whether the lines shown are those printed, where ``...`` stands for any."""
    parts = [re.escape(line.rstrip()) + "\n" for line in shown]
    pattern = "".join("(?:.*\n)*?" if line == r"\.\.\." + "\n" else line for line in parts)
    lines = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    return re.fullmatch(pattern, lines) is not None
