"""Options that several commands declare alike."""

from typing import Annotated, Literal, TypeAlias

from isthmus.cli.declarations import Option

AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print JSON for a program.")]
StateFolder: TypeAlias = Annotated[
    str | None,
    Option(metavar="FOLDER", help="The host's state; the user's own host by default."),
]

# of commands that talk to a server
RevisionOption: TypeAlias = Annotated[
    str | None, Option(help="Speak this revision, for example 2025-06-18.")
]
Timeout: TypeAlias = Annotated[
    float | None,
    Option(help="Time limit in seconds, for connecting and for each call.", min=0.001),
]
EraOption: TypeAlias = Annotated[
    Literal["auto", "modern", "legacy"] | None,
    Option("--era", help="Open by initialize (legacy) or server/discover (modern) alone."),
]
TokenEnv: TypeAlias = Annotated[
    str | None,
    Option(metavar="NAME", help="Send the token in this environment variable."),
]
HeaderWords: TypeAlias = Annotated[
    list[str] | None,
    Option("--header", "-H", metavar="NAME=VALUE", help="Send this header; repeat it."),
]
EnvWords: TypeAlias = Annotated[
    list[str] | None,
    Option("--env", metavar="NAME=VALUE", help="Give a launched server this variable; repeat it."),
]
LogLevelOption: TypeAlias = Annotated[
    Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] | None,
    Option("--log-level", help="Show the server's log from this level on; info by default."),
]

# of commands that apply the rules of the linter
Rules: TypeAlias = Annotated[
    list[str] | None, Option(metavar="RULE", help="A rule or an area, such as tools.")
]
Strict: TypeAlias = Annotated[bool, Option("--strict", help="Warnings count, too.")]

# of commands that log in
ClientId: TypeAlias = Annotated[
    str | None, Option(metavar="ID", help="A client that is registered already.")
]
OpenBrowser: TypeAlias = Annotated[
    bool, Option("--browser/--no-browser", help="Open one, or print the address.")
]
