"""``auth doctor``: the way to a token, hop by hop, as a person or a program reads it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from isthmus.auth.network import Network, desktop
from isthmus.auth.secret import Secret
from isthmus.cli.exits import Exit
from isthmus.cli.login import Login, tokens_of, url_of
from isthmus.cli.output import print_json, print_line
from isthmus.cli.targets import Target
from isthmus.errors import UsageError
from isthmus.linter.auth_doctor import AuthDoctor, Hop

if TYPE_CHECKING:
    from isthmus.auth.client.tokens import Tokens

__all__ = ["Wishes", "doctor"]


class Wishes(msgspec.Struct, frozen=True):
    """What the command line says about an examination.

    Attributes:
        login: log in and try the token; what the login is to be like, or None.
        token_env: the variable that holds a token to try, or None.
        registered: a client is registered already.
        as_json: print JSON for a program.
    """

    login: Login | None = None
    token_env: str | None = None
    registered: bool = False
    as_json: bool = False


async def doctor(target: Target, wishes: Wishes, environ: Mapping[str, str]) -> Exit:
    """Walk the way to a token, and print each hop; 1 where it ends before its end."""
    url = url_of(target)

    async def login() -> "Tokens | Secret":
        if wishes.login is None:
            return Secret(environ[wishes.token_env or ""])
        return await tokens_of(target, wishes.login)

    if wishes.token_env is not None and not environ.get(wishes.token_env):
        raise UsageError(f"--token-env {wishes.token_env}: there is no such variable")
    wanted = wishes.login is not None or wishes.token_env is not None
    network = Network(desktop(url))
    try:
        examined = AuthDoctor(
            url, network, login=login if wanted else None, registered=wishes.registered
        )
        hops = await examined.examine()
    finally:
        await network.close()
    failing = next((hop for hop in hops if hop.verdict == "problem"), None)
    if wishes.as_json:
        about = {"url": url, "failing": None if failing is None else failing.name}
        print_json({**about, "hops": hops})
    else:
        _print(hops, failing)
    return Exit.OK if failing is None else Exit.TOOL_FAILED


def _print(hops: Sequence[Hop], failing: Hop | None) -> None:
    for hop in hops:
        print_line(f"{hop.verdict:8} {hop.name:18} {hop.url}".rstrip())
        for found in hop.found:
            print_line(f"         - {found}")
        for fault in hop.faults:
            print_line(f"         ! {fault.said}")
            print_line(f"           {fault.clause}")
            print_line(f"           {fault.mend}")
    if failing is None:
        print_line("nothing stops a client")
    else:
        clause = next(fault.clause for fault in failing.faults if fault.severity == "problem")
        print_line(f"a client stops at: {failing.name} ({clause})")
