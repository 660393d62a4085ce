"""Times a newcomer's path: from a bare machine to a tool that answers as Claude Code starts it.

``python tools/newcomer.py``: a new home without caches, an environment, the installation from this
clone, README's first server, ``isthmus install`` into Claude Code's configuration, and then the
command of that configuration, started in another folder with little of an environment and asked
as Claude Code asks. Prints the seconds of each step; 1 where the whole takes more than two minutes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 120
STEP_TIMEOUT_S = 600
FIRST_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
CLIENT = {"name": "claude-code", "version": "2.0.0"}
MESSAGES = (
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": {}},
            "clientInfo": CLIENT,
        },
    },
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/list"},
    {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 2, "b": 3}}},
)


@contextmanager
def time_step(name: str, taken: dict[str, float]) -> Iterator[None]:
    """Measure what is done inside, in seconds, and print it."""
    began = time.monotonic()
    yield
    taken[name] = time.monotonic() - began
    print(f"{name:58} {taken[name]:6.1f} s", flush=True)


def run(*words: str, cwd: Path, environment: dict[str, str]) -> str:
    """Run a command with nothing but an environment; what it prints.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(  # noqa: S603 - what README and the guide tell a newcomer to run
        words,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}")
    return done.stdout


def copy_clone(target: Path) -> None:
    """The files of the last commit, as a clone has them."""
    target.mkdir()
    packed = target / "commit.tar"
    subprocess.run(["git", "archive", "-o", packed, "HEAD"], cwd=ROOT, check=True)  # noqa: S603, S607 - git
    shutil.unpack_archive(packed, target, filter="data")
    packed.unlink()


def ask_server(entry: dict[str, object], cwd: Path, environment: dict[str, str]) -> str:
    """Start the command of a configuration's entry as a client does: the text that the tool gives."""
    own, words = entry.get("env", {}), entry["args"]
    assert isinstance(own, dict)  # noqa: S101 - for mypy
    assert isinstance(words, list)  # noqa: S101 - for mypy
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in MESSAGES)
    with subprocess.Popen(  # noqa: S603 - the entry that isthmus wrote
        [str(entry["command"]), *words],
        cwd=cwd,
        env={**environment, **own},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None  # noqa: S101 - for mypy
        assert process.stdout is not None  # noqa: S101 - for mypy
        process.stdin.write(lines)
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                process.stdin.close()
                return str(answer["result"]["content"][0]["text"])
    raise SystemExit("the server ended without an answer")


def main() -> int:
    """Go the path once."""
    taken: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        home, project = Path(name, "home"), Path(name, "project")
        clone, venv = home / "isthmus", home / "isthmus" / ".venv"
        for folder in (home, project):
            folder.mkdir()
        copy_clone(clone)
        bare = {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
        # where packages come from, and by which certificates, is the machine's affair
        bare |= {
            key: value
            for key, value in os.environ.items()
            if key.startswith(("PIP_INDEX", "SSL_", "REQUESTS_"))
        }
        program = str(venv / "bin" / "isthmus")
        with time_step("python -m venv .venv", taken):
            run(sys.executable, "-m", "venv", str(venv), cwd=clone, environment=bare)
        with time_step("pip install . (nothing cached)", taken):
            run(str(venv / "bin" / "pip"), "install", ".", cwd=clone, environment=bare)
        found = FIRST_PROGRAM.search((clone / "README.md").read_text("utf-8"))
        assert found is not None  # noqa: S101 - for mypy
        (home / "hello.py").write_text(found[1], encoding="utf-8")
        with time_step("isthmus install hello.py --into claude-code", taken):
            said = run(
                program, "install", "hello.py", "--into", "claude-code", cwd=home, environment=bare
            )
        print("    " + said.strip().replace("\n", "\n    ").replace(name, ""))
        configuration = json.loads((home / ".claude.json").read_text("utf-8"))
        with time_step("the command of ~/.claude.json is asked for 2 + 3", taken):
            answer = ask_server(configuration["mcpServers"]["hello"], project, bare)
    whole = sum(taken.values())
    print(f"{'from a bare machine to a tool that answers':58} {whole:6.1f} s  (limit {LIMIT_S} s)")
    if answer != "5":
        print(f"the tool answers {answer!r}, not 5", file=sys.stderr)
        return 1
    return 1 if whole > LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main())
