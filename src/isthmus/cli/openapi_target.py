"""OpenAPI documents on the command line: a file or a URL with one is served like a Python file."""

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Struct

from isthmus.cli.declarations import Option
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.server.server import Server

ENDINGS = (".json", ".yaml", ".yml")
URL_SCHEMES = ("https://", "http://")
API_VARIABLE = "ISTHMUS_OPENAPI"  # by which processes that are started are told the options
BASE_URL_VARIABLE = "ISTHMUS_BASE_URL"  # for commands that have no --base-url, as inspect
MAX_SNIFFED_BYTES = 64 * 1024
MARKS = (b'"openapi"', b'"swagger"', b"openapi:", b"swagger:")

BaseUrlOption = Annotated[
    str | None,
    Option(metavar="URL", help="Base URL of the API, instead of the one in the OpenAPI document."),
]
IncludeOption = Annotated[
    list[str] | None,
    Option(
        "--include",
        metavar="CHOICE",
        help="Include only these operations: tag:pets, 'GET /pets/*'. Repeatable.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    Option("--exclude", metavar="CHOICE", help="Exclude these operations. Repeatable."),
]
CredentialOption = Annotated[
    list[str] | None,
    Option(
        "--credential",
        metavar="SCHEME=VARIABLE",
        help="Read the credential of a security scheme from this variable. Repeatable.",
    ),
]
LenientOption = Annotated[
    bool, Option("--lenient", help="Leave out operations that cannot become tools.")
]
SearchOption = Annotated[
    str | None,
    Option(
        metavar="auto|always|never",
        help="Offer search tools instead of a list of all tools; auto: above 60 operations.",
    ),
]


class ApiRunOptions(Struct, frozen=True, omit_defaults=True):
    """Options of a server that is made of an OpenAPI document.

    Attributes:
        base_url: where the API is.
        include: choices of operations.
        exclude: the same, of which none is offered.
        credential: ``SCHEME=VARIABLE``.
        lenient: operations that cannot be had are left out.
        search: ``auto``, ``always`` or ``never``.
    """

    base_url: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    credential: tuple[str, ...] = ()
    lenient: bool = False
    search: str | None = None

    @classmethod
    def of(cls, **given: Any) -> "ApiRunOptions":
        """The options of a command line, of which those that are not given are empty."""
        return msgspec.convert({name: value for name, value in given.items() if value}, cls)

    def arguments(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """The arguments for ``Server.from_openapi``.

        Raises:
            UsageError: one of them is none, or a variable is not set.
        """
        found: dict[str, Any] = {"lenient": self.lenient}
        base = self.base_url or environ.get(BASE_URL_VARIABLE)
        if base:
            found["base_url"] = base
        found |= {"include": [*self.include]} if self.include else {}
        found |= {"exclude": [*self.exclude]} if self.exclude else {}
        if self.search is not None:
            known = {"auto": "auto", "always": True, "never": False}
            if self.search not in known:
                raise UsageError(f"--search {self.search}: write auto, always or never")
            found["search"] = known[self.search]
        if self.credential:
            found["credentials"] = dict(_read_credential(one, environ) for one in self.credential)
        return found


def _read_credential(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """A security scheme and its credential, which is never written on a command line."""
    scheme, _, variable = text.partition("=")
    if not scheme or not variable:
        raise UsageError("--credential takes SCHEME=VARIABLE, the name of an environment variable")
    value = environ.get(variable, "")
    if not value:
        raise UsageError(f"--credential {scheme}: the environment variable {variable} is not set")
    return scheme, value


def is_document(text: str) -> bool:
    """Whether a word of the command line is meant to be an OpenAPI document, for ``isthmus run``."""
    return text.startswith(URL_SCHEMES) or text.lower().endswith(ENDINGS)


def is_document_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an OpenAPI document, by its name and how it begins."""
    if not os.fspath(path).lower().endswith(ENDINGS):
        return False
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as elsewhere at start-up
            head = file.read(MAX_SNIFFED_BYTES)
    except OSError:
        return False
    return any(mark in head for mark in MARKS)


def keep_options(file: str, options: ApiRunOptions) -> None:
    """Keep the options for this process and for those that it starts.

    Raises:
        UsageError: there are some, and the file is a Python file.
    """
    if options == ApiRunOptions():
        return
    if not is_document(file):
        first = options.__struct_fields__[
            next(i for i, n in enumerate(options.__struct_fields__) if getattr(options, n))
        ].replace("_", "-")
        raise UsageError(
            f"--{first} goes with an OpenAPI document: a .json or .yaml file, or a URL"
        )
    os.environ[API_VARIABLE] = msgspec.json.encode(options).decode()


def load_document(text: str, environ: Mapping[str, str]) -> "Server":
    """The server of a document.

    Args:
        text: a path or a URL.
        environ: has the options, and the credentials.

    Raises:
        UsageError: the document cannot be had or used.
    """
    from isthmus.server.server import Server

    kept = environ.get(API_VARIABLE)
    options = msgspec.json.decode(kept, type=ApiRunOptions) if kept else ApiRunOptions()
    given = options.arguments(environ)
    if not text.startswith(URL_SCHEMES):
        if not os.path.isfile(text):  # noqa: PTH113 - as elsewhere at start-up
            raise UsageError(f"there is no file {text}")
        from pathlib import Path

        return Server.from_openapi(Path(text), **given)
    return Server.from_openapi(fetch_document(text), document_url=text, **given)


def fetch_document(url: str) -> bytes:
    """The bytes of a document at a URL that a person typed: of that origin, without redirects.

    Raises:
        UsageError: there is none.
    """
    from isthmus.auth.net.network import Network, NetworkFailed, NetworkRefused, desktop
    from isthmus.auth.net.urls import display_url
    from isthmus.openapi.document import MAX_DOCUMENT_BYTES

    async def fetch() -> bytes:
        network = Network(desktop(url), keep=False, total=60.0)
        answer = await network.fetch("GET", url, limit=MAX_DOCUMENT_BYTES)
        if answer.status != 200:
            raise UsageError(
                f"{display_url(url)} answered with HTTP status {answer.status}, and no document"
            )
        return answer.body

    try:
        return asyncio.run(fetch())
    except (ValueError, NetworkFailed, NetworkRefused) as error:
        raise UsageError(str(error)) from None
