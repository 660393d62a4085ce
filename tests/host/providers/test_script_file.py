"""A model's part in a file."""

import json

import pytest

from isthmus.errors import UsageError
from isthmus.host.providers.provider import Completion, Done, ProviderUnavailable
from isthmus.host.providers.scripted import read_script
from isthmus.wire import SamplingMessage, TextContent


async def answer(provider, text="hello"):
    """What the provider writes to these words."""
    message = SamplingMessage(role="user", content=TextContent(text=text))
    completion = Completion(model="m", messages=[message], max_tokens=100)
    async for piece in provider.complete(completion):
        if isinstance(piece, Done):
            content = piece.result.content
            return content if isinstance(content, list) else [content]
    return None


@pytest.mark.covers("hostchat.script.file")
async def test_a_file_is_played_in_order(tmp_path):
    """Ours: texts, uses of tools, several at once, pauses, failures and answers to certain words."""
    script = [
        "Hello.",
        {"use": "a__x", "with": {"n": 1}},
        ["Both:", {"use": "a__x"}, {"use": "b__y"}],
        {"say": "slow", "pause": 0},
        {"fail": "gone"},
        {"when": "Weather", "say": "It rains."},
    ]
    file = tmp_path / "script.json"
    file.write_text(json.dumps(script))
    provider = read_script(file)

    assert "Hello." == (await answer(provider))[0].text
    assert "It rains." == (await answer(provider, "how is the weather?"))[0].text
    use = (await answer(provider))[0]
    assert ("a__x", {"n": 1}) == (use.name, use.input)
    text, first, second = await answer(provider)
    assert ("Both:", "a__x", "b__y") == (text.text, first.name, second.name)
    assert first.id != second.id
    assert "slow" == (await answer(provider))[0].text
    with pytest.raises(ProviderUnavailable, match="gone"):
        await answer(provider)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "is no JSON"),
        ("{}", "a script is a list"),
        ("[1]", "step 1: a text, a list or an object"),
        ('["a", {"sing": "x"}]', "step 2: a text, a list or an object"),
        ('[{"use": "x", "with": 1}]', "it has neither text nor tool calls"),
        ("[[1]]", "it has neither text nor tool calls"),
    ],
)
def test_what_is_no_script_says_where(tmp_path, text, wrong):
    """Ours: file, step and what may stand there."""
    file = tmp_path / "script.json"
    file.write_text(text)

    with pytest.raises(UsageError, match=wrong):
        read_script(file)


def test_a_script_that_is_not_there_is_said_to_be_so(tmp_path):
    """Ours: the file is named."""
    with pytest.raises(UsageError, match="No such file"):
        read_script(tmp_path / "none.json")
