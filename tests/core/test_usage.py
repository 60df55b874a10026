import json

import pytest

from llmgw.core.types import Dialect
from llmgw.core.usage import UNKNOWN, Usage, first_usage, merge, usage_of_answer, usage_of_body

CHAT_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 8},
}
RESPONSES_USAGE = {
    "input_tokens": 9,
    "output_tokens": 4,
    "input_tokens_details": {"cached_tokens": 8},
}
MESSAGES_USAGE = {
    "input_tokens": 1,
    "cache_creation_input_tokens": 2,
    "cache_read_input_tokens": 8,
    "output_tokens": 4,
}


@pytest.mark.parametrize(
    ("dialect", "usage", "told"),
    [
        pytest.param(Dialect.CHAT, CHAT_USAGE, Usage(9, 4, 8), id="chat"),
        pytest.param(Dialect.RESPONSES, RESPONSES_USAGE, Usage(9, 4, 8), id="responses"),
        pytest.param(Dialect.MESSAGES, MESSAGES_USAGE, Usage(11, 4, 8), id="messages"),
        pytest.param(Dialect.JSON, {"prompt_tokens": 9}, Usage(9), id="embeddings"),
        pytest.param(Dialect.MESSAGES, {"input_tokens": 9}, Usage(9), id="no cache"),
        pytest.param(Dialect.MESSAGES, {"output_tokens": 4}, Usage(None, 4), id="output alone"),
        pytest.param(Dialect.CHAT, {"prompt_tokens": "9"}, UNKNOWN, id="no numbers"),
        pytest.param(Dialect.CHAT, None, UNKNOWN, id="null"),
        pytest.param(Dialect.CHAT, [1], UNKNOWN, id="no object"),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")], ids=["compact", "spaced"])
def test_usage_is_read_as_the_dialect_words_it(dialect, usage, told, separators):
    body = json.dumps({"id": "x", "usage": usage}, separators=separators).encode()

    assert usage_of_body(body, dialect) == told


def test_text_that_looks_like_usage_is_none():
    text = json.dumps({"usage": {"prompt_tokens": 1}})

    assert usage_of_body(json.dumps({"content": text}).encode(), Dialect.CHAT) == UNKNOWN


def test_the_last_usage_that_tells_something_counts():
    body = b'{"usage":{"prompt_tokens":1}} {"usage":{"prompt_tokens":2}} {"usage":null}'
    schema = b'{"tools":{"usage":{"type":"string"}}} {"usage":{'

    assert usage_of_body(body + schema, Dialect.CHAT) == Usage(2)


def test_it_is_not_looked_for_without_end():
    body = b'{"usage":{"prompt_tokens":1}}' + b'"usage":null,' * 100

    assert usage_of_body(body, Dialect.CHAT) == UNKNOWN


def test_a_messages_stream_tells_its_input_first_and_its_output_last():
    stream = json.dumps([{"usage": {"input_tokens": 5}}, {"usage": {"output_tokens": 7}}]).encode()

    first = first_usage(stream, Dialect.MESSAGES)
    last = usage_of_body(stream, Dialect.MESSAGES)

    assert (first, last) == (Usage(5), Usage(None, 7))
    assert merge(first, last) == Usage(5, 7)
    assert merge(first, Usage(6, 7, 1)) == Usage(6, 7, 1)
    assert first_usage(b"{}", Dialect.MESSAGES) == UNKNOWN


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param({"usage": CHAT_USAGE}, Usage(9, 4, 8), id="beside the output"),
        pytest.param({"usage": None, "x": {"usage": CHAT_USAGE}}, Usage(9, 4, 8), id="deeper"),
        pytest.param(
            {"usage": {"a": 1}, "x": {"usage": CHAT_USAGE}}, Usage(9, 4, 8), id="no counts"
        ),
        pytest.param({"x": [{"usage": CHAT_USAGE}]}, Usage(9, 4, 8), id="in a list"),
        pytest.param([{"usage": CHAT_USAGE}], Usage(9, 4, 8), id="no object"),
        pytest.param({"usage": [1]}, UNKNOWN, id="no usage"),
        pytest.param({}, UNKNOWN, id="nothing"),
        pytest.param("text", UNKNOWN, id="a text"),
    ],
)
def test_of_a_parsed_answer_the_same_is_read_as_of_its_bytes(answer, told):
    body = json.dumps(answer).encode()

    assert usage_of_answer(answer, body, Dialect.CHAT) == told
    assert usage_of_body(body, Dialect.CHAT) == told


def test_a_broken_usage_tells_nothing():
    assert usage_of_body(b'{"usage":{"prompt_tokens":1', Dialect.CHAT) == UNKNOWN
    assert usage_of_body(b'{"usage":{"a":{"prompt_tokens":1', Dialect.CHAT) == UNKNOWN
    assert usage_of_body(b'{"usage":{}}', Dialect.CHAT) == UNKNOWN
