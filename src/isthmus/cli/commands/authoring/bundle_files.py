"""Files of a bundle: what belongs to a server, and nothing that is secret, made anew or somebody else's."""

import ast
import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from isthmus.core.redaction.texts import TEXT_PEM
from isthmus.errors import UsageError

# never in a bundle, whatever else is said
SECRET_FILES = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pypirc", ".npmrc", ".git-credentials",
    "credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json", "*.tfstate*",
)  # fmt: skip
SECRET_FOLDERS = (".git", ".hg", ".svn", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker")
# not of the server: made by tools, or for other purposes; --include says otherwise
USELESS_NAMES = (
    ".*", "__pycache__", "*.py[cod]", "venv", "env", "node_modules", "dist", "build", "*.egg-info", "htmlcov",
    "*.log", "*.mcpb", "*.whl", "Thumbs.db", "tests", "test", "docs", "*.tmp", "*.swp", "*~",
)  # fmt: skip
IGNORE_FILES = (".gitignore", ".mcpbignore")
OWN_NAMES = frozenset({"manifest.json", "isthmus_bundle.py", "server.json"})  # at the bundle's root
MAX_FILES = 5_000
MAX_BUNDLE_BYTES = 200 * 1024 * 1024


def collect_files(root: Path, file: Path, include: Sequence[str], *, whole: bool) -> list[str]:
    """Collect the files of a bundle, as paths below its root.

    Args:
        root: the folder that becomes the bundle.
        file: the server's.
        include: files and folders that are named, in spite of what is left out as useless.
        whole: the folder is a project, and belongs to the server; otherwise the file and the
            modules beside it that it imports do.

    Raises:
        UsageError: one is secret, a link, or outside of the root; or there are too many.
    """
    found = {file.relative_to(root).as_posix()}
    if whole:
        found.update(_walk(root, root, []))
    else:
        found.update(_find_local_modules(root, file))
    for word in include:
        found.update(_include(root, Path(os.path.abspath(word))))  # noqa: PTH100 - links stay links
    found -= OWN_NAMES
    for name in sorted(found):
        _check_file(root, name)
    if len(found) > MAX_FILES:
        raise UsageError(
            f"{root} has {len(found)} files, of which a bundle has at most {MAX_FILES}: leave some out "
            "by .mcpbignore"
        )
    size = sum((root / name).stat().st_size for name in found)
    if size > MAX_BUNDLE_BYTES:
        raise UsageError(f"{size} bytes are too many for a bundle: leave some out by .mcpbignore")
    return sorted(found)


def _walk(root: Path, folder: Path, rules: list["IgnoreRule"]) -> Iterator[str]:
    """Walk a project, without what its ignore files name; links are not followed."""
    rules = [*rules, *(rule for name in IGNORE_FILES for rule in read_ignore_file(folder / name))]
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        left_out = _matches(entry.name, (*SECRET_FILES, *SECRET_FOLDERS, *USELESS_NAMES))
        if left_out or entry.is_symlink() or is_ignored(path, is_folder, rules):
            continue
        if is_folder:
            if not (path / "pyvenv.cfg").exists():
                yield from _walk(root, path, rules)
        elif entry.is_file(follow_symlinks=False):
            yield path.relative_to(root).as_posix()


def _include(root: Path, path: Path) -> Iterator[str]:
    """The files of a path that is named, with all that is in it but secrets.

    Raises:
        UsageError: it is not there, outside of the root, or secret.
    """
    if not path.is_relative_to(root):
        raise UsageError(f"--include {path}: it is outside of {root}, which becomes the bundle")
    if not path.is_dir():
        yield path.relative_to(root).as_posix()
        return
    for folder, folders, files in os.walk(path):
        folders[:] = [
            name for name in folders if not _matches(name, (*SECRET_FOLDERS, "__pycache__"))
        ]
        for name in files:
            if not _matches(name, SECRET_FILES):
                yield Path(folder, name).relative_to(root).as_posix()


def _check_file(root: Path, name: str) -> None:
    """Check that a file may be in a bundle.

    Raises:
        UsageError: it is secret, a link, or no file.
    """
    path, parts = root / name, PurePosixPath(name).parts
    if _matches(parts[-1], SECRET_FILES) or any(
        _matches(one, SECRET_FOLDERS) for one in parts[:-1]
    ):
        raise UsageError(f"{path} has the name of a file of secrets, and cannot be bundled")
    try:
        if path.resolve() != root.resolve() / name:
            raise UsageError(f"{path} is a link, or in a linked folder: copy its target")
        if not stat.S_ISREG(path.lstat().st_mode):
            raise UsageError(f"{path} is no file")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if b"PRIVATE KEY-----" in data and TEXT_PEM.search(data.decode("utf-8", errors="replace")):
        raise UsageError(f"{path} contains a private key, and cannot be bundled")


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


class IgnoreRule:
    """One line of an ignore file: a pattern, and the folder that it counts in.

    Args:
        folder: where the file stands.
        line: the pattern, as Git reads it.
    """

    def __init__(self, folder: Path, line: str) -> None:
        self.folder = folder
        self.is_kept = line.startswith("!")
        pattern = line.removeprefix("!")
        self.folders_only = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        anchored = "/" in pattern
        body = _translate_glob(pattern.lstrip("/"))
        self.regex = re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)

    def fits(self, path: Path, is_folder: bool) -> bool:
        """Whether a path is meant."""
        if self.folders_only and not is_folder:
            return False
        return self.regex.fullmatch(path.relative_to(self.folder).as_posix()) is not None


def _translate_glob(pattern: str) -> str:
    """A pattern of an ignore file as a regular expression."""
    found = ""
    for part in re.split(r"(/\*\*/|^\*\*/|/\*\*$|\*|\?|\[[^\]/]+\])", pattern):
        if part in {"/**/", "**/"}:
            found += "/(?:.*/)?" if part.startswith("/") else "(?:.*/)?"
        elif part == "/**":
            found += "/.*"
        elif part == "*":
            found += "[^/]*"
        elif part == "?":
            found += "[^/]"
        elif part.startswith("[") and part.endswith("]"):
            inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            found += f"[{'^' + inner[1:] if inner.startswith('!') else inner}]"
        else:
            found += re.escape(part.replace("\\", ""))
    return found


def read_ignore_file(path: Path) -> list[IgnoreRule]:
    """The rules of an ignore file; none where there is no such file."""
    if not path.is_file() or path.is_symlink():
        return []
    lines = path.read_text("utf-8", errors="replace").splitlines()
    texts = (line.rstrip() for line in lines)
    rules = []
    for text in texts:
        if text and not text.startswith("#"):
            try:
                rules.append(IgnoreRule(path.parent, text))
            except re.error:
                raise UsageError(f"{path}: {text!r} is no pattern") from None
    return rules


def is_ignored(path: Path, is_folder: bool, rules: Sequence[IgnoreRule]) -> bool:
    """Whether rules leave a path out; the last one that fits decides."""
    fitting = [rule for rule in rules if rule.fits(path, is_folder)]
    return bool(fitting) and not fitting[-1].is_kept


def _find_local_modules(root: Path, file: Path) -> set[str]:
    """The modules beside a file that it imports, and those that they import."""
    found: set[str] = set()
    waiting = [file]
    while waiting:
        for name in list_imports(waiting.pop()):
            for path in (root / f"{name}.py", root / name / "__init__.py"):
                key = path.relative_to(root).as_posix()
                if not path.is_file() or key in found:
                    continue
                more = [path] if path.name != "__init__.py" else [*path.parent.rglob("*.py")]
                found.update(one.relative_to(root).as_posix() for one in more)
                waiting += more
    return found


def list_imports(file: Path) -> set[str]:
    """The names of the top-level modules that a file imports; none of a file that is no Python.

    Raises:
        UsageError: it is no Python that can be read.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{file} is no Python: {error}") from None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
