import pytest

from llmgw.core.sight import Sight, sight_of
from llmgw.core.sse import parse_event
from llmgw.core.types import Dialect
from tests.fakes.events import (
    COMPLETED,
    CREATED,
    DONE,
    ENGINE_DIED,
    FAILED,
    HELLO,
    MESSAGE_DELTA,
    MESSAGE_START,
    MESSAGE_STOP,
    OVERLOADED,
    ROLE,
    STOP,
    TEXT_DELTA,
    USAGE,
    chunk,
    data,
    named,
)

TOOL_CALL = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": ""}}


def sight(event, dialect):
    return sight_of(parse_event(event), dialect)


def added(**item):
    return named("response.output_item.added", item={"id": "i", "status": "in_progress", **item})


def part(**part):
    return named("response.content_part.added", part=part)


def block(**content_block):
    return named("content_block_start", index=0, content_block=content_block)


def incomplete(**response):
    return named("response.incomplete", response=response)


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(b": tick\n\n", id="a comment"),
        pytest.param(b"data:\n\n", id="empty data"),
        pytest.param(b'error: {"message": "m"}\n\n', id="a field that the standard ignores"),
        pytest.param(b"event: error\n\n", id="a name without data"),
    ],
)
def test_what_no_client_dispatches_is_hidden(event, dialect):
    assert sight(event, dialect) is Sight.HIDDEN


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(ENGINE_DIED, id="an error object"),
        pytest.param(OVERLOADED, id="a typed error"),
        pytest.param(b"event: error\ndata: lost\n\n", id="an event named error"),
        pytest.param(b'event: error\ndata: {"type": "server_error"}\n\n', id="a bare error"),
        pytest.param(data({"type": "error", "code": "c", "message": "m"}), id="a flat error"),
    ],
)
def test_an_error_is_a_fault_in_every_dialect(event, dialect):
    assert sight(event, dialect) is Sight.FAULT


@pytest.mark.parametrize("dialect", [Dialect.CHAT, Dialect.COMPLETIONS])
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(ROLE, id="role only"),
        pytest.param(chunk(), id="empty delta"),
        pytest.param(chunk(role="assistant", content=None, tool_calls=[]), id="empty members"),
        pytest.param(USAGE, id="usage with empty choices"),
        pytest.param(data({"usage": {"total_tokens": 5}}), id="usage alone"),
        pytest.param(data({"choices": [], "prompt_filter_results": [{}]}), id="prompt filter"),
        pytest.param(data({"choices": None}), id="choices: null"),
        pytest.param(data({"choices": [{"index": 0}]}), id="no delta"),
        pytest.param(data({"choices": [{"delta": None, "finish_reason": ""}]}), id="null delta"),
        pytest.param(data({"choices": [None]}), id="a null choice"),
        pytest.param(data({"choices": [{"text": "", "finish_reason": None}]}), id="empty text"),
        pytest.param(data({"error": None, "choices": []}), id="error: null"),
        pytest.param(b"data: : keepalive\n\n", id="data that is no JSON"),
        pytest.param(data({}), id="an empty object"),
        pytest.param(data({"type": "ping"}), id="a ping"),
        pytest.param(b'event: keepalive\ndata: {"t": 1}\n\n', id="a keepalive"),
    ],
)
def test_a_chunk_that_shows_nothing_is_hidden(event, dialect):
    assert sight(event, dialect) is Sight.HIDDEN


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(HELLO, id="content"),
        pytest.param(chunk(content="\n"), id="a line end"),
        pytest.param(chunk(content=[{"type": "text", "text": ""}]), id="content parts"),
        pytest.param(chunk(refusal="no"), id="refusal"),
        pytest.param(chunk(reasoning_content="hm"), id="reasoning_content"),
        pytest.param(chunk(reasoning="hm"), id="reasoning"),
        pytest.param(chunk(tool_calls=[TOOL_CALL]), id="tool call"),
        pytest.param(chunk(function_call={"name": "f"}), id="function call"),
        pytest.param(chunk(audio={"id": "a"}), id="audio"),
        pytest.param(chunk(images=["i"]), id="a member invented since"),
        pytest.param(STOP, id="finish reason"),
        pytest.param(chunk(index=1, content="B"), id="another choice"),
        pytest.param(
            data({"choices": [{"delta": {}}, {"delta": {"content": "B"}}]}), id="second of two"
        ),
        pytest.param(data({"choices": [{"text": "Hel"}]}), id="text"),
        pytest.param(data({"choices": [{"message": {"content": "Hi"}}]}), id="a message"),
        pytest.param(data({"choices": [{"delta": "Hi"}]}), id="a delta of another type"),
        pytest.param(data({"choices": ["Hi"]}), id="a choice of another type"),
        pytest.param(data({"choices": {"0": {}}}), id="choices of another type"),
        pytest.param(b'data: {"choices":[{"delta":{"content":"\\ud83e"}}]}\n\n', id="surrogate"),
        pytest.param(data({"vendor": 1}), id="an unknown object"),
        pytest.param(data([1]), id="no object"),
    ],
)
def test_a_chunk_that_shows_something_is_visible(event):
    assert sight(event, Dialect.CHAT) is Sight.VISIBLE


@pytest.mark.parametrize("dialect", [Dialect.CHAT, Dialect.COMPLETIONS, Dialect.JSON])
def test_done_is_terminal(dialect):
    assert sight(DONE, dialect) is Sight.TERMINAL


def test_an_error_that_is_text_is_a_fault_of_a_chat():
    assert sight(data({"error": "model crashed"}), Dialect.CHAT) is Sight.FAULT


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        pytest.param(CREATED, Sight.HIDDEN, id="created"),
        pytest.param(named("response.queued"), Sight.HIDDEN, id="queued"),
        pytest.param(named("response.in_progress"), Sight.HIDDEN, id="in progress"),
        pytest.param(named("keepalive", sequence_number=3), Sight.HIDDEN, id="keepalive"),
        pytest.param(named("ping"), Sight.HIDDEN, id="ping"),
        pytest.param(added(type="message", role="assistant", content=[]), Sight.HIDDEN, id="item"),
        pytest.param(
            added(type="reasoning", summary=[], encrypted_content="x"), Sight.HIDDEN, id="thought"
        ),
        pytest.param(
            added(type="message", content=[{"text": "Hi"}]), Sight.VISIBLE, id="item with content"
        ),
        pytest.param(
            added(type="function_call", name="f", arguments=""), Sight.VISIBLE, id="tool call"
        ),
        pytest.param(named("response.output_item.added"), Sight.VISIBLE, id="no item"),
        pytest.param(part(type="output_text", text="", annotations=[]), Sight.HIDDEN, id="part"),
        pytest.param(part(type="output_text", text="H"), Sight.VISIBLE, id="part with text"),
        pytest.param(
            named("response.output_text.delta", delta=""), Sight.HIDDEN, id="empty delta"
        ),
        pytest.param(TEXT_DELTA, Sight.VISIBLE, id="delta"),
        pytest.param(named("response.custom.delta"), Sight.VISIBLE, id="a delta without one"),
        pytest.param(named("response.output_text.done", text=""), Sight.VISIBLE, id="done"),
        pytest.param(named("response.invented"), Sight.VISIBLE, id="unknown"),
        pytest.param(data({"vendor": 1}), Sight.VISIBLE, id="no type"),
        pytest.param(DONE, Sight.VISIBLE, id="no JSON"),
        pytest.param(COMPLETED, Sight.TERMINAL, id="completed"),
        pytest.param(incomplete(), Sight.TERMINAL, id="incomplete"),
        pytest.param(
            incomplete(incomplete_details={"reason": "max_output_tokens"}),
            Sight.TERMINAL,
            id="cap",
        ),
        pytest.param(
            incomplete(incomplete_details={"reason": "server_error"}), Sight.FAULT, id="failed cap"
        ),
        pytest.param(incomplete(error={"code": "c"}), Sight.FAULT, id="incomplete with error"),
        pytest.param(FAILED, Sight.FAULT, id="failed"),
    ],
)
def test_a_responses_event_is_seen_by_its_type(event, seen):
    assert sight(event, Dialect.RESPONSES) is seen


def test_the_type_in_the_data_counts_before_the_name():
    event = b'event: response.created\ndata: {"type": "response.output_text.done"}\n\n'

    assert sight(event, Dialect.RESPONSES) is Sight.VISIBLE
    assert sight(b"event: response.created\ndata: {}\n\n", Dialect.RESPONSES) is Sight.HIDDEN


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        pytest.param(MESSAGE_START, Sight.HIDDEN, id="start"),
        pytest.param(named("ping"), Sight.HIDDEN, id="ping"),
        pytest.param(block(type="text", text=""), Sight.HIDDEN, id="empty text"),
        pytest.param(
            block(type="thinking", thinking="", signature=""), Sight.HIDDEN, id="thought"
        ),
        pytest.param(block(type="text", text="Hi"), Sight.VISIBLE, id="text"),
        pytest.param(block(type="tool_use", id="t", name="f", input={}), Sight.VISIBLE, id="tool"),
        pytest.param(named("content_block_delta", delta={"text": "H"}), Sight.VISIBLE, id="delta"),
        pytest.param(named("content_block_stop"), Sight.VISIBLE, id="stop of a block"),
        pytest.param(MESSAGE_DELTA, Sight.VISIBLE, id="message delta"),
        pytest.param(named("invented"), Sight.VISIBLE, id="unknown"),
        pytest.param(MESSAGE_STOP, Sight.TERMINAL, id="stop"),
    ],
)
def test_a_messages_event_is_seen_by_its_type(event, seen):
    assert sight(event, Dialect.MESSAGES) is seen


@pytest.mark.parametrize("event", [data({"type": "transcript.text.delta"}), b"data: text\n\n"])
def test_a_stream_without_a_dialect_shows_all_its_data(event):
    assert sight(event, Dialect.JSON) is Sight.VISIBLE
