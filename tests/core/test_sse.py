import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmgw.core import sse
from llmgw.core.sse import (
    BLANK_LINE,
    BOM,
    EventCutter,
    close_event,
    ends_between_events,
    missing_line_ends,
    parse_event,
)
from tests.fakes.events import reframed

STREAM = (
    ': comment\n\nevent: a\ndata: {"x": "naïve 東京 🦀"}\nid: 7\n\n'
    "data:one\ndata: two\ndata\n\nretry: 5\nerror: ignored\n\n\ndata: [DONE]\n\n"
).encode()
SEEN = [("a", '{"x": "naïve 東京 🦀"}'.encode()), (None, b"one\ntwo\n"), (None, b"[DONE]")]

LINE_ENDS = pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])


def cut(*reads):
    """All events, and the bytes that they and the pending ones are made of."""
    cutter = EventCutter()
    events = [event for read in reads for event in cutter.feed(read)]
    assert cutter.pending_size == len(cutter.pending)
    return events, b"".join(event.raw for event in events) + cutter.pending


def shown(events):
    return [(event.name, event.data) for event in events if event.data]


@LINE_ENDS
@pytest.mark.parametrize("start", [b"", BOM], ids=["plain", "BOM"])
def test_events_and_bytes_are_the_same_wherever_the_stream_is_cut(line_end, start):
    stream = start + reframed(STREAM, line_end)

    for at in range(len(stream) + 1):
        events, raw = cut(stream[:at], stream[at:])
        assert shown(events) == SEEN
        assert raw == stream


@LINE_ENDS
def test_events_are_the_same_byte_by_byte(line_end):
    stream = BOM + reframed(STREAM, line_end)

    events, raw = cut(*(stream[at : at + 1] for at in range(len(stream))))

    assert shown(events) == SEEN
    assert raw == stream


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"data:", b" ", b"x", b"event:", b":", BOM])),
    st.lists(st.integers(1, 9)),
)
def test_no_byte_is_lost_or_moved_in_any_stream(pieces, sizes):
    stream, reads = b"".join(pieces), []
    rest = stream
    for size in sizes:
        reads.append(rest[:size])
        rest = rest[size:]

    events, raw = cut(*reads, rest)
    whole, _ = cut(stream)

    assert raw == stream
    assert shown(events) == shown(whole)


@pytest.mark.parametrize("end", [b"\r\r", b"\n\r", b"\r\n\r"], ids=["CR", "LF CR", "CR LF CR"])
def test_an_event_whose_blank_line_ends_with_cr_does_not_wait_for_what_follows(end):
    cutter = EventCutter()

    assert shown(cutter.feed(b"data: x" + end)) == [(None, b"x")]
    assert shown(cutter.feed(b"\ndata: y\n\n")) == [(None, b"y")]


@LINE_ENDS
def test_line_ends_in_a_row_end_one_event_however_many_they_are(line_end):
    ends = line_end * 100

    events, _ = cut(b"data: a" + ends + b"data: b" + ends)

    assert [(event.data, event.raw) for event in events] == [
        (b"a", b"data: a" + ends),
        (b"b", b"data: b" + ends),
    ]


def test_a_block_of_comments_is_an_event_without_data():
    (event,), _ = cut(b": tick\n:\n\n")

    assert (event.name, event.data) == (None, b"")


@pytest.mark.parametrize(
    ("raw", "name", "data"),
    [
        pytest.param(b"data:  x\n\n", None, b" x", id="one space is the standard's"),
        pytest.param(b"data: x\nevent: n\n\n", "n", b"x", id="fields in any order"),
        pytest.param(b"event: a\nevent: b\ndata: x\n\n", "b", b"x", id="the last name counts"),
        pytest.param(b"event:\ndata: x\n\n", None, b"x", id="an empty name is none"),
        pytest.param(b"event: \xff\ndata: x\n\n", "\ufffd", b"x", id="a name that is no UTF-8"),
        pytest.param(b"data: a:b\n\n", None, b"a:b", id="the first colon parts"),
        pytest.param(b"Data: x\n data: y\n\n", None, b"", id="other fields are ignored"),
        pytest.param(b": data: x\n\n", None, b"", id="a comment never becomes data"),
    ],
)
def test_fields_are_read_by_the_standard(raw, name, data):
    event = parse_event(raw)

    assert (event.name, event.data) == (name, data)


def test_only_the_first_byte_order_mark_is_taken_off():
    events, _ = cut(BOM + b"data: x\n\n" + BOM + b"data: y\n\n")

    assert [event.data for event in events] == [b"x", b""]


def test_a_large_line_costs_no_more_by_the_byte(monkeypatch):
    searched = []

    class Watched:
        """Stands in for the pattern, and notes how many bytes each search has before it."""

        def search(self, data, start):
            searched.append(len(data) - start)
            return BLANK_LINE.search(data, start)

    monkeypatch.setattr(sse, "BLANK_LINE", Watched())
    line = b"data: " + b"x" * 3000 + b"\n\n"

    events, _ = cut(*(line[at : at + 1] for at in range(len(line))))

    assert len(events) == 1
    assert len(searched) == len(line) + 1
    assert max(searched) <= 3  # the new byte, and those that may be half of a blank line


@pytest.mark.parametrize(
    ("pending", "added"),
    [
        pytest.param(b'data: {"a":1}', b"\n\n", id="no line end at all"),
        pytest.param(b'data: {"a":1}\n', b"\n", id="no blank line"),
        pytest.param(b'data: {"a":1}\r\n', b"\n", id="CR LF"),
        pytest.param(b'data: {"a":1}\r', b"\n\n", id="after CR an LF ends no line"),
        pytest.param(b'data: {"a":\ndata: 1}\n', b"\n", id="several lines"),
        pytest.param(b"data: [DONE]", b"\n\n", id="done"),
        pytest.param(BOM + b"data: null", b"\n\n", id="a BOM and null"),
    ],
)
def test_the_last_event_gets_the_line_ends_it_lacks(pending, added):
    event = close_event(pending)

    assert event is not None
    assert event.raw == pending + added
    assert missing_line_ends(pending) == added
    assert [one.data for one in cut(event.raw)[0]] == [event.data]


@pytest.mark.parametrize(
    "pending", [b"", b"\n", b'data: {"a":', b"data: [DON", b"event: x\n", b": tick\n"]
)
def test_an_event_without_whole_data_can_not_be_ended(pending):
    cutter = EventCutter()
    cutter.feed(pending)

    assert cutter.close() is None


@pytest.mark.parametrize("tail", [b"", b"x\n\n", b"x\r\n\r\n", b"x\r\r", b"x\r\n\n", b"x\n\r\n"])
def test_after_a_blank_line_anything_may_follow(tail):
    assert ends_between_events(tail)
    assert ends_between_events(bytearray(tail))


@pytest.mark.parametrize("tail", [b"x", b"x\n", b"x\r\n", b"x\r", b"\n\nx\r\n", b"x\n\n "])
def test_inside_an_event_nothing_may_follow(tail):
    assert not ends_between_events(tail)


def test_what_an_event_says_is_not_in_its_text():
    assert repr(parse_event(b"event: a\ndata: a secret\n\n")) == "Event(name='a')"
