import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.core.errors import FaultKind
from llmgw.core.failures import ErrorObject
from llmgw.core.relay import (
    Faulted,
    Held,
    OpenRelay,
    Relay,
    Release,
    ReleaseCause,
)
from llmgw.core.types import Dialect
from tests.fakes.events import (
    COMPLETED,
    CREATED,
    DONE,
    ENGINE_DIED,
    FAILED,
    HELLO,
    MESSAGE_START,
    OVERLOADED,
    ROLE,
    STOP,
    TEXT_DELTA,
    USAGE,
    data,
    named,
    reframed,
)

CHAT = ROLE + HELLO + STOP + USAGE + DONE
PREAMBLE = b": tick\n\n" + data({"choices": []}) + ROLE


def relay(dialect=Dialect.CHAT, *, hold=10_000, event=10_000):
    return Relay(dialect, hold_bytes=hold, max_event_bytes=event)


def run(stream, cuts=(), dialect=Dialect.CHAT, **limits):
    """The decision, and all bytes that the client would get of the stream."""
    one, start = relay(dialect, **limits), 0
    for end in (*sorted(cuts), len(stream)):
        verdict = one.feed(stream[start:end])
        start = end
        if isinstance(verdict, Release):
            return verdict.cause, verdict.data + stream[end:]
        if isinstance(verdict, Faulted):
            return verdict, b""
    verdict = one.end()
    return (verdict.cause, verdict.data) if isinstance(verdict, Release) else (verdict, b"")


@pytest.mark.parametrize(
    ("dialect", "hidden", "shown"),
    [
        pytest.param(Dialect.CHAT, PREAMBLE, HELLO, id="chat"),
        pytest.param(Dialect.RESPONSES, CREATED, TEXT_DELTA, id="responses"),
        pytest.param(Dialect.MESSAGES, MESSAGE_START, named("x"), id="messages"),
    ],
)
def test_all_is_withheld_until_the_first_visible_event(dialect, hidden, shown):
    one = relay(dialect)

    assert one.feed(hidden) == Held()
    assert one.feed(shown[:-1]) == Held()
    assert one.feed(shown[-1:] + b"data: {") == Release(
        hidden + shown + b"data: {", ReleaseCause.VISIBLE
    )


@pytest.mark.parametrize(
    ("dialect", "stream"),
    [(Dialect.CHAT, ROLE + DONE), (Dialect.RESPONSES, CREATED + COMPLETED)],
)
def test_a_blank_answer_that_is_complete_is_an_answer(dialect, stream):
    assert relay(dialect).feed(stream) == Release(stream, ReleaseCause.TERMINAL)


@pytest.mark.parametrize(
    ("dialect", "stream", "error", "body"),
    [
        pytest.param(
            Dialect.CHAT,
            PREAMBLE + ENGINE_DIED + DONE,
            ErrorObject(500, "InternalServerError", None, "m"),
            {"error": {"message": "m", "type": "InternalServerError", "code": 500}},
            id="an engine that died",
        ),
        pytest.param(
            Dialect.RESPONSES,
            CREATED + FAILED,
            ErrorObject("server_error", None, None, "m"),
            {"error": {"code": "server_error", "message": "m"}},
            id="response.failed",
        ),
        pytest.param(
            Dialect.MESSAGES,
            MESSAGE_START + OVERLOADED,
            ErrorObject(None, "overloaded_error", None, "m"),
            {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
            id="overloaded",
        ),
    ],
)
def test_a_failure_before_output_takes_the_place_of_the_answer(dialect, stream, error, body):
    verdict = relay(dialect).feed(stream)

    assert isinstance(verdict, Faulted)
    assert (verdict.kind, verdict.error) == (FaultKind.IN_BAND, error)
    assert json.loads(verdict.body) == body


def test_a_failure_without_an_error_object_has_no_body():
    assert relay().feed(data({"error": "crashed"})) == Faulted(FaultKind.IN_BAND)


def test_an_error_after_output_in_the_same_read_passes_as_it_is():
    stream = ROLE + HELLO + ENGINE_DIED

    assert relay().feed(stream) == Release(stream, ReleaseCause.VISIBLE)


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"", id="no byte"),
        pytest.param(b": ok\n\nerror: {}\n\n", id="ignored fields"),
        pytest.param(ROLE, id="a preamble"),
        pytest.param(ROLE[:-2], id="a preamble without its blank line"),
        pytest.param(ROLE + HELLO[:-9], id="half an event"),
    ],
)
def test_a_stream_that_ends_before_it_showed_anything_is_empty(stream):
    assert run(stream) == (Faulted(FaultKind.EMPTY), b"")


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        pytest.param(STOP, ReleaseCause.VISIBLE, id="finish reason"),
        pytest.param(DONE, ReleaseCause.TERMINAL, id="done"),
    ],
)
@pytest.mark.parametrize("missing", [1, 2])
def test_a_last_event_that_lacks_line_ends_counts_and_gets_them(last, cause, missing):
    assert run(ROLE + last[:-missing]) == (cause, ROLE + last)


def test_an_error_that_lacks_line_ends_counts_too():
    verdict, _ = run(ROLE + ENGINE_DIED.rstrip())

    assert verdict.kind is FaultKind.IN_BAND


def test_the_decision_and_the_bytes_are_the_same_for_every_cut():
    for line_end in (b"\n", b"\r\n", b"\r"):
        stream = reframed(PREAMBLE + CHAT, line_end)
        for at in range(len(stream) + 1):
            assert run(stream, [at]) == (ReleaseCause.VISIBLE, stream)


EVENTS = st.sampled_from([b": t\n\n", ROLE, HELLO, STOP, USAGE, ENGINE_DIED, DONE, b"data: {"])


@given(
    st.lists(EVENTS, max_size=6).map(b"".join),
    st.lists(st.integers(0, 600), max_size=8),
    st.sampled_from([50, 200, 10_000]),
)
def test_no_cut_changes_what_becomes_of_any_stream(stream, cuts, hold):
    cuts = [min(one, len(stream)) for one in cuts]

    assert run(stream, cuts, hold=hold) == run(stream, hold=hold)


def test_what_is_withheld_is_bounded():
    one = relay(hold=2 * len(ROLE))

    assert one.feed(ROLE + ROLE) == Held()
    assert one.feed(b": t\n\n" + ROLE) == Release(
        ROLE + ROLE + b": t\n\n" + ROLE, ReleaseCause.OVERFLOW
    )


def test_one_event_may_be_larger_than_all_that_is_withheld():
    stream = ROLE + HELLO

    assert run(stream, range(len(stream)), hold=len(ROLE)) == (ReleaseCause.VISIBLE, stream)


@pytest.mark.parametrize("end", [b"", b"\n\n"], ids=["open", "whole"])
def test_a_single_event_is_bounded_too(end):
    event = b"data: " + b"x" * 100 + end

    assert relay(event=100).feed(ROLE[:0] + event) == Release(event, ReleaseCause.OVERFLOW)


def test_a_released_or_faulted_attempt_shows_no_content_in_its_representation():
    assert "Hello" not in repr(relay().feed(HELLO))
    assert "died" not in repr(relay().feed(data({"error": {"message": "died"}})))


def test_an_open_relay_withholds_nothing():
    one = OpenRelay()

    assert one.feed(CREATED) == Release(CREATED, ReleaseCause.UNHELD)
    assert one.end() == Faulted(FaultKind.EMPTY)
