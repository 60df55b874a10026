"""One connection for small questions, on a transport of the test's own."""

import asyncio

import pytest

from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.upstream.inquiry import Inquiry
from llmgw.upstream.reply import Reply

QUESTION = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
HI = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
REPLY = Reply(200, b"hi", True)


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_open = True

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_open = False


class Shelf:
    """Who keeps the connection."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def take_back(self, inquiry: Inquiry) -> None:
        self.log.append("back")

    def forget(self, inquiry: Inquiry) -> None:
        self.log.append("gone")


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
async def inquiry(wire, shelf):
    made = Inquiry(shelf, ("http", "x", 80))
    made.connection_made(wire)
    return made


async def fault(asked: asyncio.Future[Reply]) -> FaultKind:
    with pytest.raises(UpstreamError) as raised:
        await asked
    return raised.value.kind


async def test_a_question_goes_out_and_its_answer_comes_in(inquiry, wire, shelf):
    asked = inquiry.ask(QUESTION, max_bytes=10)
    assert wire.written == QUESTION

    inquiry.data_received(HI[:20])
    assert not asked.done()
    inquiry.data_received(HI[20:])

    assert await asked == REPLY
    assert shelf.log == ["back"]


async def test_the_next_question_is_asked_on_the_same_connection(inquiry, wire):
    for _ in range(3):
        asked = inquiry.ask(QUESTION, max_bytes=10)
        inquiry.data_received(HI)
        assert await asked == REPLY

    assert wire.written == QUESTION * 3


async def test_an_answer_that_ends_the_connection_is_the_last(inquiry, wire, shelf):
    asked = inquiry.ask(QUESTION, max_bytes=1)
    inquiry.data_received(HI)

    assert await asked == Reply(200, b"h", False)
    assert (wire.is_open, shelf.log) == (False, ["gone"])


async def test_a_body_that_the_end_of_the_connection_ends(inquiry, shelf):
    asked = inquiry.ask(QUESTION, max_bytes=10)
    inquiry.data_received(b"HTTP/1.1 200 OK\r\n\r\nhi")
    inquiry.eof_received()
    inquiry.connection_lost(None)

    assert await asked == REPLY
    assert shelf.log == ["gone"]


@pytest.mark.parametrize(
    ("heard", "kind"),
    [
        (b"", FaultKind.LOST),
        (HI[:10], FaultKind.LOST),
        (HI[:-1], FaultKind.CUT),
        (b"HTTP/1.1 200 OK\r\n\r\nhi", FaultKind.CUT),
    ],
    ids=["nothing", "half a head", "half a body", "a body without length"],
)
async def test_a_reset_is_told_by_how_much_came(inquiry, heard, kind):
    asked = inquiry.ask(QUESTION, max_bytes=10)
    if heard:
        inquiry.data_received(heard)
    inquiry.connection_lost(ConnectionResetError())

    assert await fault(asked) is kind
    assert not inquiry.is_stale


async def test_what_is_not_http_ends_it(inquiry, wire):
    asked = inquiry.ask(QUESTION, max_bytes=10)
    inquiry.data_received(b"CANARY")

    assert await fault(asked) is FaultKind.INVALID
    assert not wire.is_open


async def test_it_may_be_given_up(inquiry, wire, shelf):
    asked = inquiry.ask(QUESTION, max_bytes=10)
    inquiry.give_up()

    assert await fault(asked) is FaultKind.TIMEOUT
    assert (wire.is_open, shelf.log) == (False, ["gone"])


class TestUsedBefore:
    @pytest.fixture(autouse=True)
    async def used(self, inquiry):
        asked = inquiry.ask(QUESTION, max_bytes=10)
        inquiry.data_received(HI)
        await asked

    @pytest.mark.parametrize("heard", [b"", b"H"], ids=["nothing", "a byte"])
    async def test_a_close_before_any_byte_is_stale(self, inquiry, heard):
        asked = inquiry.ask(QUESTION, max_bytes=10)
        if heard:
            inquiry.data_received(heard)
        inquiry.eof_received()

        assert await fault(asked) is FaultKind.LOST
        assert inquiry.is_stale is (heard == b"")

    async def test_silence_is_not(self, inquiry):
        asked = inquiry.ask(QUESTION, max_bytes=10)
        inquiry.give_up()

        assert await fault(asked) is FaultKind.TIMEOUT
        assert not inquiry.is_stale

    async def test_one_that_closed_while_nobody_asked_is_forgotten_once(self, inquiry, shelf):
        inquiry.eof_received()
        inquiry.connection_lost(None)
        assert shelf.log == ["back", "gone"]

        assert await fault(inquiry.ask(QUESTION, max_bytes=10)) is FaultKind.LOST
        assert inquiry.is_stale

    async def test_what_comes_unasked_ends_it(self, inquiry, wire, shelf):
        inquiry.data_received(HI)

        assert (wire.is_open, shelf.log) == (False, ["back", "gone"])


@pytest.mark.parametrize("end", [lambda one: one.data_received(HI), Inquiry.give_up])
async def test_one_who_asked_and_left_is_not_told(inquiry, end):
    asked = inquiry.ask(QUESTION, max_bytes=10)
    asked.cancel()

    end(inquiry)

    assert asked.cancelled()
