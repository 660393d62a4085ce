"""An answer is the same however the network cuts it, and never a part of one."""

import asyncio
import json
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.host.providers.anthropic import Anthropic
from isthmus.host.providers.openai_compatible import OpenAICompatible
from isthmus.host.providers.provider import Completion, ProviderBroke
from isthmus.wire import SamplingMessage, TextContent, Tool
from support.examples import count_examples


def events(*values):
    """A stream of server-sent events."""
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode()


def choice(finish=None, **delta):
    """One event of chat completions."""
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


CALL = {"index": 0, "id": "1", "function": {"name": "add", "arguments": '{"a"'}}
MORE = {"index": 0, "function": {"arguments": ": 1}"}}
CHAT = events(
    choice(content="Héllo "),
    choice(content="wörld\n\ndata: [DONE]"),
    choice(tool_calls=[CALL]),
    choice(tool_calls=[MORE]),
    choice("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
)
MESSAGES = events(
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hé\n"}},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "1", "name": "add"},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"a": 1}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
)
ASKED = Completion(
    model="m",
    messages=[SamplingMessage(role="user", content=TextContent(text="hi"))],
    max_tokens=50,
    tools=[Tool(name="add", input_schema={"type": "object"})],
)


class Pieces:
    """A response that comes in pieces, and the requests that it is the answer to."""

    def __init__(self, pieces):
        self.status = 200
        self.headers = {}
        self.pieces = list(pieces)
        self.closed = False

    async def send(self, method, url, headers, body=None):
        """The response."""
        return self

    async def piece(self):
        """The next piece."""
        return self.pieces.pop(0) if self.pieces else b""

    def close(self):
        """Let go of it."""
        self.closed = True


def answer(make, data, cuts):
    """All that a provider makes of a stream that is cut there; its error where there is one."""
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges) if a < b]
    response = Pieces(pieces)

    async def whole():
        return [piece async for piece in make(response).complete(ASKED)]

    try:
        return asyncio.run(whole())
    except ProviderBroke:
        return ProviderBroke
    finally:
        assert response.closed


def chat(response):
    """Chat completions."""
    return OpenAICompatible("http://127.0.0.1/v1", requests=response)


def messages(response):
    """The messages API."""
    return Anthropic("k", base_url="http://127.0.0.1", requests=response)


BOTH = st.sampled_from([(chat, CHAT), (messages, MESSAGES)])


@given(BOTH, st.lists(st.integers(0, 900), max_size=12))
@settings(max_examples=count_examples(30))
def test_an_answer_does_not_depend_on_how_it_is_cut(kind, cuts):
    """We demand: deltas, tools and figures are the same, byte by byte or all at once."""
    make, data = kind
    found = answer(make, data, cuts)
    assert answer(make, data, []) == found
    assert {"a": 1} == found[-1].result.content[1].input


@given(BOTH, st.floats(0, 1))
@settings(max_examples=count_examples(30))
def test_part_of_an_answer_is_an_error(kind, share):
    """We demand: wherever a stream ends before its reason to stop, there is no answer."""
    make, data = kind
    end = data.rindex(b"tool_calls" if make is chat else b"tool_use")
    assert ProviderBroke is answer(make, data[: int(end * share)], [])
