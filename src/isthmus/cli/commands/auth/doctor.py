"""``isthmus auth doctor``: the way to a token, hop by hop, for a person or a program."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from isthmus.auth.net.network import Network, desktop
from isthmus.auth.tokens.secret import Secret
from isthmus.cli.commands.login import LoginOptions, obtain_tokens, require_http_url
from isthmus.cli.exit_codes import Exit
from isthmus.cli.output import print_json, print_line
from isthmus.cli.targets import CliTarget
from isthmus.errors import UsageError
from isthmus.linter.auth.doctor import AuthDoctor, Hop

if TYPE_CHECKING:
    from isthmus.auth.client.store.records import Tokens


class DoctorOptions(msgspec.Struct, frozen=True):
    """Options of an examination.

    Attributes:
        login: log in and try the token; what the login is to be like, or None.
        token_env: the variable that holds a token to try, or None.
        registered: a client is registered already.
        as_json: print JSON for a program.
    """

    login: LoginOptions | None = None
    token_env: str | None = None
    registered: bool = False
    as_json: bool = False


async def run_doctor(target: CliTarget, options: DoctorOptions, environ: Mapping[str, str]) -> Exit:
    """Walk the way to a token, and print each hop; 1 where it ends before its end."""
    url = require_http_url(target)

    async def login() -> "Tokens | Secret":
        if options.login is None:
            return Secret(environ[options.token_env or ""])
        return await obtain_tokens(target, options.login)

    if options.token_env is not None and not environ.get(options.token_env):
        raise UsageError(f"--token-env {options.token_env}: there is no such variable")
    wanted = options.login is not None or options.token_env is not None
    network = Network(desktop(url))
    try:
        examined = AuthDoctor(
            url, network, login=login if wanted else None, registered=options.registered
        )
        hops = await examined.examine()
    finally:
        await network.close()
    failing = next((hop for hop in hops if hop.verdict == "problem"), None)
    if options.as_json:
        about = {"url": url, "failing": None if failing is None else failing.name}
        print_json({**about, "hops": hops})
    else:
        _print_hops(hops, failing)
    return Exit.OK if failing is None else Exit.TOOL_FAILED


def _print_hops(hops: Sequence[Hop], failing: Hop | None) -> None:
    for hop in hops:
        print_line(f"{hop.verdict:8} {hop.name:18} {hop.url}".rstrip())
        for found in hop.found:
            print_line(f"         - {found}")
        for fault in hop.faults:
            mark = "i" if fault.severity == "note" else "!"
            print_line(f"         {mark} {fault.said}")
            print_line(f"           {fault.clause}")
            print_line(f"           {fault.mend}")
    if failing is None:
        print_line("nothing stops a client")
    else:
        clause = next(fault.clause for fault in failing.faults if fault.severity == "problem")
        print_line(f"a client stops at: {failing.name} ({clause})")
