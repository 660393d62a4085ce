"""Variables of a configuration: ``${…}``."""

from pathlib import Path

import pytest

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.forms import may_name_secret
from isthmus.host.config.variables import UnresolvedVariable, VariableFiller, VariableScope
from isthmus.host.model.errors import ConfigError


class Kept:
    """Some secrets."""

    def __init__(self, **secrets):
        self.secrets = secrets

    def get(self, path):
        """One of them."""
        if path == "locked":
            raise ConfigError("the keyring did not answer")
        found = self.secrets.get(path.replace("/", "_"))
        return None if found is None else Secret(found)


def scope(**more):
    """Where things are looked up."""
    return VariableScope(
        environ={"HOST": "localhost", "EMPTY": "", "API_TOKEN": "env-secret"},
        secrets=Kept(files_token="kept-secret", input_gh="typed-secret", input_org="acme"),
        inputs={
            "gh": {"id": "gh", "password": True},
            "org": {"id": "org"},
            "none": {"id": "none", "description": "the region"},
            "set": {"id": "set", "default": "eu"},
        },
        roots={"App": "/code/app"},
        folder="/code",
        **more,
    )


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${HOST}", "localhost"),
        ("http://${env:HOST}:1/${NONE:-x}", "http://localhost:1/x"),
        ("${env:NONE:-a:b}", "a:b"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", ""),
        ("${NONE:-}", ""),
        ("${secret:files/token}", "kept-secret"),
        ("${input:gh} ${input:org} ${input:set}", "typed-secret acme eu"),
        ("${root:App}/src", "/code/app/src"),
        ("${workspaceFolder}/x", "/code/x"),
        ("${workspaceFolderBasename}", "code"),
        ("${userHome}", str(Path.home())),
        ("$HOST {HOST} $${HOST}", "$HOST {HOST} $localhost"),
    ],
)
def test_variables_are_filled_in(text, filled):
    """Ours: those of all programs whose files are read."""
    assert filled == VariableFiller(scope()).fill(text)


def test_they_are_filled_in_at_any_depth():
    """Ours: every text of an entry."""
    assert {"a": ["localhost", 1, None]} == VariableFiller(scope()).fill(
        {"a": ["${HOST}", 1, None]}
    )


@pytest.mark.covers("hostconfig.variables.missing")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${NONE}", r"\$\{NONE\} is not set; export NONE=…, or write \$\{NONE:-default\}"),
        ("${env:NONE}", "is not set"),
        ("${a-b}", r"is no variable: write \$\{NAME\}"),
        ("${}", "is no variable"),
        ("${command:x}", "is no variable"),
        ("${secret:none}", "is not there: isthmus config secret set none"),
        ("${secret:locked}", "cannot be had: the keyring did not answer"),
        (
            "${input:none}",
            r"\(the region\) was not given yet: isthmus config secret set input/none",
        ),
        ("${input:other}", "the file's inputs have no 'other'"),
        ("${root:other}", r"host.roots has no 'other' \(it has 'App'\)"),
        ("${user:tenant}", "is known to a gateway only"),
    ],
)
def test_what_cannot_be_filled_in_says_what_to_do(text, says):
    """Ours: nothing unresolved ever reaches a server."""
    with pytest.raises(UnresolvedVariable, match=says) as caught:
        VariableFiller(scope()).fill([{"x": text}], "env")

    assert ("env", 0, "x") == caught.value.keys


@pytest.mark.covers("hostconfig.variables.no-leak")
def test_what_is_secret_is_remembered_as_such():
    """Ours: so that no log and no error shows it."""
    variables = VariableFiller(scope())
    variables.fill("${secret:files/token} ${API_TOKEN} ${HOST} ${input:gh} ${input:org}")

    assert {"kept-secret", "env-secret", "typed-secret"} == {s.reveal() for s in variables.secrets}


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "apiKey", "DB_PASSWORD", "Authorization", "PAT"])
def test_names_of_secrets(name):
    """Ours: what is probably secret by its name."""
    assert may_name_secret(name)


@pytest.mark.parametrize("name", ["HOME", "PATH", "TZ", "AUTHOR", "SPATIAL", "PWD", "URL"])
def test_names_of_what_anybody_may_see(name):
    """Ours: a log without its paths is no help."""
    assert not may_name_secret(name)


def test_who_needs_no_secrets_needs_no_store():
    """Ours: no keyring is asked."""
    with pytest.raises(UnresolvedVariable, match="is not there"):
        VariableFiller(VariableScope(environ={})).fill("${secret:a}")
