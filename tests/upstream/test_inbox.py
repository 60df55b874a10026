from __future__ import annotations

import asyncio

import pytest
from aiohttp.base_protocol import BaseProtocol

from llmgw.core.frames import (
    Closed,
    Message,
    Opcode,
    close_payload,
    control_frame,
    frame_head,
)
from llmgw.upstream.inbox import Inbox, MaskedReader, build_reader
from tests.fakes.wire_frames import TEXT, close, frame


class FakeProtocol(BaseProtocol):
    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self._upgraded = True


class FakeOwner:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_ping(self, payload: bytes) -> None:
        self.heard.append(payload)

    def on_end(self, closed: Closed) -> None:
        self.heard.append((closed, closed.broken))

    def on_lost(self) -> None:
        self.heard.append("lost")


class Box:
    def __init__(self, limit: int = 1_000_000) -> None:
        self.protocol = FakeProtocol()
        self.owner = FakeOwner()
        self.inbox = Inbox(self.protocol, self.owner, asyncio.get_running_loop())
        self.reader = build_reader(self.inbox, limit)

    def feed(self, *data: bytes) -> None:
        self.reader.feed_data(b"".join(data))


def text(data: bytes) -> bytes:
    return frame_head(Opcode.TEXT, len(data)) + data


async def test_control_frames_pass_by_what_waits():
    box = Box()

    box.feed(text(b"a"), control_frame(Opcode.PING, b"p"), control_frame(Opcode.PONG, b"q"))

    assert box.owner.heard == [b"p"]
    assert await box.inbox.receive() == Message(b"a")


async def test_many_messages_that_nobody_reads_stop_the_reading_until_they_are_read():
    box = Box()
    for _ in range(4):
        box.feed(text(b"x" * 50_000))
    assert box.protocol._reading_paused

    for _ in range(4):
        await box.inbox.receive()

    assert not box.protocol._reading_paused


async def test_a_close_is_told_at_once_and_read_last():
    box = Box()

    box.feed(text(b"a"), control_frame(Opcode.CLOSE, close_payload(1000, "done")))

    assert box.owner.heard == [(Closed(1000, "done"), False)]
    assert await box.inbox.receive() == Message(b"a")
    assert await box.inbox.receive() == Closed(1000, "done")


async def test_a_close_without_a_code_is_1005():
    box = Box()

    box.feed(control_frame(Opcode.CLOSE))

    assert await box.inbox.receive() == Closed(1005)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(frame_head(Opcode.TEXT, 101), 1009, id="too long"),
        pytest.param(b"\xf1\x00", 1002, id="reserved bits"),
        pytest.param(b"\x80\x00", 1002, id="a continuation of nothing"),
    ],
)
async def test_a_broken_protocol_ends_it_with_the_code_that_names_why(data, code):
    box = Box(limit=100)

    box.feed(data)

    assert box.owner.heard == [(Closed(code, broken=True), True)]
    assert await box.inbox.receive() == Closed(code, broken=True)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(close(1005, mask=None), 1002, id="no code, as a code"),
        pytest.param(close(1006, mask=None), 1002, id="no close frame, as a code"),
        pytest.param(close(1015, mask=None), 1002, id="a TLS failure, as a code"),
        pytest.param(close(5000, mask=None), 1002, id="a code without meaning"),
        pytest.param(close(1000, b"\xff", mask=None), 1007, id="a reason that is no UTF-8"),
        pytest.param(text(b"\xff"), 1007, id="a text that is no UTF-8"),
    ],
)
async def test_what_must_not_be_said_breaks_the_protocol(data, code):
    box = Box()

    box.feed(data)

    assert box.owner.heard == [(Closed(code, broken=True), True)]


async def test_bytes_that_are_no_text_may_come_as_binary():
    box = Box()

    box.feed(frame_head(Opcode.BINARY, 1), b"\xff")

    assert await box.inbox.receive() == Message(b"\xff", is_text=False)


async def test_behind_a_close_frame_nothing_counts():
    box = Box()
    ping = control_frame(Opcode.PING, b"p")

    box.feed(close(1000, mask=None), close(1001, mask=None), ping, text(b"a"), b"\xff\x00")

    assert box.owner.heard == [(Closed(1000), False)]
    assert await box.inbox.receive() == Closed(1000)


async def test_an_end_of_ours_lets_the_peers_close_frame_come_in():
    box = Box()
    box.feed(*[text(b"x" * 50_000)] * 4, text(b"y"), close(1001, mask=None))
    assert box.protocol._reading_paused

    box.inbox.end(Closed(1001))

    assert await box.inbox.receive() == Closed(1001)
    assert box.owner.heard == [(Closed(1001), False)]
    assert not box.protocol._reading_paused


async def test_what_a_client_sends_is_masked_or_ends_it():
    box = Box()
    reader = MaskedReader(box.inbox, 1000)

    reader.feed_data(frame(TEXT, b"a"))
    reader.feed_data(frame(TEXT, b"b", mask=None))

    assert box.owner.heard == [(Closed(1002, broken=True), True)]
    assert await box.inbox.receive() == Message(b"a")

    reader.feed_eof()

    assert box.owner.heard[1:] == ["lost"]


async def test_a_message_as_long_as_the_limit_is_taken():
    box = Box(limit=100)

    box.feed(text(b"x" * 100))

    assert await box.inbox.receive() == Message(b"x" * 100)


async def test_an_end_of_ours_wakes_the_reader_and_forgets_the_rest():
    box = Box()
    reading = asyncio.create_task(box.inbox.receive())
    await asyncio.sleep(0)

    box.inbox.end(Closed(1001))
    box.feed(text(b"late"))

    assert await reading == Closed(1001)
    assert await box.inbox.receive() == Closed(1001)
    assert box.owner.heard == []


async def test_a_lost_connection_is_told_once():
    box = Box()

    box.reader.feed_eof()
    box.reader.feed_eof()

    assert box.owner.heard == ["lost"]
    assert await box.inbox.receive() == Closed(1006)


async def test_dropping_what_waits_leaves_what_comes():
    box = Box()
    box.feed(text(b"a"), text(b"b"))

    await box.inbox.drop()
    box.feed(text(b"c"))

    assert await box.inbox.receive() == Message(b"c")
