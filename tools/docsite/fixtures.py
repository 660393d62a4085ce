"""Page of the pytest plugin: its fixtures with their types, and what their calls take."""

from griffe import Class, Function, Module

from docsite.docstrings import convert_cell, convert_sections, read_first_sentence, write_rows
from docsite.signatures import Linker, link_type, write_function

PLUGIN = "isthmus.testing.plugin"


def write_plugin(plugin: Module, link: Linker) -> str:
    """The page of the plugin.

    Args:
        plugin: the module that pytest loads.
        link: addresses of what is documented.
    """
    parts = [f"# {PLUGIN} {{#module}}\n"]
    if plugin.docstring:
        parts.append(convert_sections(plugin.docstring, link)[0] + "\n")
    fixtures = [one for one in plugin.functions.values() if is_fixture(one)]
    rows = [
        (f"`{one.name}`", link_type(one.returns, link), read_first_sentence(one.docstring, link))
        for one in fixtures
    ]
    parts += ["## Fixtures {#fixtures}\n", write_rows(("Fixture", "Type", "About"), rows)]
    classes = plugin["fixtures"].classes.values()
    parts += [text for one in classes if (text := write_call(one, fixtures, link))]
    return "\n".join(parts)


def is_fixture(function: Function) -> bool:
    """Whether a function is a fixture of pytest."""
    return any(str(one.value).startswith("pytest.fixture") for one in function.decorators)


def write_call(cls: Class, fixtures: list[Function], link: Linker) -> str:
    """The section of a class that a fixture gives and a test calls; empty for any other."""
    named = [one.name for one in fixtures if str(one.returns).strip("'\"") == cls.name]
    call = cls.members.get("__call__")
    if not named or not isinstance(call, Function):
        return ""
    parts = [f"## `{named[0]}(…)` {{#{named[0]}}}\n"]
    parts.append(f"```python\n{write_function(named[0], call)}\n```\n")
    if cls.docstring is not None:
        parts.append(convert_sections(cls.docstring, link)[0] + "\n")
    if call.docstring is not None:
        text, said, after = convert_sections(call.docstring, link)
        rows = [(f"`{name}`", convert_cell(meaning, link)) for name, meaning in said.items()]
        table = write_rows(("Parameter", "Meaning"), rows) if rows else ""
        parts += [text + "\n", table, after + "\n"]
    return "\n".join(part for part in parts if part.strip())
