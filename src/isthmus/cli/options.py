"""Options that several commands declare alike."""

from typing import Annotated, Literal, TypeAlias

from isthmus.cli.declarations import Option

AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print JSON for a program.")]
StateFolder: TypeAlias = Annotated[
    str | None,
    Option(metavar="FOLDER", help="State folder of the host; the user's by default."),
]
ConfigFiles: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--config",
        metavar="FILE",
        help="Configuration, instead of the user's and ./mcp.json; repeatable.",
    ),
]

# of commands that talk to a server
RevisionOption: TypeAlias = Annotated[
    str | None,
    Option(metavar="REVISION", help="Use this protocol revision, for example 2025-06-18."),
]
Timeout: TypeAlias = Annotated[
    float | None,
    Option(
        metavar="SECONDS",
        help="Time limit in seconds, for connecting and for each call.",
        min=0.001,
    ),
]
EraOption: TypeAlias = Annotated[
    Literal["auto", "modern", "legacy"] | None,
    Option("--era", help="Open with initialize only (legacy) or server/discover only (modern)."),
]
TokenEnv: TypeAlias = Annotated[
    str | None,
    Option(metavar="NAME", help="Send the token in this environment variable."),
]
HeaderWords: TypeAlias = Annotated[
    list[str] | None,
    Option("--header", "-H", metavar="NAME=VALUE", help="Send this header; repeatable."),
]
EnvWords: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--env",
        metavar="NAME=VALUE",
        help="Set an environment variable of a launched server; repeatable.",
    ),
]
LogLevelOption: TypeAlias = Annotated[
    Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] | None,
    Option("--log-level", help="Lowest level of the server's log to show; info by default."),
]

# of commands that apply the rules of the linter
Rules: TypeAlias = Annotated[
    list[str] | None, Option(metavar="RULE", help="A rule or an area, such as tools.")
]
Strict: TypeAlias = Annotated[bool, Option("--strict", help="Treat warnings as errors.")]

# of commands that log in
ClientId: TypeAlias = Annotated[str | None, Option(metavar="ID", help="Id of a registered client.")]
OpenBrowser: TypeAlias = Annotated[
    bool, Option("--browser/--no-browser", help="Open a browser, or print the URL.")
]
