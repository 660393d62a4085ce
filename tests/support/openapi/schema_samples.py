"""Values that fit a JSON Schema, the same ones for the same seed, and quickly.

Hypothesis finds smaller and stranger values, at a hundred times the cost: tests of a few operations
take it, and the proof over ten thousand operations takes this.
"""

import base64
import random
import re
import string
from re import _constants as sre
from re import _parser as sre_parse
from typing import Any

import jsonschema_rs

TAME = ("plain", "two words", "x", "42", "true", "null", "it is long" * 6)
NASTY = (
    *("a/b", "a%2Fb", "a b", "a+b", "a&b=c", "a=b", "a,b", "a;b", "a#b", "a?b", 'a"b', "a\\b"),
    *(
        "Zoë",
        " blanks ",
        "..x",
        "%00",
        "%",
        "ü€😀",
        "a|b",
        "a.b",
        "[0]",
        "{}",
        "<x>",
        "a'b",
        "~!*()",
        "a:b@c",
        "$ref",
    ),
)
FORMATS = {
    "date": "2026-11-23", "date-time": "2026-11-23T10:20:30Z", "time": "10:20:30Z",
    "uuid": "6a0c3f6e-6d4b-4f0a-9a55-0c1d2e3f4a5b", "email": "ada@example.org",
    "uri": "https://example.org/a?b=c&d=%20#e", "url": "https://example.org/x", "ipv4": "192.0.2.7",
    "uri-reference": "/a/b", "ipv6": "2001:db8::1", "hostname": "example.org", "duration": "P1DT2H",
}  # fmt: skip
MADE = {"content_type": "image/png"}  # members of a file, which tools check themselves
BYTES = b"\x00\x01\r\n--\xff\xfe binary \r\n\r\n"
MAX_DEPTH = 5
ATTEMPTS = 24


class NoSample(Exception):
    """No value was found that fits."""


class Sampler:
    """Makes values for a schema.

    Args:
        schema: the whole schema, with its definitions.
        seed: for the choices.
        nasty: texts with signs that mean something somewhere.
        full: members that are not required are there as well.
    """

    def __init__(self, schema: Any, seed: str, *, nasty: bool = False, full: bool = True) -> None:
        self._root = schema
        self._random = random.Random(seed)  # noqa: S311 - the same for the same seed
        self._nasty = nasty
        self._full = full

    def sample(self) -> Any:
        """A value that fits.

        Raises:
            NoSample: none was found.
        """
        validator = jsonschema_rs.validator_for(self._root)
        flaw = None
        for attempt in range(ATTEMPTS):
            self._chance = 1.0 if attempt == 0 else self._random.random()
            if attempt > ATTEMPTS // 2:
                self._full = self._nasty = False
            try:
                value = self.make(self._root, 0)
            except NoSample as error:
                flaw = error
                continue
            if validator.is_valid(value):
                return value
            flaw = next(validator.iter_errors(value), None)
        raise NoSample(str(flaw)[:300])

    def follow(self, schema: Any) -> Any:
        """What a reference means, with what stands beside it."""
        for _ in range(40):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return schema
            found = self._root
            for step in schema["$ref"].removeprefix("#").split("/")[1:]:
                found = found[step.replace("~1", "/").replace("~0", "~")]
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**found, **beside} if isinstance(found, dict) and beside else found
        raise NoSample("a circle of references")

    def merge(self, schema: Any, depth: int) -> Any:
        """A schema with one of its branches chosen, and all of its parts put together."""
        schema = self.follow(schema)
        if not isinstance(schema, dict):
            return {}
        for key in ("oneOf", "anyOf"):
            if schema.get(key):
                branches = schema[key]
                chosen = self._choose_branch(branches, depth)
                rest = {k: v for k, v in schema.items() if k != key}
                schema = join(rest, self.merge(chosen, depth + 1))
        if schema.get("allOf"):
            parts = schema["allOf"]
            schema = {k: v for k, v in schema.items() if k != "allOf"}
            for part in parts:
                schema = join(schema, self.merge(part, depth + 1))
        if depth > 40:
            raise NoSample("too many parts")
        return schema

    def _choose_branch(self, branches: list[Any], depth: int) -> Any:
        if depth >= MAX_DEPTH:  # the plainest one ends a recursion
            return min(branches, key=lambda one: len(str(self.follow(one))))
        return self._random.choice(branches)

    def make(self, schema: Any, depth: int) -> Any:
        """A value for a part of the schema."""
        if schema is False:
            raise NoSample("nothing fits false")
        schema = self.merge(schema, depth)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._random.choice(schema["enum"])
        kind = schema.get("type")
        if isinstance(kind, list):
            plain = [one for one in kind if one != "null"] or kind
            kind = self._random.choice(plain)
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else None
            kind = kind or self._random.choice(["string", "integer", "boolean"])
        return getattr(self, f"make_{kind}")(schema, depth)

    def make_null(self, schema: Any, depth: int) -> None:
        """Null."""

    def make_boolean(self, schema: Any, depth: int) -> bool:
        """True or false."""
        return self._random.random() < 0.5

    def make_integer(self, schema: Any, depth: int) -> int:
        """An integer within its bounds."""
        low, high = schema.get("minimum"), schema.get("maximum")
        over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        low = over + 1 if isinstance(over, int | float) and not isinstance(over, bool) else low
        high = under - 1 if isinstance(under, int | float) and not isinstance(under, bool) else high
        low = (-5 if high is None else high - 9) if low is None else low
        high = low + 99 if high is None else high
        step = schema.get("multipleOf", 1)
        low, high = int(-(-low // 1)), int(high // 1)
        if high < low:
            raise NoSample("no integer is within the bounds")
        value = self._random.randint(low, min(high, low + 10**6))
        return int(-(-value // step) * step) if step != 1 else value

    def make_number(self, schema: Any, depth: int) -> Any:
        """A number, mostly with a fraction."""
        value = (
            self.make_integer(schema, depth)
            if schema.get("maximum") != schema.get("minimum") or "minimum" not in schema
            else schema["minimum"]
        )
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        if "multipleOf" in schema or (high is not None and value + 0.5 > high):
            return value
        return value + self._random.choice([0, 0.5, 0.25])

    def make_string(self, schema: Any, depth: int) -> str:
        """A text: by pattern, format, example, or any."""
        low, high = schema.get("minLength", 0), schema.get("maxLength", 10**6)
        if "pattern" in schema:
            return self._match(schema["pattern"], low, high)
        if schema.get("contentEncoding") == "base64" or schema.get("format") in ("byte", "binary"):
            return base64.b64encode(BYTES).decode()
        if schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        pool = NASTY if self._nasty else TAME
        text = self._random.choice(pool)
        while len(text) < low:
            text += self._random.choice(string.ascii_lowercase)
        return text[:high] if high else ""

    def make_array(self, schema: Any, depth: int) -> list[Any]:
        """A list; never an empty one unless it must be."""
        low, high = schema.get("minItems", 0), schema.get("maxItems", 10**6)
        number = min(max(low, 1 if depth >= MAX_DEPTH else self._random.randint(1, 3)), high)
        if depth > MAX_DEPTH + 2 and not low:
            return []
        items: list[Any] = []
        prefix = schema.get("prefixItems", [])
        for at in range(200):
            if len(items) >= max(number, low):
                break
            item = self.make(prefix[at] if at < len(prefix) else schema.get("items", {}), depth + 1)
            if not (schema.get("uniqueItems") and item in items):
                items.append(item)
        return items

    def make_object(self, schema: Any, depth: int) -> dict[str, Any]:
        """An object with what is required, and with more where there is room."""
        members, required = schema.get("properties", {}), schema.get("required", [])
        found = {}
        for name in [*required, *members]:
            if name in found:
                continue
            member = members.get(name, {})
            needed = name in required
            if not needed and (
                not self._full or depth >= 2 or self._random.random() > self._chance
            ):
                continue
            if not needed and depth and self._random.random() < 0.5:
                continue
            try:
                found[name] = MADE.get(name) or self.make(member, depth + 1)
            except NoSample:
                if needed:
                    raise
        rest = schema.get("additionalProperties")
        missing = schema.get("minProperties", 0) - len(found)
        if not found and depth in {1, 2} and (members or rest is not False):
            missing = max(missing, 1)
        for name in [*members, *(f"more{at}" for at in range(max(missing, 0)))]:
            if missing > 0 and name not in found:
                inner = members.get(name, rest if isinstance(rest, dict) else {"type": "string"})
                found[name] = self.make(inner, depth + 1)
                missing -= 1
        return found

    # Patterns

    def _match(self, pattern: str, low: int, high: int) -> str:
        try:
            parsed = sre_parse.parse(translate(pattern))
        except (re.error, OverflowError) as error:
            raise NoSample(f"the pattern {pattern!r} cannot be read") from error
        texts = [self._spell(parsed) for _ in range(12)]
        fitting = [one for one in texts if low <= len(one) <= high]
        if not fitting:
            fitting = [one + one[-1:] * (low - len(one)) for one in texts]
        return self._random.choice(fitting)

    def _spell(self, parsed: Any) -> str:
        return "".join(self._spell_one(op, value) for op, value in parsed)

    def _spell_one(self, op: Any, value: Any) -> str:  # noqa: PLR0911 - a case a line
        name = str(op)
        if op is sre.LITERAL:
            return chr(value)
        if op is sre.NOT_LITERAL or op is sre.ANY:
            return "x" if op is sre.ANY or value != ord("x") else "y"
        if op is sre.IN:
            return self._spell_set(value)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            number = self._random.randint(least, min(int(most), least + 4))
            return "".join(self._spell(inner) for _ in range(number))
        if op is sre.SUBPATTERN:
            return self._spell(value[3])
        if op is sre.BRANCH:
            return self._spell(self._random.choice(value[1]))
        if op in (sre.AT, sre.ASSERT_NOT, sre.ASSERT):
            return ""
        raise NoSample(f"a pattern with {name}")

    def _spell_set(self, value: Any) -> str:
        if value[0][0] is sre.NEGATE:
            refused = re.compile("[" + "".join(_set_text(op, one) for op, one in value[1:]) + "]")
            return next(sign for sign in "xyz0A-_ .é/" if not refused.match(sign))
        op, one = self._random.choice(value)
        if op is sre.LITERAL:
            return chr(one)
        if op is sre.RANGE:
            return chr(self._random.randint(one[0], min(one[1], one[0] + 60)))
        return {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " "}.get(str(one), "w")


def _set_text(op: Any, value: Any) -> str:
    if op is sre.LITERAL:
        return re.escape(chr(value))
    if op is sre.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}[str(value)]


def translate(pattern: str) -> str:
    """An expression of ECMA-262 as Python's, as far as the difference matters here."""
    pattern = re.sub(r"\\p\{L[ul]?\}", "[a-zA-Z]", pattern.replace(r"\/", "/"))
    return pattern.replace(r"\p{N}", "[0-9]").replace(r"\z", "$")


def join(one: Any, other: Any) -> dict[str, Any]:
    """Two schemas as one, as far as values are made of it."""
    joined = {**one, **other}
    if "properties" in one and "properties" in other:
        joined["properties"] = {**one["properties"], **other["properties"]}
        for name in one["properties"].keys() & other["properties"].keys():
            joined["properties"][name] = {
                "allOf": [one["properties"][name], other["properties"][name]]
            }
    if "required" in one and "required" in other:
        joined["required"] = [*dict.fromkeys([*one["required"], *other["required"]])]
    if one.get("enum") and other.get("enum"):
        joined["enum"] = [value for value in one["enum"] if value in other["enum"]]
    if "type" in one and "type" in other:
        first, second = ([t] if isinstance(t, str) else t for t in (one["type"], other["type"]))
        both = [t for t in first if t in second] or list(second)
        joined["type"] = both[0] if len(both) == 1 else both
    return joined
