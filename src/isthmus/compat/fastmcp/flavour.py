"""Flavour: what the versions of fastmcp differ in; the one that is installed is what a program was written for."""

from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

NEWEST_VERSION = "4.2.3"


@dataclass(frozen=True)
class Flavour:
    """Differences between versions of fastmcp that a client sees.

    Attributes:
        meta_key: the member of ``_meta`` that has tags.
        makes_titles: a tool without a title is listed with one made of its name.
        reads_sections: sections of a docstring describe arguments, and are no part of the description.
        needs_parameters: a docstring whose sections describe no argument is the description as it is.
        closes_arguments: the schema of arguments allows no others.
        has_outputs: tools have output schemas.
        wrapper_description: what the schema of a wrapped result says of itself.
        tells_wrapping: ``_meta`` of a result says that it was wrapped.
        inlines_schemas: definitions stand where they are referred to.
        refuses_missing: a missing argument of a prompt is an error of the request, not of the prompt.
        quotes_unknown: the name of an unknown tool or prompt is quoted.
        writes_compact_json: resources that are plain data are written without spaces.
        types_templates: what a template gives has the MIME type that the template is listed with.
        screens_paths: values of a template that lead out of a folder are refused.
        prefixes_resources: the names of mounted resources have a prefix, too.
        missing_code, missing_text: the error for a resource that is not there.
        failed_code, unknown_code: the error codes for what else fails, and for an unknown prompt.
        refuses_calls: an error of JSON-RPC that middleware raises is the answer to a call, too, and no result of it.
        translates_subclasses: ``ErrorHandlingMiddleware`` knows an exception by the classes above its own.
        retries_causes: ``RetryMiddleware`` looks at what caused an exception.
        hides_cut_schemas: tools whose results ``ResponseLimitingMiddleware`` may cut are listed without output schemas.
        names_missing_scopes: ``AuthMiddleware`` says which scopes a caller lacks.
        writes_values: the text of a result is the value in JSON, and not what its annotation makes of it.
        describes_lists: a plain ``list`` or ``tuple`` as annotation has an output schema.
        spells_urls: resources are found and answered by their URIs as URLs are spelt.
        reads_json: an argument of a prompt is read as JSON where that fits, and else as it is.
        names_types: the name of a ``File`` ends by its MIME type.
        prompt_note: what arguments of prompts that are no text say of themselves.
    """

    meta_key: str = "fastmcp"
    makes_titles: bool = True
    reads_sections: bool = True
    needs_parameters: bool = False
    closes_arguments: bool = True
    has_outputs: bool = True
    wrapper_description: str | None = None
    tells_wrapping: bool = True
    inlines_schemas: bool = True
    refuses_missing: bool = True
    quotes_unknown: bool = True
    writes_compact_json: bool = False
    types_templates: bool = True
    screens_paths: bool = True
    prefixes_resources: bool = False
    missing_code: int = -32602
    missing_text: str = "Resource not found: {uri!r}"
    failed_code: int = -32603
    unknown_code: int = -32602
    refuses_calls: bool = True
    translates_subclasses: bool = True
    retries_causes: bool = True
    hides_cut_schemas: bool = True
    writes_values: bool = False
    describes_lists: bool = False
    spells_urls: bool = False
    reads_json: bool = False
    names_types: bool = False
    names_missing_scopes: bool = True
    prompt_note: str = "Provide a value matching the following JSON schema: {schema}. Encode non-string values as JSON."


FASTMCP4 = Flavour()

FASTMCP3 = replace(
    FASTMCP4,
    makes_titles=False,
    needs_parameters=True,
    refuses_missing=False,
    types_templates=False,
    screens_paths=False,
    missing_code=-32002,
    missing_text="Resource not found: Unknown resource: {uri!r}",
    failed_code=0,
    unknown_code=0,
    refuses_calls=False,
    translates_subclasses=False,
    hides_cut_schemas=False,
    writes_values=True,
    describes_lists=True,
    spells_urls=True,
    reads_json=True,
    names_types=True,
    names_missing_scopes=False,
    prompt_note="Provide as a JSON string matching the following schema: {schema}",
)

FASTMCP2 = replace(
    FASTMCP3,
    meta_key="_fastmcp",
    reads_sections=False,
    closes_arguments=False,
    wrapper_description="Generic wrapper for non-object return types.",
    tells_wrapping=False,
    quotes_unknown=False,
    writes_compact_json=True,
    prefixes_resources=True,
    retries_causes=False,
    missing_code=0,
    missing_text="Unknown resource: {uri!r}",
)


def find_library_version() -> str:
    """The version of fastmcp that is installed; the newest known where none is."""
    try:
        return version("fastmcp")
    except PackageNotFoundError:
        return NEWEST_VERSION


def find_flavour(installed: str) -> Flavour:
    """The flavour of a version."""
    major, minor = (
        int(part) if part.isdecimal() else 0 for part in f"{installed}.0".split(".")[:2]
    )
    if major >= 4:
        older = replace(FASTMCP4, refuses_missing=False, translates_subclasses=False)
        return FASTMCP4 if (major, minor) >= (4, 2) else older
    if major == 3:
        return FASTMCP3
    return replace(FASTMCP2, has_outputs=minor >= 10, inlines_schemas=minor >= 14)


LIBRARY_VERSION = find_library_version()

FLAVOUR = find_flavour(LIBRARY_VERSION)
