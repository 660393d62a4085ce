"""YAML as plain data: JSON's types, bounded, and every fault with its place."""

import pytest

from isthmus.yaml_text import BadYaml, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("name: NO", {"name": "NO"}),
        ("on: yes", {"on": "yes"}),
        ("day: 2026-11-23", {"day": "2026-11-23"}),
        ('size: "12"', {"size": "12"}),
        ("sizes: [0x10, 0o10, 1.5, null]", {"sizes": [16, 8, 1.5, None]}),
        ("", None),
    ],
)
def test_plain_words_mean_what_the_core_schema_says(text, value):
    """Ours: PyYAML's own reading makes NO false and a day a date."""
    assert value == read_yaml(text)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "there is too much in it, or too deep"),
        ("[" * 200 + "]" * 200, "there is too much in it, or too deep"),
        ("a: &a [*a]", "there is too much in it, or too deep"),
        ("a: 1\na: 2", "the key 'a' is there twice"),
        ("a: !!python/object:os.system x", "the tag tag:yaml.org,2002:python/object:os.system"),
        ("<<: {a: 1}", "a key is a text; merge keys are not read"),
        ("a: [", "did not find expected node content|expected the node content"),
    ],
)
def test_a_text_that_cannot_be_plain_data_is_refused_with_its_place(text, message):
    """Ours: a bomb of aliases is counted as often as it repeats, and nothing is constructed."""
    with pytest.raises(BadYaml, match=message) as raised:
        read_yaml(text)

    assert raised.value.line >= 1
