"""Templates of new projects: the files of each, with ``$name``, ``$package`` and ``$title`` to be filled in."""

from collections.abc import Mapping

PROJECT_FILE = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "0.1.0"
description = "$title, an MCP server"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["isthmus"]

[project.scripts]
$name = "$package.server:main"

[dependency-groups]
dev = ["pytest"]

[tool.hatch.build.targets.wheel]
packages = ["src/$package"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["src"]
"""

PACKAGE_FILE = '"""$title: an MCP server."""\n'

SERVER_FILE = '''\
"""The server: its tools, resources and prompts."""

from typing import Annotated

from isthmus import Server

server = Server("$name", title="$title", version="0.1.0")


@server.tool(read_only=True)
def count_words(text: Annotated[str, "Any text"]) -> int:
    """Count the words of a text."""
    return len(text.split())


@server.resource("$name://greeting/{name}")
def greeting(name: str) -> str:
    """A greeting for somebody."""
    return f"Hello, {name}!"


@server.prompt
def summarise(text: str) -> str:
    """Ask for a summary."""
    return f"Summarise this in one sentence:\\n\\n{text}"


def main() -> None:
    """Serve over stdio, for clients that start this program."""
    server.run()


if __name__ == "__main__":
    main()
'''

HTTP_SERVER_FILE = '''\
"""The server: its tools, and how it is served over HTTP."""

import os
from typing import Annotated

from isthmus import Server

server = Server("$name", title="$title", version="0.1.0")


@server.tool(read_only=True)
def count_words(text: Annotated[str, "Any text"]) -> int:
    """Count the words of a text."""
    return len(text.split())


def main() -> None:
    """Serve over HTTP at /mcp, where HOST and PORT say; /health and /ready answer balancers."""
    server.run(
        "http",
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "8000")),
        public_url=os.environ.get("PUBLIC_URL"),
    )


if __name__ == "__main__":
    main()
'''

TEST_HEAD = '''\
"""The server, called by a client in the same process: isthmus brings the fixtures to pytest."""

import pytest

from $package.server import server


@pytest.mark.parametrize(("text", "words"), [("", 0), ("one", 1), ("one  two\\nthree", 3)])
async def test_words_are_counted(mcp_client, text, words):
    client = await mcp_client(server)
    result = await client.call_tool("count_words", {"text": text})
    assert result.parse(int) == words


async def test_a_missing_argument_is_an_error(mcp_client):
    client = await mcp_client(server)
    result = await client.call_tool("count_words", {})
    assert result.is_error
    assert "text" in result.text


async def test_the_server_keeps_the_rules_of_the_protocol(mcp_lint):
    await mcp_lint(server)
'''

TEST_MORE = """

async def test_a_greeting_names_its_reader(mcp_client):
    client = await mcp_client(server)
    result = await client.read_resource("$name://greeting/Ada")
    assert result.contents[0].text == "Hello, Ada!"


async def test_the_prompt_has_the_text(mcp_client):
    client = await mcp_client(server)
    prompt = await client.get_prompt("summarise", {"text": "It rains."})
    assert "It rains." in prompt.messages[0].content.text
"""

README_HEAD = """\
# $title

An MCP server, written with [isthmus](https://pypi.org/project/isthmus/).

## Set-up

```console
$$ python -m venv .venv && . .venv/bin/activate
$$ pip install -e . pytest
$$ pytest
```

## Use

```console
$$ isthmus call src/$package/server.py count_words text="one two"
$$ isthmus check src/$package/server.py
"""

README_STDIO = """\
$$ isthmus install src/$package/server.py --into claude-code
$$ isthmus bundle src/$package/server.py --author "Your Name"
```

`isthmus install` writes the server into the configuration of a client (`--into cursor`, `vscode`, …), and `isthmus bundle` packs it
for desktop clients.
"""

README_HTTP = """\
$$ isthmus run src/$package/server.py --http 127.0.0.1:8000 --reload
$$ isthmus install http://127.0.0.1:8000/mcp --into claude-code
```

`docker build -t $name . && docker run -p 127.0.0.1:8000:8000 $name` serves it in a container; set `PUBLIC_URL` where it has
a name of its own.
"""

DOCKER_FILE = """\
FROM python:3.13-slim
WORKDIR /srv
COPY pyproject.toml README.md ./
COPY src ./src
RUN pip install --no-cache-dir . && useradd --system server
USER server
ENV HOST=0.0.0.0 PORT=8000
EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["$name"]
"""

IGNORE_FILE = "__pycache__/\n.venv/\n.env\n.pytest_cache/\ndist/\n*.egg-info/\n*.mcpb\n"

SHARED_FILES = {
    "pyproject.toml": PROJECT_FILE,
    ".gitignore": IGNORE_FILE,
    "src/$package/__init__.py": PACKAGE_FILE,
}

# by the template's name: its sentence, and its files
TEMPLATES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "basic": (
        "a tool, a resource and a prompt, over stdio",
        {
            **SHARED_FILES,
            "src/$package/server.py": SERVER_FILE,
            "tests/test_server.py": TEST_HEAD + TEST_MORE,
            "README.md": README_HEAD + README_STDIO,
        },
    ),
    "http": (
        "a tool over HTTP, with a container",
        {
            **SHARED_FILES,
            "src/$package/server.py": HTTP_SERVER_FILE,
            "tests/test_server.py": TEST_HEAD,
            "README.md": README_HEAD + README_HTTP,
            "Dockerfile": DOCKER_FILE,
        },
    ),
}
