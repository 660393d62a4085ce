"""Translation of other programs' entries: restrictions, tokens, timeouts and variables in isthmus's words.

Each program that launches servers has words of its own for the same things. What restricts a
server, authorizes it or limits its time is taken over or is an error, since what is passed over
silently is a restriction that is gone.
"""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from isthmus.host.config.forms import BadMember, is_number
from isthmus.host.config.layouts import RawServer
from isthmus.host.config.syntax import MemberKey

# members that mean the same everywhere
COMMON_MEMBERS = frozenset(
    {"command", "args", "env", "envFile", "cwd", "type", "transport", "headers", "host"}
    | {"url", "serverUrl", "httpUrl"}
)

MEMBER_SYNONYMS: Mapping[str, str] = {
    "cmd": "command", "envs": "env", "uri": "url",  # Goose
    "environment": "env",  # opencode
    "http_headers": "headers",  # Codex
}  # fmt: skip

# lists of the only tools that are to be there
ONLY_TOOLS_MEMBERS = ("includeTools", "enabledTools", "enabled_tools", "available_tools", "allowedTools", "allowed_tools")  # fmt: skip
EXCLUDED_TOOLS_MEMBERS = ("excludeTools", "excludedTools", "disabledTools", "disabled_tools", "excluded_tools", "deniedTools")  # fmt: skip

# members that switch a server off, and the value that does
OFF_SWITCHES = {
    "disabled": True,
    "isDisabled": True,
    "enabled": False,
    "isActive": False,
    "active": False,
}

# they sound as if they restricted something and do not; consent is asked for here
HARMLESS_MEMBERS = frozenset(
    {"autoApprove", "alwaysAllow", "autoApproveTools", "supports_parallel_tool_calls"}
)

# names that sound as if they restricted, authorized or timed something
RESTRICTING_NAME = re.compile(
    r"(?i)tool|allow|den(?:y|ied)|block|exclu|restrict|permi|approv|disab|enab|read_?only|auth|token"
    r"|secret|credential|header|read_bearer_variable|cert|tls|ssl|verif|time_?out|deadline|sandbox|scope|passw"
    r"|api_?key|proxy|limit|expire|activ"
)

PROGRAMS_IN_MILLISECONDS = frozenset(
    {"gemini", "claude", "kiro", "copilot", "lmstudio", "opencode", "vscode"}
)
PROGRAMS_IN_SECONDS = frozenset({"cline", "roo", "goose", "zed"})
MAX_TIMEOUT_S = 3600  # no program that counts in seconds takes more

# Codex's words for calls without a question; here the policy says so
UNASKED_APPROVALS = frozenset({"auto", "approve"})
SHELL_VARIABLE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
OPENCODE_VARIABLE = re.compile(r"\{(env|file):([^}]*)\}")
CONTINUE_VARIABLE = re.compile(r"\$\{\{\s*(\w+)\.([\w./-]+)\s*\}\}")
BARE_VARIABLE = re.compile(r"\$[A-Z_][A-Z0-9_]*")
TEXT_MEMBERS = (
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "headers",
    "url",
    "serverUrl",
    "httpUrl",
)


class TranslatedEntry(Struct, kw_only=True):
    """An entry in the words of isthmus.

    Attributes:
        value: the entry.
        notes: what the user should know, each with the way to what it is about.
        passed: members that mean nothing here.
    """

    value: dict[str, Any]
    notes: list[tuple[tuple[MemberKey, ...], str]] = []
    passed: list[str] = []


def translate_entry(raw: RawServer) -> TranslatedEntry:
    """Translate an entry into the words of isthmus.

    Raises:
        BadMember: it restricts, authorizes or times something in a way that isthmus does not know.
    """
    if not isinstance(raw.value, dict):
        raise BadMember(raw.keys, 'a server is an object, as in {"command": "…", "args": []}')
    said = raw.value.get("host", {})
    if not isinstance(said, dict):
        raise BadMember((*raw.keys, "host"), "this is an object of options")
    if raw.fault is not None:
        raise BadMember(*raw.fault)
    return _EntryTranslator(raw, said).translate()


class _EntryTranslator:
    """Translates one entry."""

    def __init__(self, raw: RawServer, host: dict[str, Any]) -> None:
        self.keys = raw.keys
        self.raw = raw
        self.members = {k: v for k, v in raw.value.items() if k in COMMON_MEMBERS and k != "host"}
        self.host = host
        self.options: dict[str, Any] = {}
        ignored = host.get("ignore", ())
        self.ignored = frozenset(map(str, ignored if isinstance(ignored, list) else ()))
        self.only_tools: list[list[str]] = []
        self.excluded_tools: list[str] = list(raw.without)
        self.timeouts: dict[str, float] = {}
        self.notes: list[tuple[tuple[MemberKey, ...], str]] = []
        self.passed: list[str] = []

    def translate(self) -> TranslatedEntry:
        """Translate the entry."""
        for name, value in self.raw.value.items():
            if name in MEMBER_SYNONYMS and value is not None:
                self._read_synonym(name, value)
        for name, value in self.raw.value.items():
            if name not in COMMON_MEMBERS and name not in MEMBER_SYNONYMS and value is not None:
                self._read_member(name, value)
        self._translate_command()
        self._translate_type()
        if self.raw.denied:
            self.options["enabled"] = False
        self._merge_tools()
        self._merge_timeouts()
        host = {**self.options, **self.host}
        value = self.members | ({"host": host} if host else {})
        for member in TEXT_MEMBERS:
            if member in value:
                value[member] = self._translate_texts(value[member], (*self.keys, member))
        return TranslatedEntry(value=value, notes=self.notes, passed=self.passed)

    def at(self, name: str) -> tuple[MemberKey, ...]:
        """The way to one member."""
        return (*self.keys, name)

    def _read_synonym(self, name: str, value: Any) -> None:
        ours = MEMBER_SYNONYMS[name]
        if ours in {"env", "headers"}:
            self._add_pairs(name, ours, self._read_object(name, value))
        else:
            self.members.setdefault(ours, value)

    def _add_pairs(self, name: str, part: str, more: Mapping[str, Any]) -> None:
        """Add variables or headers to those that the entry has."""
        have = self.members.get(part) or {}
        if not isinstance(have, dict):
            raise BadMember(
                self.at(part), f'{part} is an object of texts, as in {{"NAME": "value"}}'
            )
        doubled = [key for key in more if key in have and have[key] != more[key]]
        if doubled:
            raise BadMember(self.at(name), f"{part} has {doubled[0]!r} already, with another value")
        self.members[part] = {**have, **more}

    def _read_member(self, name: str, value: Any) -> None:
        """Translate one member of another program."""
        if name in self.ignored or name in HARMLESS_MEMBERS:
            self.passed.append(name)
        elif name in ONLY_TOOLS_MEMBERS:
            names = self._read_names(name, value)
            if names or self.raw.program != "goose":  # an empty list of Goose's means all
                self.only_tools.append(names)
        elif name in EXCLUDED_TOOLS_MEMBERS:
            self.excluded_tools += map(_escape_glob, self._read_names(name, value))
        elif name in OFF_SWITCHES:
            if not isinstance(value, bool):
                raise BadMember(self.at(name), f"{name} is true or false")
            if value is OFF_SWITCHES[name]:
                self.options["enabled"] = False
        elif name in MEMBER_READERS:
            MEMBER_READERS[name](self, name, value)
        elif RESTRICTING_NAME.search(name):
            raise BadMember(
                self.at(name),
                f"isthmus does not know {name!r}, which sounds as if it restricts, authorizes or times "
                "something: say it in the member host (tools, auth, timeouts, sandbox), and write "
                f'"ignore": ["{name}"] there',
            )
        else:
            self.passed.append(name)

    def _read_names(self, name: str, value: Any) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise BadMember(
                self.at(name), f'{name} is a list of names of tools, as in ["read_file"]'
            )
        for one in value:
            if "(" in one:
                raise BadMember(
                    self.at(name), f"{one!r} restricts what a tool is given: write a rule for it"
                )
            if one == "*" and name in ONLY_TOOLS_MEMBERS:
                raise BadMember(
                    self.at(name), f"{name} names tools; without the list there are all of them"
                )
        return list(value)

    def _read_object(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise BadMember(
                self.at(name), f'{name} is an object of texts, as in {{"NAME": "value"}}'
            )
        return value

    def read_tools(self, name: str, value: Any) -> None:
        """Read ``tools``: a list of the Copilot CLI, or a table of Codex with approvals of calls."""
        if isinstance(value, list):
            names = self._read_names(name, value)
            if "*" not in names:
                self.only_tools.append(names)
            return
        for tool, said in self._read_object(name, value).items():
            if said is False:
                self.excluded_tools.append(_escape_glob(tool))
            elif isinstance(said, dict) and said.keys() <= {"approval_mode"}:
                self.read_approval(name, said.get("approval_mode"))
            elif said is not True:
                raise BadMember(
                    self.at(name), f"what it says of {tool!r} restricts it in an unknown way"
                )

    def read_approval(self, name: str, value: Any) -> None:
        """Read how Codex asks before calls; asking more than the policy does is a rule."""
        if value is not None and not (isinstance(value, str) and value in UNASKED_APPROVALS):
            raise BadMember(
                self.at(name),
                f"{value!r} asks before calls: write a rule of your policy for it, and "
                f'"ignore": ["{name}"] in the member host',
            )
        self.passed.append(name)

    def _merge_tools(self) -> None:
        """Merge lists of tools with isthmus's own: what one of them leaves out is left out."""
        if not self.only_tools and not self.excluded_tools:
            return
        said = self.host.get("tools", {})
        if not isinstance(said, dict):
            return  # which is an error that is told elsewhere
        without = [*_list_globs(said.get("exclude")), *self.excluded_tools]
        ours = _list_globs(said.get("include"))
        if self.only_tools:
            names = [
                n for n in self.only_tools[0] if all(n in more for more in self.only_tools[1:])
            ]
            kept = [n for n in names if not ours or any(fnmatchcase(n, glob) for glob in ours)]
            ours = [_escape_name(n) for n in kept]
            without += [] if kept else ["*"]  # a list of nothing, which is not no list
        tools = {**said, "include": ours, "exclude": list(dict.fromkeys(without))}
        self.host = {**self.host, "tools": {k: v for k, v in tools.items() if v}}

    def read_timeout(self, name: str, value: Any) -> None:
        """Read ``timeout`` of a call, whose unit depends on the program."""
        if self._is_timed():
            return
        self._check_positive(name, value)
        program = self.raw.program
        if program not in PROGRAMS_IN_SECONDS | PROGRAMS_IN_MILLISECONDS and value <= MAX_TIMEOUT_S:
            raise BadMember(
                self.at(name),
                f"{value:g} is seconds for Cline, Roo, Goose and Zed, and milliseconds for Claude, Gemini, "
                f'Kiro and others: write "timeouts": {{"call": "{value:g}s"}} in the member host',
            )
        seconds = float(value) if program in PROGRAMS_IN_SECONDS else value / 1000
        if program == "opencode":  # which counts the time until tools are listed
            self.timeouts["connect"] = seconds
        else:
            self.timeouts |= {"call": seconds, "total": seconds}

    def _is_timed(self) -> bool:
        """Whether ``host.timeouts`` says how long a call may take."""
        said = self.host.get("timeouts")
        return isinstance(said, dict) and bool(said.keys() & {"call", "total"})

    def make_timeout_reader(self, ours: tuple[str, ...], unit: float) -> Callable[[str, Any], None]:
        """Make a reader of a timeout in a unit that its name tells."""

        def take(name: str, value: Any) -> None:
            self._check_positive(name, value)
            self.timeouts |= dict.fromkeys(ours, value * unit)

        return take

    def _check_positive(self, name: str, value: Any) -> None:
        if not is_number(value) or value <= 0:
            raise BadMember(self.at(name), f"{name} is a number above 0")

    def _merge_timeouts(self) -> None:
        if self.timeouts:
            said = self.host.get("timeouts", {})
            if isinstance(said, dict):
                self.host = {**self.host, "timeouts": {**self.timeouts, **said}}

    def read_bearer_variable(self, name: str, value: Any) -> None:
        """Read a token in a variable of the environment (Codex)."""
        self._check_variable(name, value)
        self._add_pairs(name, "headers", {"Authorization": f"Bearer ${{{value}}}"})

    def read_env_headers(self, name: str, value: Any) -> None:
        """Read headers whose values are in variables of the environment (Codex)."""
        pairs = self._read_object(name, value)
        for one in pairs.values():
            self._check_variable(name, one)
        self._add_pairs(name, "headers", {k: f"${{{v}}}" for k, v in pairs.items()})

    def read_env_names(self, name: str, value: Any) -> None:
        """Read variables of the environment that are handed on (Codex, Goose)."""
        if not isinstance(value, list):
            raise BadMember(self.at(name), f'{name} is a list of names, as in ["API_KEY"]')
        for one in value:
            word = one.get("name") if isinstance(one, dict) else one
            if isinstance(one, dict) and one.get("source", "local") != "local":
                raise BadMember(self.at(name), f"{word!r} is a variable of another machine's")
            self._check_variable(name, word)
            if word not in (self.members.get("env") or {}):
                self._add_pairs(name, "env", {str(word): f"${{{word}}}"})

    def _check_variable(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII) is None:
            raise BadMember(
                self.at(name), "this names a variable of the environment, as in MY_TOKEN"
            )

    def read_oauth(self, name: str, value: Any) -> None:
        """Read another program's login; isthmus has its own, and ``host.auth``."""
        if "auth" in self.host:
            self.passed.append(name)
        elif value is False or (isinstance(value, dict) and value.get("enabled") is False):
            self.options["auth"] = {"kind": "none"}
        elif value is True or (isinstance(value, dict) and not (value.keys() - {"enabled"})):
            self.passed.append(name)
        else:
            raise BadMember(
                self.at(name),
                "isthmus takes no login from here: log in with isthmus auth login URL (--client-id, --scope), "
                'and write "auth": {"kind": "user-oauth"} in the member host',
            )

    def read_login_member(self, name: str, _value: Any) -> None:
        """Read a part of a login that stands beside the others in an entry."""
        self.read_oauth(name, {name: ...})

    def read_auth_provider(self, name: str, value: Any) -> None:
        """Read ``authProviderType`` of Gemini; its usual value is what isthmus does, too."""
        if value != "dynamic_discovery":
            self.read_oauth(name, value)

    def read_headers_helper(self, name: str, value: Any) -> None:
        """Read a program that writes headers (Claude Code)."""
        if value and "auth" not in self.host:
            raise BadMember(
                self.at(name),
                "isthmus runs no program for headers: write headers with ${NAME} or ${secret:path}, or "
                'host.auth, and "ignore": ["' + name + '"] in the member host',
            )

    def read_executor(self, name: str, value: Any) -> None:
        """Read the machine on which Codex runs the server."""
        if value != "local":
            raise BadMember(
                self.at(name), f"isthmus runs servers on this machine, not in {value!r}"
            )

    def read_sandbox(self, name: str, value: Any) -> None:
        """Read the sandbox of VS Code."""
        entry = self.raw.value
        if name == "sandboxEnabled" and not isinstance(value, bool):
            raise BadMember(self.at(name), f"{name} is true or false")
        if entry.get("sandboxEnabled") is not True or "sandbox" in self.host:
            return  # without the switch the rules are not in force there, either
        said = entry.get("sandbox", {})
        said = said if isinstance(said, dict) else {"filesystem": ()}
        files, network = said.get("filesystem", {}), said.get("network", {})
        if not isinstance(files, dict) or not isinstance(network, dict):
            raise BadMember(self.at("sandbox"), "a sandbox has filesystem and network, two objects")
        unknown = [
            *(f"filesystem.{k}" for k in files if k not in {"allowWrite", "denyRead"}),
            *(f"network.{k}" for k in network if network[k]),
            *(k for k in said if k not in {"filesystem", "network"}),
        ]
        paths = [one for part in files.values() for one in (part if isinstance(part, list) else ())]
        unknown += [str(one) for one in paths if "${" in str(one)]
        if unknown:
            raise BadMember(
                self.at("sandbox"),
                f"isthmus cannot confine by {unknown[0]}: write host.sandbox in its place",
            )
        self.options["sandbox"] = {**files, "network": False}

    def read_request_options(self, name: str, value: Any) -> None:
        """Read ``requestOptions`` of Continue."""
        for key, said in self._read_object(name, value).items():
            if key == "headers":
                self._add_pairs(name, "headers", self._read_object(name, said))
            elif key == "timeout":
                self._check_positive(name, said)
                self.timeouts |= {"call": said / 1000, "total": said / 1000}
            elif not (key == "verifySsl" and said is True):
                raise BadMember(
                    self.at(name), f"isthmus has no {key!r} for the requests of one server"
                )

    def _translate_command(self) -> None:
        """Translate a command that is one list (opencode) or one object (Zed)."""
        command = self.members.get("command")
        if isinstance(command, list) and command and self.raw.program == "opencode":
            self.members["command"] = command[0]
            more = self.members.get("args")
            self.members["args"] = [*command[1:], *(more if isinstance(more, list) else ())]
        elif isinstance(command, dict) and self.raw.program == "zed":
            self.members["command"] = command.get("path")
            for key in ("args", "env"):
                if command.get(key):
                    self.members.setdefault(key, command[key])
        elif self.raw.program == "zed" and command is None and "settings" in self.raw.value:
            raise BadMember(self.keys, "this server is an extension of Zed, which has its command")

    def _translate_type(self) -> None:
        """Translate a type that only one program has."""
        said = self.members.get("type")
        if said == "remote" and self.raw.program == "opencode":
            del self.members["type"]
        elif self.raw.program == "goose" and isinstance(said, str) and said in GOOSE_BUILTIN_TYPES:
            raise BadMember(self.keys, "this is a part of Goose, and no server of its own")

    def _translate_texts(self, value: Any, keys: tuple[MemberKey, ...]) -> Any:
        """Translate the variables of texts."""
        if isinstance(value, dict):
            return {k: self._translate_texts(v, (*keys, k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self._translate_texts(v, (*keys, i)) for i, v in enumerate(value)]
        if not isinstance(value, str) or ("$" not in value and "{" not in value):
            return value
        spelling = VARIABLE_SPELLINGS.get(self.raw.program)
        if spelling is not None:
            pattern, ours = spelling
            return pattern.sub(lambda found: ours(found, keys), value)
        if BARE_VARIABLE.fullmatch(value):
            self.notes.append(
                (
                    keys,
                    f"{value} is handed on as it stands: write ${{{value[1:]}}} for the variable",
                )
            )
        return value


def _convert_shell_variable(match: re.Match[str], _keys: tuple[MemberKey, ...]) -> str:
    return f"${{{match[1]}}}"


def _convert_opencode_variable(match: re.Match[str], keys: tuple[MemberKey, ...]) -> str:
    if match[1] == "file":
        raise BadMember(
            keys, "isthmus fills in no files: keep it as a secret, and write ${secret:path}"
        )
    return f"${{{match[2]}}}"


def _convert_continue_variable(match: re.Match[str], keys: tuple[MemberKey, ...]) -> str:
    if match[1] != "secrets":
        raise BadMember(keys, f"{match[0]} is filled in by Continue alone: write the value itself")
    return f"${{secret:{match[2]}}}"


def _escape_name(name: str) -> str:
    """Make a glob that matches a name and nothing else."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _escape_glob(name: str) -> str:
    """Make a glob for tools that are left out; ``*`` may mean any here, which leaves out more."""
    return re.sub(r"([?\[])", r"[\1]", name)


def _list_globs(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


VariableSpelling = tuple[re.Pattern[str], Callable[[re.Match[str], tuple[MemberKey, ...]], str]]

# of programs that do not spell variables like isthmus
VARIABLE_SPELLINGS: Mapping[str, VariableSpelling] = {
    "gemini": (SHELL_VARIABLE, _convert_shell_variable),
    "kiro": (SHELL_VARIABLE, _convert_shell_variable),
    "opencode": (OPENCODE_VARIABLE, _convert_opencode_variable),
    "continue": (CONTINUE_VARIABLE, _convert_continue_variable),
}

# extensions of Goose that are not servers
GOOSE_BUILTIN_TYPES = frozenset({"builtin", "platform", "frontend", "inline_python"})

# parts of a login that stand beside the other members
LOGIN_MEMBERS = (
    "oauthScopes", "scopes", "oauth_resource",  # Kiro, Codex
    "oauthClientId", "oauthPublicClient", "oauthGrantType",  # Copilot CLI
    "targetAudience", "targetServiceAccount",  # Gemini
)  # fmt: skip

# members that mean something else here, or nothing that isthmus could do
MEMBER_READERS: Mapping[str, Callable[[_EntryTranslator, str, Any], None]] = {
    "tools": _EntryTranslator.read_tools,
    "default_tools_approval_mode": _EntryTranslator.read_approval,
    "timeout": _EntryTranslator.read_timeout,
    "startup_timeout_sec": lambda t, n, v: t.make_timeout_reader(("connect",), 1.0)(n, v),
    "startup_timeout_ms": lambda t, n, v: t.make_timeout_reader(("connect",), 0.001)(n, v),
    "tool_timeout_sec": lambda t, n, v: t.make_timeout_reader(("call", "total"), 1.0)(n, v),
    "connectionTimeout": lambda t, n, v: t.make_timeout_reader(("connect",), 0.001)(n, v),
    "requestOptions": _EntryTranslator.read_request_options,
    "bearer_token_env_var": _EntryTranslator.read_bearer_variable,
    "env_http_headers": _EntryTranslator.read_env_headers,
    "env_vars": _EntryTranslator.read_env_names,
    "env_keys": _EntryTranslator.read_env_names,
    "oauth": _EntryTranslator.read_oauth,
    "auth": _EntryTranslator.read_oauth,
    "authProviderType": _EntryTranslator.read_auth_provider,
    "headersHelper": _EntryTranslator.read_headers_helper,
    **dict.fromkeys(LOGIN_MEMBERS, _EntryTranslator.read_login_member),
    "experimental_environment": _EntryTranslator.read_executor,
    "sandboxEnabled": _EntryTranslator.read_sandbox,
    "sandbox": _EntryTranslator.read_sandbox,
}
