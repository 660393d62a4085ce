"""The catalog of models, and what is said of a file that cannot be one."""

import pytest

from isthmus.host.model.errors import ConfigError
from isthmus.host.sampling.models import EXAMPLE_FILE, Model, Models

GOOD = """
[weights]
cost = 1.0

[equivalents]
Haiku = ["small"]

[providers.local]
base_url = "http://127.0.0.1:1/v1"

[[model]]
id = "a"
provider = "local"
context = 4096

[[model]]
id = "b"
provider = "local"
"""


def test_the_example_is_a_catalog():
    """We demand: the file that people start from can be read."""
    models = Models.read(EXAMPLE_FILE)
    assert ["pebble", "boulder-2", "mountain-2"] == [model.id for model in models]
    assert "pebble:3b" == models["pebble"].called
    assert "boulder-2" == models["boulder-2"].called
    assert {"local", "faraway"} == set(models.providers)


def test_what_a_file_says_is_read_in_its_order():
    """We demand: weights, equivalents and providers stand beside the models."""
    models = Models.parse(GOOD)
    assert (1.0, 0.3) == (models.weights.cost, models.weights.speed)
    assert {"haiku": ("small",)} == models.equivalents
    assert "http://127.0.0.1:1/v1" == models.providers["local"].base_url
    assert (2, "a", 4096) == (len(models), models.all[0].id, models.all[0].context)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("context = 4096", 'context = "long"'), "m.toml, line 14: model 'a', context: Expected"),
        (("context = 4096", "contxt = 4096"), "line 14: model 'a', contxt: .*known are id"),
        (("context = 4096", "context = 0"), "line 14: model 'a', context: 0 is not more"),
        (
            ("context = 4096", "cost_in = -1.0"),
            "line 14: model 'a', cost_in: -1.0 is negative or infinite",
        ),
        (("context = 4096", "intelligence = 101"), "line 14: model 'a', intelligence: 101"),
        (('id = "b"', 'id = "a"'), "line 17: model 'a', id: model 1 of the file has this id"),
        (('id = "b"', 'id = " "'), "line 17: model ' ', id: a model has a name"),
        (('id = "b"\n', ""), "line 16: model 2, id: it is missing the required field 'id'"),
        (("cost = 1.0", 'cost = "much"'), "line 3: weights, cost: Expected"),
        (("base_url", "url"), "line 9: providers.local, url: .*known are kind"),
        (("[[model]]", "[[models]]"), "line 11: 'models' is none of weights"),
        (('id = "b"', "id = "), r"\(at line 17"),
        (('id = "b"', "id = " + "[" * 5000), "nested too deep"),
    ],
)
def test_what_is_wrong_with_a_file_has_its_line_and_key(change, message):
    """We demand: an error names file, line and key, and what may stand there."""
    with pytest.raises(ConfigError, match=message):
        Models.parse(GOOD.replace(*change, 1), "m.toml")


def test_one_table_of_models_is_not_a_list_of_them():
    """We demand: single brackets are a common slip, and have a message of their own."""
    with pytest.raises(ConfigError, match=r"line 1: models are tables: \[\[model\]\] above each"):
        Models.parse('[model]\nid = "a"')


def test_a_file_that_is_not_there_is_named(tmp_path):
    """We demand: the path is in the error."""
    with pytest.raises(ConfigError, match=r"gone.toml: the models cannot be read"):
        Models.read(tmp_path / "gone.toml")


def test_models_of_a_program_are_checked_as_well():
    """We demand: what cannot be in a file cannot be in a program."""
    with pytest.raises(ConfigError, match="two models are called 'a'"):
        Models([Model(id="a", provider="p"), Model(id="a", provider="p")])
    with pytest.raises(ConfigError, match="model 'a', tok_s: 0 is not more than 0"):
        Models([Model(id="a", provider="p", tok_s=0)])


@pytest.mark.covers("hostsampling.models.unknown-is-median")
def test_what_nobody_measured_counts_as_the_median():
    """We demand: an unknown figure neither favours a model nor counts against it."""
    models = Models(
        [
            Model(id="a", provider="p", cost_in=1, cost_out=1, tok_s=64, ttft_ms=0, intelligence=1),
            Model(id="b", provider="p", cost_in=3, cost_out=3, tok_s=64, ttft_ms=0, intelligence=5),
            Model(id="c", provider="p"),
        ]
    )
    unknown = models.measured["c"]
    assert (2.0, 4.0, 3.0) == (unknown.price, unknown.seconds, unknown.intelligence)
    assert None is models["c"].cost(10, 10)
    assert 60 == models["b"].cost(10, 10)
