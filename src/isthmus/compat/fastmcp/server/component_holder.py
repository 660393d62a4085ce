"""Holder of components: the decorators of servers and of local providers."""

from typing import Any

from isthmus.compat.fastmcp.components.functions import check_decorated
from isthmus.compat.fastmcp.prompts.model import Prompt
from isthmus.compat.fastmcp.resources.model import Resource
from isthmus.compat.fastmcp.resources.template import (
    ResourceTemplate,
    list_path_names,
    list_query_names,
)
from isthmus.compat.fastmcp.server.registry import VisibilityControl
from isthmus.compat.fastmcp.tools.model import Tool


class ComponentHolder(VisibilityControl):
    """Holder of tools, resources, templates and prompts, which are declared by decorators."""

    def complete_tool(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a tool with what is said for all of them."""
        return options

    # Tools

    def tool(self, name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
        """Decorate a function as a tool: ``@mcp.tool``, ``@mcp.tool()`` and ``@mcp.tool("name")``."""
        from isthmus.compat.fastmcp.tools.function_tool import FunctionTool

        if isinstance(name_or_fn, str):
            name, name_or_fn = name_or_fn, None

        def decorate(fn: Any) -> Any:
            check_decorated(fn, "tool")
            made = FunctionTool.from_function(fn, name=name, **self.complete_tool(options))
            self.registry.add("tool", made)
            return fn

        return decorate if name_or_fn is None else decorate(name_or_fn)

    def add_tool(self, tool: Any) -> Any:
        """Offer a tool, or a function as one; gives the tool."""
        return self.registry.add(
            "tool", tool if isinstance(tool, Tool) else Tool.from_function(tool)
        )

    def remove_tool(self, name: str, version: str | None = None) -> None:  # noqa: ARG002 - as fastmcp has it
        """Offer a tool no longer."""
        self.registry.remove("tool", name)

    # Resources

    def resource(self, uri: str, **options: Any) -> Any:
        """Decorate a function as a resource, or as a template where its URI or its parameters make it one.

        Raises:
            TypeError: there is no URI.
        """
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. It requires a URI as the first argument. "
                "Use @resource('uri') instead of @resource"
            )

        def decorate(fn: Any) -> Any:
            check_decorated(fn, "resource")
            self.add_resource_fn(fn, uri, **options)
            return fn

        return decorate

    def add_resource_fn(self, fn: Any, uri: str, **options: Any) -> Any:
        """Offer a function as a resource or a template; gives it (2.x)."""
        if list_path_names(uri) or list_query_names(uri):
            made = ResourceTemplate.from_function(fn, uri, **options)
            return self.registry.add("template", made)
        options.pop("security", None)
        return self.registry.add("resource", Resource.from_function(fn, uri, **options))

    def add_resource(self, resource: Any) -> Any:
        """Offer a resource; gives it."""
        if not isinstance(resource, Resource):
            return self.add_resource_fn(resource, resource.__fastmcp_options__["uri"])
        return self.registry.add("resource", resource)

    def add_template(self, template: ResourceTemplate) -> Any:
        """Offer a template; gives it."""
        return self.registry.add("template", template)

    # Prompts

    def prompt(self, name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
        """Decorate a function as a prompt: ``@mcp.prompt``, ``@mcp.prompt()`` and ``@mcp.prompt("name")``."""
        if isinstance(name_or_fn, str):
            name, name_or_fn = name_or_fn, None

        def decorate(fn: Any) -> Any:
            check_decorated(fn, "prompt")
            self.registry.add("prompt", Prompt.from_function(fn, name=name, **options))
            return fn

        return decorate if name_or_fn is None else decorate(name_or_fn)

    def add_prompt(self, prompt: Any) -> Any:
        """Offer a prompt, or a function as one; gives the prompt."""
        made = prompt if isinstance(prompt, Prompt) else Prompt.from_function(prompt)
        return self.registry.add("prompt", made)
