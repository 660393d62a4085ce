"""Makes a release: builds it, checks it, installs it, and tags the commit. A person uploads it.

``python tools/release.py [--dry-run]`` releases the version that pyproject.toml has. With
``--dry-run`` everything happens but the tag. What is built is left in dist/, with SHA256SUMS.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from distributions import ROOT, build_twice, digest_file, run_command

DIST = ROOT / "dist"


def read_project() -> dict[str, object]:
    """The ``[project]`` table of pyproject.toml."""
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    return project


def normalize_url(url: str) -> str:
    """The address of a repository as host and path, however git was told of it."""
    return re.sub(r"^(https://|ssh://)?(git@)?|\.git/?$|/$", "", url).replace(":", "/")


def find_obstacles(version: str, repository: str) -> list[str]:
    """Reasons why the commit that is checked out cannot be released as a version."""
    found = []
    if run_command("git", "status", "--porcelain"):
        found.append("there are changes that are not committed: commit or stash them")
    if (branch := run_command("git", "branch", "--show-current")) != "main":
        found.append(f"the branch is {branch or 'none'}: releases are made from main")
    if f"v{version}" in run_command("git", "tag", "--list").split():
        found.append(f"the tag v{version} exists: raise version in pyproject.toml")
    source = (ROOT / "src" / "isthmus" / "__init__.py").read_text("utf-8")
    if f'__version__ = "{version}"' not in source:
        found.append(f"src/isthmus/__init__.py has another __version__ than {version}")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        found.append(f'CHANGELOG.md lacks "## {version} - YYYY-MM-DD": name the unreleased part so')
    origin = run_command("git", "config", "--default", "", "--get", "remote.origin.url")
    if normalize_url(origin) != normalize_url(repository):
        found.append(
            f"origin is not {repository}, which the links of the release lead to: "
            "push there first, or change project.urls and the links in pyproject.toml"
        )
    return found


def try_wheel(wheel: Path) -> None:
    """Install a wheel with every extra in an environment of its own, and call a tool with it.

    Raises:
        SystemExit: it cannot be installed, or does not answer.
    """
    with tempfile.TemporaryDirectory() as folder:
        run_command(sys.executable, "-m", "venv", folder)
        python = str(Path(folder, "bin", "python"))
        run_command(python, "-m", "pip", "install", "--quiet", f"{wheel}[all]")
        hello = Path(folder, "hello.py")
        shutil.copy(ROOT / "examples" / "hello.py", hello)
        command = (python, "-m", "isthmus", "call", str(hello), "add", "a=2", "b=3")
        answer = run_command(*command, cwd=Path(folder))
        if answer.split() != ["5"]:
            raise SystemExit(f"{' '.join(command)} answers {answer!r}, not 5")


def main() -> int:
    """Make the release, or say everything that is in its way."""
    rehearsal = "--dry-run" in sys.argv[1:]
    project = read_project()
    version, urls = str(project["version"]), project["urls"]
    assert isinstance(urls, dict)  # noqa: S101 - for mypy
    obstacles = find_obstacles(version, str(urls["Repository"]))
    for obstacle in obstacles:
        print(f"{'later' if rehearsal else 'no release'}: {obstacle}", file=sys.stderr)
    if obstacles and not rehearsal:
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    distributions, faults = build_twice(DIST, isolated=True)
    if faults:
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    run_command(sys.executable, "-m", "twine", "check", "--strict", *map(str, distributions))
    wheel = next(path for path in distributions if path.suffix == ".whl")
    try_wheel(wheel)
    sums = [f"{digest_file(path)}  {path.name}\n" for path in distributions]
    (DIST / "SHA256SUMS").write_text("".join(sums), encoding="ascii")
    print("".join(sums), end="")
    if rehearsal:
        print(f"v{version} is not tagged: this was a rehearsal")
        return 0
    subprocess.run(  # noqa: S603 - git, which may sign
        ["git", "tag", "--annotate", f"v{version}", "--message", f"isthmus {version}"],  # noqa: S607
        cwd=ROOT,
        check=True,
    )
    print(
        f"v{version} is tagged. To publish it: git push origin v{version}; twine upload dist/*.whl dist/*.tar.gz"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
