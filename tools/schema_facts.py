"""Writes the facts of the five official schemas into ``tests/schemas/``, one file a revision.

Run ``python tools/schema_facts.py FOLDER`` after a schema has changed, where FOLDER has
``REVISION/schema.json`` as the folder ``schema`` of https://github.com/modelcontextprotocol/modelcontextprotocol
has them. A test compares what is kept with the official files where these are at hand.

Kept are names of types and members, types, what is required, enumerations, constants, unions,
references and bounds: all that a validator reads. Left out is what people read: descriptions.
"""

import json
import sys
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parents[1] / "tests" / "schemas"
NAMES_BELOW = ("properties", "definitions", "$defs")
PROSE = ("description", "title", "examples", "$comment")


def extract_facts(schema: Any) -> Any:
    """A schema without what is written for people."""
    if isinstance(schema, list):
        return [extract_facts(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        word: {name: extract_facts(part) for name, part in value.items()}
        if word in NAMES_BELOW  # whose own members are names, "description" too
        else extract_facts(value)
        for word, value in schema.items()
        if word not in PROSE
    }


def write_facts(schema: Any) -> str:
    """The facts as text, one definition a line, so that changes are seen."""
    facts = extract_facts(schema)
    where = "$defs" if "$defs" in facts else "definitions"
    lines = [
        f"    {json.dumps(name)}: {json.dumps(facts[where][name], sort_keys=True)}"
        for name in sorted(facts[where])
    ]
    head = "".join(
        f"  {json.dumps(word)}: {json.dumps(facts[word])},\n" for word in facts if word != where
    )
    return f'{{\n{head}  "{where}": {{\n' + ",\n".join(lines) + "\n  }\n}\n"


def main(folder: Path) -> None:
    """Write all that lie in a folder."""
    for official in sorted(folder.glob("????-??-??/schema.json")):
        schema = json.loads(official.read_text("utf-8"))
        (KEPT / f"{official.parent.name}.json").write_text(write_facts(schema), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
