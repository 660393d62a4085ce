"""The fuzz targets hold for their seeds and for what Hypothesis makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_holds_for_its_seeds(name):
    """Ours: what a fuzzer starts from is no finding, and there is something to start from."""
    seeds = list(TARGETS[name].seeds())

    assert seeds
    for seed in seeds:
        TARGETS[name].run(seed)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_each_target_holds_for_broken_seeds(name, data):
    """Ours: a seed cut anywhere, with anything in the middle, breaks nothing."""
    seed = data.draw(st.sampled_from(sorted(TARGETS[name].seeds())))
    at = data.draw(st.integers(0, len(seed)))
    end = data.draw(st.integers(at, min(len(seed), at + 40)))
    TARGETS[name].run(seed[:at] + data.draw(st.binary(max_size=40)) + seed[end:])
