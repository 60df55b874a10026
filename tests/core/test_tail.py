import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.core.conclusion import Outcome, outcome_of
from llmgw.core.sse import BOM
from llmgw.core.tail import SLACK_BYTES, Ending, EndingKind, Tail
from llmgw.core.types import Dialect
from llmgw.core.usage import UNKNOWN, Usage
from tests.counting import calls
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
    reframed,
)

COMPLETE = Ending(EndingKind.COMPLETE)
MISSING = Ending(EndingKind.MISSING_TERMINAL)
BROKEN = Ending(EndingKind.BROKEN)
CHAT = ROLE + HELLO + STOP + USAGE + DONE
LARGE = 300_000


def tail(*reads, dialect=Dialect.CHAT, **limits):
    one = Tail(dialect, **limits)
    for read in reads:
        one.push(read)
    return one


def pieces(stream, size):
    return (stream[at : at + size] for at in range(0, len(stream), size))


def large(kind, *, name=True, **members):
    """A terminal event that no tail can hold, as a provider orders its members."""
    event = named(kind, response={"output": "x" * LARGE, **members})
    return event if name else event.partition(b"\n")[2]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_a_whole_stream_is_complete_in_any_framing_and_cut(line_end, size):
    one = tail(*pieces(BOM + reframed(CHAT, line_end), size))

    assert one.is_between_events()
    assert one.outcome().is_terminal
    assert one.is_done()
    assert one.ending() == COMPLETE
    assert one.usage() == Usage(3, 2)


@pytest.mark.parametrize("at", range(len(HELLO)))
def test_nothing_may_be_inserted_inside_an_event(at):
    assert tail(ROLE, HELLO[:at]).is_between_events() is (at == 0)


@pytest.mark.parametrize(
    ("stream", "ending"),
    [
        pytest.param(ROLE + HELLO, MISSING, id="after an event"),
        pytest.param(HELLO + STOP, COMPLETE, id="after a finish reason"),
        pytest.param(HELLO + ENGINE_DIED, COMPLETE, id="after an error of the upstream"),
        pytest.param(HELLO + HELLO[:-5], BROKEN, id="inside JSON"),
        pytest.param(HELLO + b"data: [DON", BROKEN, id="inside done"),
        pytest.param(HELLO + b"event: x\n", BROKEN, id="before the data"),
        pytest.param(HELLO + STOP + USAGE[:-5], BROKEN, id="inside the usage"),
        pytest.param(CHAT + HELLO[:-5], COMPLETE, id="inside what follows done"),
        pytest.param(
            HELLO + ENGINE_DIED + b"data: [D", COMPLETE, id="inside what follows an error"
        ),
        pytest.param(
            HELLO + STOP[:-1], Ending(EndingKind.COMPLETE, b"\n"), id="one line end missing"
        ),
        pytest.param(
            HELLO + STOP[:-2], Ending(EndingKind.COMPLETE, b"\n\n"), id="both line ends missing"
        ),
        pytest.param(
            HELLO + DONE[:-2], Ending(EndingKind.COMPLETE, b"\n\n"), id="done without line ends"
        ),
        pytest.param(
            ROLE + HELLO[:-2],
            Ending(EndingKind.MISSING_TERMINAL, b"\n\n"),
            id="output without line ends",
        ),
        pytest.param(HELLO + b": tick\n", MISSING, id="after a comment line"),
        pytest.param(
            HELLO + b": tick", Ending(EndingKind.MISSING_TERMINAL, b"\n"), id="inside a comment"
        ),
        pytest.param(HELLO + DONE + b": bye\n", COMPLETE, id="a comment after done"),
    ],
)
def test_how_a_chat_ended(stream, ending):
    assert tail(stream).ending() == ending
    assert tail(stream).ending(cut=True) == ending


@given(st.lists(st.sampled_from([HELLO, STOP, USAGE, b": t\n\n", b"data: {"])), st.integers(1, 99))
def test_no_cut_changes_what_a_tail_says(events, size):
    stream = b"".join(events)
    one, other = tail(stream), tail(*pieces(stream, size))

    assert one.ending() == other.ending()
    assert one.outcome() == other.outcome()
    assert one.is_done() is other.is_done() is False


def test_a_completed_ending_is_one_that_anything_may_follow():
    for at in range(len(CHAT)):
        ending = tail(CHAT[:at]).ending()
        if ending.kind is not EndingKind.BROKEN:
            assert tail(CHAT[:at], ending.completion).is_between_events()


def test_a_stream_without_a_dialect_is_complete_unless_its_connection_broke():
    one = tail(data({"type": "transcript.text.done"}), dialect=Dialect.JSON)

    assert not one.outcome().is_terminal
    assert one.ending() == COMPLETE
    assert one.ending(cut=True) == MISSING


@pytest.mark.parametrize(
    ("dialect", "before", "last"),
    [
        (Dialect.CHAT, HELLO, DONE),
        (Dialect.JSON, HELLO, DONE),
        (Dialect.RESPONSES, TEXT_DELTA, COMPLETED),
        (Dialect.RESPONSES, TEXT_DELTA, COMPLETED.partition(b"\n")[2]),
        (Dialect.RESPONSES, TEXT_DELTA, FAILED),
        (Dialect.MESSAGES, MESSAGE_DELTA, MESSAGE_STOP),
        (Dialect.MESSAGES, MESSAGE_DELTA, OVERLOADED),
    ],
)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
def test_the_last_event_is_noticed_when_its_last_byte_arrives(dialect, before, last, line_end):
    before, last = reframed(before, line_end), reframed(last, line_end)
    one = tail(before, dialect=dialect)

    for at in range(len(last)):
        assert not one.is_done()
        one.push(last[at : at + 1])
    assert one.is_done()


@pytest.mark.parametrize("alone", [COMPLETED, DONE])
def test_the_last_event_may_be_the_only_one(alone):
    dialect = Dialect.CHAT if alone is DONE else Dialect.RESPONSES

    assert tail(alone, dialect=dialect).is_done()


@pytest.mark.parametrize(
    ("dialect", "stream"),
    [
        (Dialect.CHAT, b"data: x [DONE]\n\n"),
        (Dialect.CHAT, b": data: [DONE]\n\n"),
        (Dialect.CHAT, b"data: [DONE]\ndata: [DONE]\n\n"),
        (Dialect.CHAT, STOP),
        (Dialect.RESPONSES, named("response.output_text.delta", delta="response.completed")),
        (Dialect.RESPONSES, b"event: response.completed_twice\ndata: {}\n\n"),
        (Dialect.RESPONSES, COMPLETED + b": bye\n"),
    ],
)
def test_what_only_looks_like_the_last_event_is_none(dialect, stream):
    assert not tail(stream, dialect=dialect).is_done()


@pytest.mark.parametrize("size", [1000, 65536, 10**6])
@pytest.mark.parametrize("name", [True, False], ids=["named", "typed by its data"])
def test_a_last_event_larger_than_the_tail_is_known_by_its_beginning(size, name):
    usage = {"input_tokens": 3, "output_tokens": 2}
    event = large("response.completed", name=name, usage=usage)

    one = tail(*pieces(CREATED + TEXT_DELTA + event, size), dialect=Dialect.RESPONSES)

    assert one.is_done()
    assert one.outcome() == Outcome(is_terminal=True, is_said=True)
    assert one.ending() == COMPLETE
    assert one.usage() == Usage(3, 2)


def test_a_large_event_that_is_not_the_last_is_not_taken_for_it():
    event = named("response.output_item.done", item={"text": "x" * LARGE})
    stream = CREATED + event

    one = tail(*pieces(stream, 1000), dialect=Dialect.RESPONSES)
    assert not one.is_done()
    assert one.ending() == MISSING

    one.push(COMPLETED)
    assert one.is_done()
    assert one.ending() == COMPLETE


def test_the_failure_of_a_large_last_event_is_known_too():
    one = tail(*pieces(large("response.failed"), 1000), dialect=Dialect.RESPONSES)

    assert one.outcome() == Outcome(is_terminal=True, is_failed=True, is_said=True)


def test_inside_an_event_larger_than_the_tail_nothing_can_be_said():
    event = large("response.completed")

    assert tail(*pieces(event[:-9], 1000), dialect=Dialect.RESPONSES).ending() == BROKEN


def test_a_large_chunk_with_its_finish_reason_ends_a_chat():
    event = data({"choices": [{"delta": {"content": "x" * LARGE}, "finish_reason": "stop"}]})

    assert tail(*pieces(ROLE + event, 1000)).ending() == COMPLETE


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("limit", [200, 1000, 5000])
def test_what_is_retained_is_bounded_and_begins_at_an_event(line_end, limit):
    events = [reframed(one, line_end) for one in (*[HELLO, ROLE] * 200, STOP, USAGE, DONE)]

    one = tail(*events, limit=limit)

    assert len(one._kept) <= 2 * limit
    assert one._kept.startswith((b"data: ",))
    assert one.ending() == COMPLETE
    assert one.usage() == Usage(3, 2)


@pytest.mark.parametrize("size", range(1, 60))
def test_trimming_inside_an_event_never_joins_two(size):
    stream = chunk(content="x" * 300) + chunk(content="y" * 300) + STOP + DONE

    one = tail(*pieces(stream, size), limit=128)

    assert one.ending() == COMPLETE
    assert one.is_done()


def test_the_input_of_a_long_messages_stream_is_not_forgotten():
    delta = named("content_block_delta", index=0, delta={"type": "text_delta", "text": "x" * 99})
    stream = MESSAGE_START + delta * 1000 + MESSAGE_DELTA + MESSAGE_STOP

    one = tail(*pieces(stream, 4096), dialect=Dialect.MESSAGES)

    assert one.usage() == Usage(5, 7)
    assert one.ending() == COMPLETE


@pytest.mark.parametrize(
    ("stream", "usage"),
    [
        pytest.param(MESSAGE_START, Usage(5, 1), id="cut after its start"),
        pytest.param(MESSAGE_START + MESSAGE_DELTA, Usage(5, 7), id="whole"),
        pytest.param(MESSAGE_STOP, UNKNOWN, id="never told"),
    ],
)
def test_the_usage_of_a_short_messages_stream(stream, usage):
    assert tail(stream, dialect=Dialect.MESSAGES).usage() == usage


@pytest.mark.parametrize(
    ("stream", "number"),
    [(CREATED + TEXT_DELTA, 2), (b"", 0), (named("x", sequence_number="y"), 0)],
)
def test_an_error_event_continues_the_numbers_of_a_responses_stream(stream, number):
    assert tail(stream, dialect=Dialect.RESPONSES).next_sequence_number() == number


@pytest.mark.as_written("counts calls of Python functions")
def test_a_push_costs_no_more_as_the_stream_grows():
    one = Tail(Dialect.CHAT)

    def push():
        for _ in range(10 * SLACK_BYTES // len(HELLO)):
            one.push(HELLO)
            one.is_done()

    calls(push)  # until it is full
    costs, trims = zip(*((calls(push), calls(push, of=Tail._trim)) for _ in range(3)), strict=True)

    assert max(costs) <= 1.01 * min(costs)
    assert max(trims) <= 11  # it is moved as a whole, so not for every push


@pytest.mark.parametrize(
    ("pushed", "of_bytes", "events"),
    [
        pytest.param([], 13, 0, id="nothing but a keepalive of ours"),
        pytest.param([b"data: 1\n\n", b"data: 2\n\nda"], 20, 2, id="all of a short stream"),
        pytest.param([b"data: 1\r\n\r\n" * 3], 33, 3, id="another line end"),
        pytest.param([b"data: 1\n\n" * 9], 18 * 9, 18, id="half of what there was"),
    ],
)
def test_the_retained_events_stand_for_all(pushed, of_bytes, events):
    tail = Tail(Dialect.CHAT)
    for read in pushed:
        tail.push(read)

    assert tail.count_events(of_bytes) == events


@pytest.mark.parametrize(
    "dialect", [pytest.param(one, id=one) for one in (Dialect.CHAT, Dialect.COMPLETIONS)]
)
@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(HELLO + b"data: [DONE]\n\n", id="as usual"),
        pytest.param(HELLO * 20 + b"data: [DONE]\n\n", id="with many events"),
        pytest.param(b"\n\ndata: [DONE]\n\n", id="with nothing before it"),
        pytest.param(b'data: {"error":{"code":1}}\n\ndata: [DONE]\n\n', id="an error"),
        pytest.param(b'data: {"\\u0065rror":{}}\n\ndata: [DONE]\n\n', id="an error in disguise"),
        pytest.param(b"event: error\ndata: {}\n\ndata: [DONE]\n\n", id="an event named so"),
        pytest.param(b"data: {}\r\n\r\ndata: [DONE]\n\n", id="other line ends"),
        pytest.param(b"data: [DONE]\n\n", id="alone"),
        pytest.param(HELLO, id="no end"),
    ],
)
def test_the_short_way_to_an_outcome_leads_to_the_same(dialect, stream):
    tail = Tail(dialect)

    assert tail.take(stream) == tail.is_done()
    assert tail.outcome() == outcome_of(stream.replace(b"\r\n", b"\n")[:-2], dialect)


def test_what_is_taken_is_trimmed_like_what_is_pushed():
    taken, pushed = Tail(Dialect.CHAT, limit=100), Tail(Dialect.CHAT, limit=100)
    for _ in range(200):
        taken.take(HELLO)
        pushed.push(HELLO)

    assert taken.count_events(0) == pushed.count_events(0) > 0


@pytest.mark.parametrize("dialect", [Dialect.CHAT, Dialect.COMPLETIONS])
def test_who_pushes_past_it_finds_its_room(dialect):
    tail = Tail(dialect, limit=100)
    tail.push(b"data: 1\n\n")

    kept, most = tail.room
    kept += b"data: [DONE]\n\n"

    assert most == 200
    assert tail.is_done()


@pytest.mark.parametrize("dialect", [Dialect.MESSAGES, Dialect.RESPONSES])
def test_where_each_event_has_to_be_looked_at_there_is_none(dialect):
    assert Tail(dialect).room is None
