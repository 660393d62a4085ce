"""``isthmus auth``: the commands about authorization."""

import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.options import AsJson, ClientId, OpenBrowser

app = CommandSet(
    name="auth",
    help="Run an authorization server; manage users and clients.",
    no_args_is_help=True,
)

Config: TypeAlias = Annotated[
    str | None,
    Option(metavar="FILE", help="TOML file with settings; default isthmus-auth.toml if it exists."),
]
Store: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="Database of clients, grants and keys.")
]
Users: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="Database of users and passwords.")
]
Several: TypeAlias = list[str] | None


@app.command()
def serve(
    *,
    issuer: Annotated[
        str | None, Option(metavar="URL", help="Public URL of the authorization server.")
    ] = None,
    resource: Annotated[
        Several,
        Option(metavar="URL", help="URL of an MCP server that accepts the tokens; repeatable."),
    ] = None,
    scope: Annotated[
        Several,
        Option(metavar="NAME=TEXT", help="Scope and its description for users; repeatable."),
    ] = None,
    listen: Annotated[str | None, Option(metavar="HOST:PORT")] = None,
    config: Config = None,
    store: Store = None,
    users: Users = None,
) -> None:
    """Run an authorization server. The key of its store is in ISTHMUS_AUTH_KEY."""

    def work() -> Exit:
        from isthmus.cli.commands.auth.config import load_auth_config, parse_scope_texts
        from isthmus.cli.commands.auth.serve import run_authorization_server as run

        return run(
            load_auth_config(
                config,
                issuer=issuer,
                resources=resource,
                scopes=parse_scope_texts(scope or ()),
                listen=listen,
                store=store,
                users=users,
            )
        )

    finish(work)


@app.command("add-user")
def add_user(
    account: Annotated[str, Argument(metavar="ACCOUNT", show_default=False)],
    *,
    name: Annotated[str, Option(metavar="NAME", help="Display name of the user.")] = "",
    replace: Annotated[
        bool, Option("--replace", help="Replace the password, and enable a disabled user.")
    ] = False,
    config: Config = None,
    users: Users = None,
) -> None:
    """Add a user. The password is read from the terminal or standard input, never from an option."""

    def work() -> Exit:
        from isthmus.cli.commands.auth.accounts import add_user as add
        from isthmus.cli.commands.auth.config import load_auth_config

        return add(load_auth_config(config, users=users), account, name, replace=replace)

    finish(work)


@app.command("add-client")
def add_client(
    client_id: Annotated[str, Argument(metavar="CLIENT_ID", show_default=False)],
    *,
    name: Annotated[str, Option(metavar="NAME", help="Name shown to users at consent.")] = "",
    redirect_uri: Annotated[
        Several, Option(metavar="URI", help="Redirect URI for authorization codes; repeatable.")
    ] = None,
    grant: Annotated[
        Several,
        Option(metavar="TYPE", help="authorization_code, refresh_token, client_credentials."),
    ] = None,
    auth_method: Annotated[
        str | None,
        Option(
            metavar="METHOD",
            help="none, client_secret_basic, client_secret_post or private_key_jwt.",
        ),
    ] = None,
    scope: Annotated[
        Several, Option(metavar="NAME", help="Scope that the client may request; all by default.")
    ] = None,
    jwks: Annotated[
        str | None, Option(metavar="FILE", help="Public keys of the client, for private_key_jwt.")
    ] = None,
    introspects: Annotated[
        bool, Option("--introspects", help="Allow introspection of tokens of other clients.")
    ] = False,
    replace: Annotated[bool, Option("--replace", help="Replace an existing client.")] = False,
    as_json: AsJson = False,
    config: Config = None,
    store: Store = None,
) -> None:
    """Add a client. A secret is generated if the client needs one, and printed only once."""

    def work() -> Exit:
        from isthmus.cli.commands.auth.accounts import ClientOptions
        from isthmus.cli.commands.auth.accounts import add_client as add
        from isthmus.cli.commands.auth.config import load_auth_config

        words = ClientOptions(
            client_id, name, redirect_uri or (), grant or (), auth_method, scope, jwks, introspects
        )
        return add(load_auth_config(config, store=store), words, replace=replace, as_json=as_json)

    finish(work)


@app.command("list")
def list_(
    what: Annotated[Several, Argument(metavar="[clients|users|grants]", show_default=False)] = None,
    *,
    as_json: AsJson = False,
    config: Config = None,
    store: Store = None,
    users: Users = None,
) -> None:
    """List clients, users and grants, or one of these."""

    def work() -> Exit:
        from isthmus.cli.commands.auth.config import load_auth_config
        from isthmus.cli.commands.auth.records import print_records

        return print_records(
            load_auth_config(config, store=store, users=users), what or (), as_json=as_json
        )

    finish(work)


@app.command()
def revoke(
    kind: Annotated[str, Argument(metavar="grant|client|user", show_default=False)],
    name: Annotated[str, Argument(metavar="ID", show_default=False)],
    *,
    config: Config = None,
    store: Store = None,
    users: Users = None,
) -> None:
    """Revoke a grant, delete a client, or disable a user. All their tokens end."""

    def work() -> Exit:
        from isthmus.cli.commands.auth.config import load_auth_config
        from isthmus.cli.commands.auth.records import revoke_record as end

        return end(load_auth_config(config, store=store, users=users), kind, name)

    finish(work)


@app.command("rotate-keys")
def rotate_keys(
    *,
    as_json: AsJson = False,
    config: Config = None,
    store: Store = None,
) -> None:
    """Rotate the signing key. Tokens signed with the previous key stay valid until they expire."""

    def work() -> Exit:
        from isthmus.cli.commands.auth.config import load_auth_config
        from isthmus.cli.commands.auth.records import rotate_signing_keys as rotate

        return rotate(load_auth_config(config, store=store), as_json=as_json)

    finish(work)


@app.command()
def doctor(
    target: Annotated[str, Argument(metavar="TARGET", show_default=False)],
    *,
    login: Annotated[bool, Option("--login", help="Log in, and test the token.")] = False,
    token_env: Annotated[
        str | None, Option(metavar="NAME", help="Test the token in this environment variable.")
    ] = None,
    scope: Annotated[
        Several, Option(metavar="NAME", help="Scope to request at login; repeatable.")
    ] = None,
    client_id: ClientId = None,
    browser: OpenBrowser = True,
    as_json: AsJson = False,
) -> None:
    """Find out at which step a login fails, and why."""

    def work() -> Coroutine[Any, Any, Exit]:
        from isthmus.cli.commands.auth.doctor import DoctorOptions
        from isthmus.cli.commands.auth.doctor import run_doctor as examine
        from isthmus.cli.commands.login import LoginOptions
        from isthmus.cli.targets import read_target

        logging_in = LoginOptions(scope or (), client_id, browser=browser) if login else None
        options = DoctorOptions(logging_in, token_env, client_id is not None, as_json)
        where = read_target(target, (), Path.cwd(), os.environ)
        return examine(where, options, os.environ)

    finish(work)
