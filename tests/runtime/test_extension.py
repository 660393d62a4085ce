"""An extension as an object."""

import pytest

from isthmus import Extension
from isthmus.errors import UsageError
from isthmus.runtime.extension import collect_extensions


def test_an_extension_gathers_what_it_serves_and_hears():
    """A package ships one object, and its user needs to know no more of it (ours)."""
    extension = Extension("com.example/refunds", {"currencies": ["EUR"]})

    @extension.method("refunds/create", params=dict, result=dict)
    def create(params):
        return params

    @extension.on_notification("notifications/refunds/seen")
    def seen(params):
        return None

    @extension.use
    async def layer(inbound, call_next):
        return await call_next(inbound)

    assert {"currencies": ["EUR"]} == extension.settings
    assert create is extension.methods["refunds/create"].fn
    assert seen is extension.notices["notifications/refunds/seen"].fn
    assert [layer] == extension.middleware
    assert "Extension('com.example/refunds')" == repr(extension)


def test_the_same_name_twice_is_refused():
    """Silence would hide one of them (decision D17)."""
    extension = Extension("com.example/refunds")
    extension.method("refunds/create", params=dict)(lambda params: None)

    with pytest.raises(UsageError, match="already"):
        extension.on_notification("refunds/create")(lambda params: None)


@pytest.mark.parametrize("name", ["tools/call", "notifications/progress"])
def test_a_name_of_the_specification_is_refused(name):
    """An extension adds to the protocol, and replaces nothing (ours)."""
    extension = Extension("com.example/refunds")

    with pytest.raises(UsageError, match="of the specification"):
        extension.method(name, params=dict)(lambda params: None)


def test_settings_by_identifier_are_extensions_without_code():
    """A dict is enough where there is nothing to serve (ours)."""
    plain = collect_extensions({"com.example/a": {"x": 1}, "com.example/b": {}})

    assert [("com.example/a", {"x": 1}), ("com.example/b", {})] == [
        (one.identifier, one.settings) for one in plain
    ]
    assert [] == collect_extensions(None)
    assert plain == collect_extensions(plain)


def test_what_is_no_extension_is_refused():
    """The message says what is meant (ours)."""
    with pytest.raises(UsageError, match="a dict of settings"):
        collect_extensions(["com.example/a"])
