"""The API reference: a page for each public module and each large class, from the docstrings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import griffe
from griffe import Attribute, Class, Function, Module, Object, Parameter

from docsite.docstrings import convert_cell, convert_sections, read_first_sentence, write_rows
from docsite.facades import FACADE_PAGES, list_facade_names, write_facade
from docsite.fixtures import PLUGIN, is_fixture, write_plugin
from docsite.meanings import COMMON, OWN
from docsite.signatures import (
    Linker,
    abbreviate_type,
    link_type,
    list_fields,
    list_parameters,
    read_unpacked,
    write_function,
    write_signature,
)

OWN_PAGES = {
    "isthmus.Server": "class-server",
    "isthmus.Client": "class-client",
    "isthmus.Context": "class-context",
    "isthmus.host.Host": "class-host",
}
"""Classes that are a page each."""
FOLDER = "reference/api"
MAX_DEFAULT_CHARACTERS = 60
TITLE = "The API reference is made from the docstrings of everything that `__all__` lists."


@dataclass
class Name:
    """A public name."""

    module: str
    name: str
    target: Object
    also: list[str] = field(default_factory=list)
    """Other modules that it can be imported from."""

    @property
    def path(self) -> str:
        """Its path as one imports it."""
        return f"{self.module}.{self.name}"

    @property
    def page(self) -> str:
        """Its page, without the folder."""
        return f"{OWN_PAGES.get(self.path, self.module)}.md"


class Reference:
    """All public names, and the addresses of what is documented."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = griffe.load(
            "isthmus", search_paths=[root / "src"], resolve_aliases=True, resolve_external=False
        )
        listed = (root / "tests" / "architecture" / "exports.txt").read_text().split()
        self.modules: dict[str, list[Name]] = {}
        self.names: dict[str, Name] = {}
        for path in sorted(listed, key=lambda path: path.count(".")):
            if not path.endswith("__"):
                self._add(path)
        self.addresses = dict(self._list_addresses())
        self.short = {path.rpartition(".")[2]: path for path in reversed(self.addresses)}

    def _add(self, path: str) -> None:
        module, _, name = path.rpartition(".")
        here = self.modules.setdefault(module, [])
        member = self.package[f"{path.removeprefix('isthmus.')}"]
        try:
            target = member.final_target if member.is_alias else member
        except griffe.AliasResolutionError:
            return  # msgspec's own
        if (known := self.names.get(target.path)) is None:
            known = self.names[target.path] = Name(module, name, target)
        else:
            known.also.append(path)
        here.append(known)

    def _list_addresses(self) -> Iterator[tuple[str, str]]:
        for target, name in self.names.items():
            anchor = name.name if name.path not in OWN_PAGES else ""
            for path in (target, name.path, *name.also):
                yield path, f"{name.page}#{anchor}".rstrip("#")
                if name.target.is_class:
                    for member in name.target.members:
                        if not member.startswith("_"):
                            yield f"{path}.{member}", f"{name.page}#{name.name}.{member}"

    def find_module(self, path: str) -> Module:
        """A module of the package."""
        inner = path.removeprefix("isthmus").lstrip(".")
        return self.package[inner] if inner else self.package

    def link_from(self, page: str, inside: str = "") -> Linker:
        """Addresses as they stand on a page.

        Args:
            page: the page.
            inside: path of the class whose members are named by their last part.
        """

        def link(path: str) -> str | None:
            plain = path.strip().rstrip("()")
            whole = self.addresses.get(plain) or self.addresses.get(f"{inside}.{plain}")
            if whole is None and plain.startswith("isthmus."):
                parts = plain.split(".")
                near = self.short.get(".".join(parts[-2:])) or self.short.get(parts[-1])
                whole = self.addresses[near] if near and parts[-1][0].isupper() else None
            elif whole is None and plain in self.short and plain[:1].isupper():
                whole = self.addresses[self.short[plain]]
            if whole is None:
                return None
            return whole.removeprefix(page) if whole.startswith(f"{page}#") else whole

        return link


def make_api_pages(root: Path) -> dict[str, str]:
    """Every page of the reference, by its path under ``docs/``."""
    reference = Reference(root)
    pages = {f"{FOLDER}/index.md": write_index(reference)}
    for module, names in reference.modules.items():
        pages[f"{FOLDER}/{module}.md"] = write_module(reference, module, names)
    compat = reference.find_module("isthmus.compat")
    for package in FACADE_PAGES:
        link = reference.link_from(f"{package}.md")
        page = write_facade(reference.find_module(package), compat, link)
        pages[f"{FOLDER}/{package}.md"] = page
    link = reference.link_from(f"{PLUGIN}.md")
    pages[f"{FOLDER}/{PLUGIN}.md"] = write_plugin(reference.find_module(PLUGIN), link)
    for path, page in OWN_PAGES.items():
        name = next(one for one in reference.names.values() if one.path == path)
        pages[f"{FOLDER}/{page}.md"] = write_class_page(reference, name)
    return pages


def write_index(reference: Reference) -> str:
    """The first page: large classes, modules, and every name by the alphabet."""
    parts = ["# API reference\n", TITLE + "\n", "## Classes with pages of their own\n"]
    link = reference.link_from("index.md")
    by_path = {name.path: name for name in reference.names.values()}
    parts.append(
        write_rows(
            ("Class", "About"),
            [
                (
                    f"[`{path}`]({page}.md)",
                    read_first_sentence(by_path[path].target.docstring, link),
                )
                for path, page in OWN_PAGES.items()
            ],
        )
    )
    parts.append("## Modules\n")
    rows = []
    for module, names in reference.modules.items():
        about = read_first_sentence(reference.find_module(module).docstring, link)
        rows.append((f"[`{module}`]({module}.md)", about, str(len(names))))
    for package in FACADE_PAGES:
        about = read_first_sentence(reference.find_module(package).docstring, link)
        count = sum(map(len, list_facade_names(reference.find_module(package)).values()))
        rows.append((f"[`{package}`]({package}.md)", about, str(count)))
    plugin = reference.find_module(PLUGIN)
    about = read_first_sentence(plugin.docstring, link)
    fixtures = sum(map(is_fixture, plugin.functions.values()))
    rows.append((f"[`{PLUGIN}`]({PLUGIN}.md)", about, str(fixtures)))
    parts.append(write_rows(("Module", "About", "Names"), rows))
    return "\n".join(parts)


def write_module(reference: Reference, module: str, names: list[Name]) -> str:
    """The page of a module: a table of its names, then those that have no page elsewhere."""
    page = f"{module}.md"
    link = reference.link_from(page)
    parts = [f"# {module} {{#module}}\n"]
    if docstring := reference.find_module(module).docstring:
        text, _, after = convert_sections(docstring, link)
        parts += [text + "\n", after + "\n"]
    for title, kind in (("Classes", "class"), ("Functions", "function"), ("Values", "attribute")):
        rows = [
            (
                f"[`{name.name}`]({link(name.target.path)})",
                read_first_sentence(name.target.docstring, link),
            )
            for name in sorted(names, key=lambda name: name.name.lower())
            if name.target.kind.value == kind
        ]
        if rows:
            parts += [f"**{title}**\n", write_rows(("Name", "About"), rows)]
    for name in sorted(names, key=lambda name: name.name.lower()):
        if name.page == page and name.module == module:
            parts.append(write_name(reference, name, link))
    return "\n".join(parts)


def write_class_page(reference: Reference, name: Name) -> str:
    """The page of a large class."""
    link = reference.link_from(name.page, name.target.path)
    head = (
        f"# {name.name} {{#{name.name}}}\n\n```python\nfrom {name.module} import {name.name}\n```\n"
    )
    assert isinstance(name.target, Class)  # noqa: S101 - OWN_PAGES has classes only
    return head + write_class(reference, name, name.target, link, level=2)


def write_name(reference: Reference, name: Name, link: Linker) -> str:
    """One name on the page of its module."""
    parts = [f"## `{name.name}` {{#{name.name}}}\n"]
    target = name.target
    link = reference.link_from(name.page, target.path)
    if isinstance(target, Class):
        parts.append(write_class(reference, name, target, link, level=3))
    elif isinstance(target, Function):
        parts.append(write_callable(reference, name.name, target, link))
    elif isinstance(target, Attribute):
        parts.append(write_value(name.name, target, link))
    return "\n".join(parts)


def write_source(reference: Reference, target: Object) -> str:
    """Where something stands in the source."""
    path = Path(str(target.filepath)).relative_to(reference.root).as_posix()
    return f'<p class="source">Source: <code>{path}:{target.lineno}</code></p>\n'


def write_value(name: str, target: Attribute, link: Linker) -> str:
    """A constant or an alias of a type."""
    value = " ".join(str(target.value or "").split())
    parts = [f"```python\n{name} = {value}\n```\n"] if value and len(value) < 400 else []
    if target.docstring:
        parts.append(convert_sections(target.docstring, link)[0] + "\n")
    return "\n".join(parts)


def write_callable(reference: Reference, shown: str, function: Function, link: Linker) -> str:
    """A function or a method: signature, text, parameters, result, errors."""
    parts = [f"```python\n{write_function(shown, function)}\n```\n"]
    said: dict[str, str] = {}
    after = ""
    own = OWN.get(".".join(function.path.split(".")[-2:]), {})
    if function.docstring:
        text, said, after = convert_sections(function.docstring, link)
        parts.append(text + "\n")
    parts.append(write_parameter_table(list_parameters(function), {**own, **said}, link))
    if after:
        parts.append(after + "\n")
    parts += [write_options(reference, p, link) for p in list_parameters(function)]
    parts.append(write_source(reference, function))
    return "\n".join(part for part in parts if part)


def write_parameter_table(parameters: list[Parameter], said: dict[str, str], link: Linker) -> str:
    """The parameters with type, default and meaning."""
    rows = []
    for parameter in parameters:
        if parameter.name not in said and parameter.annotation is None:
            continue
        if read_unpacked(parameter):
            continue
        rows.append(
            (
                f"`{parameter.name}`",
                link_type(parameter.annotation, link),
                write_default(parameter.default),
                convert_cell(said.get(parameter.name) or COMMON.get(parameter.name, ""), link),
            )
        )
    return write_rows(("Parameter", "Type", "Default", "Meaning"), rows) if rows else ""


def write_default(default: object) -> str:
    """A default as a cell."""
    text = " ".join(str(default).split()) if default is not None else ""
    if not text:
        return ""
    if len(text) > MAX_DEFAULT_CHARACTERS:
        text = text[:MAX_DEFAULT_CHARACTERS] + "…"
    return f"`{text}`".replace("|", "\\|")


def write_options(reference: Reference, parameter: Parameter, link: Linker) -> str:
    """The fields of ``**options: Unpack[ToolOptions]`` as a table."""
    path = read_unpacked(parameter)
    if path is None or not isinstance(options := reference.package[path[8:]], Class):
        return ""
    return f"**Options** (`{options.name}`)\n\n" + write_field_table(options, link, "Option")


def write_field_table(cls: Class, link: Linker, head: str) -> str:
    """The fields of a class with type, default and meaning; of an enumeration, members and values."""
    if any(str(base).endswith("Enum") for base in cls.bases):
        members = [(f"`{one.name}`", write_default(one.value)) for one in list_fields(cls)]
        return write_rows(("Member", "Value"), members)
    said: dict[str, str] = {}
    for one in [*reversed(cls.mro()), cls]:
        if one.docstring:
            said.update(convert_sections(one.docstring, link)[1])
    rows = []
    for attribute in list_fields(cls):
        own = attribute.docstring.value if attribute.docstring else ""
        rows.append(
            (
                f"`{attribute.name}`",
                link_type(attribute.annotation, link),
                write_default(attribute.value),
                convert_cell(said.get(attribute.name) or own, link),
            )
        )
    if not any(row[2] for row in rows):
        return (
            write_rows((head, "Type", "Meaning"), [(a, b, d) for a, b, _, d in rows])
            if rows
            else ""
        )
    return write_rows((head, "Type", "Default", "Meaning"), rows)


def write_class(reference: Reference, name: Name, cls: Class, link: Linker, *, level: int) -> str:
    """A class: how it is made, its fields, a table of its methods, and each of them."""
    methods = list_methods(reference, cls)
    parts = [write_construction(reference, name, cls, link), write_source(reference, cls)]
    parts.append(write_method_summary(name.name, methods, link))
    for member in methods:
        parts.append(f"{'#' * level} `{member.name}` {{#{name.name}.{member.name}}}\n")
        if isinstance(member, Function):
            owner = f"{name.name[0].lower()}{name.name[1:]}"
            if {"classmethod", "staticmethod"} & member.labels:
                owner = name.name
            parts.append(write_callable(reference, f"{owner}.{member.name}", member, link))
        else:
            parts.append(write_property(member, link))
    return "\n".join(part for part in parts if part)


def write_construction(reference: Reference, name: Name, cls: Class, link: Linker) -> str:
    """How a class is made: signature, bases, text, parameters or fields."""
    init = cls.members.get("__init__")
    given = list_parameters(init) if isinstance(init, Function) else []
    text, said, after = convert_sections(cls.docstring, link) if cls.docstring else ("", {}, "")
    made = [parameter for parameter in given if parameter.name in said or read_unpacked(parameter)]
    given = given if made else []  # authors receive it and make none
    parts = []
    if isinstance(init, Function) and (given or not list(init.parameters)[1:]):
        parts.append(f"```python\n{write_signature(name.name, given, None)}\n```\n")
    if cls.bases:
        parts.append(f"Bases: {', '.join(link_type(base, link) for base in cls.bases)}\n")
    if name.also:
        parts.append("Also: " + ", ".join(f"`{path}`" for path in name.also) + "\n")
    parts.append(f"{text}\n")
    if given:
        parts.append(write_parameter_table(given, said, link))
    elif not isinstance(init, Function):
        parts.append(write_field_table(cls, link, "Field"))
    parts += [write_options(reference, parameter, link) for parameter in given]
    parts.append(f"{after}\n")
    return "\n".join(part for part in parts if part.strip())


def list_methods(reference: Reference, cls: Class) -> list[Function | Attribute]:
    """Public methods and properties of a class, and of those bases that have no section."""
    members = {**cls.inherited_members, **cls.members}
    found = []
    for name, member in members.items():
        target = member.final_target if member.is_alias else member
        owner = target.parent.path if target.parent is not None else ""
        if name.startswith("_") or not owner.startswith("isthmus."):
            continue
        if owner != cls.path and owner in reference.names:
            continue
        if isinstance(target, Function) or "property" in target.labels:
            found.append(target)
    return found


def write_method_summary(owner: str, methods: list[Function | Attribute], link: Linker) -> str:
    """A table of methods and properties with their first sentences."""
    parts = []
    for title, kind in (("Method", Function), ("Property", Attribute)):
        rows = [
            (f"[`{one.name}`](#{owner}.{one.name})", read_first_sentence(one.docstring, link))
            for one in methods
            if isinstance(one, kind)
        ]
        if rows:
            parts.append(write_rows((title, "About"), rows))
    return "\n".join(parts)


def write_property(member: Attribute, link: Linker) -> str:
    """A property: its type and its text."""
    parts = [f"```python\n{member.name}: {abbreviate_type(member.annotation)}\n```\n"]
    if member.docstring:
        text, _, after = convert_sections(member.docstring, link)
        parts += [text + "\n", after + "\n"]
    return "\n".join(parts)
