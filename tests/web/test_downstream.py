"""The bytes of an answer: framing, lengths, and whether the connection goes on."""

import email.utils
import logging
import time

import pytest

from tests.fakes.gateway import JSON
from tests.fakes.raw_client import chat, request

TEXT = (("content-type", "text/event-stream"),)


def answering(gateway, steps):
    async def serve(call, principal, downstream):
        steps(downstream)

    gateway.serving = serve


def stream(downstream, *parts, headers=TEXT):
    downstream.commit(200, headers)
    for part in parts:
        downstream.write(part)
    downstream.finish()


async def test_a_whole_answer_has_a_length_a_date_and_an_id(door):
    before = int(time.time())
    reply = await door.ask(chat())

    sent = email.utils.parsedate_to_datetime(reply.headers.pop("date")).timestamp()
    assert before <= sent <= time.time()
    assert reply.headers == {
        "content-type": "application/json",
        "content-length": "14",
        "x-request-id": "req_0",
    }


async def test_the_connection_is_kept_after_an_answer_of_ours(door):
    client = await door.client()

    replies = [await client.ask(chat()) for _ in range(3)]

    assert [reply.status for reply in replies] == [200] * 3
    assert door.server.connections == 1


async def test_a_stream_is_chunked_and_the_connection_is_kept(door):
    answering(door.gateway, lambda downstream: stream(downstream, b"one", b"", b"two"))
    client = await door.client()
    client.send(chat())

    head = await client.reader.readuntil(b"\r\n\r\n")
    body = await client.reader.readuntil(b"0\r\n\r\n")

    assert b"transfer-encoding: chunked" in head
    assert b"content-length" not in head
    assert body == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    assert (await client.ask(chat())).status == 200


async def test_what_is_written_after_the_end_stays_away(door):
    def steps(downstream):
        stream(downstream, b"one")
        downstream.write(b"late")
        downstream.finish()
        downstream.cut()

    answering(door.gateway, steps)
    client = await door.client()

    assert [(await client.ask(chat())).body for _ in range(2)] == [b"one"] * 2
    assert [record.bytes for record in door.records] == [3, 3]


async def test_a_stream_to_http_1_0_is_unframed_and_ends_with_the_connection(door):
    answering(door.gateway, lambda downstream: stream(downstream, b"one", b"two"))
    client = await door.client()

    reply = await client.ask(chat(version="1.0", headers=[("Connection", "keep-alive")]))

    assert reply.body == b"onetwo"
    assert reply.closes
    assert not {"transfer-encoding", "content-length"} & set(reply.headers)


async def test_an_answer_to_http_1_0_closes_unless_keeping_was_asked_for(door):
    client = await door.client()

    kept = await client.ask(chat(version="1.0", headers=[("Connection", "keep-alive")]))
    ended = await client.ask(chat(version="1.0"))

    assert (kept.headers["connection"], ended.headers["connection"]) == ("keep-alive", "close")
    assert await client.rest() == b""


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])
async def test_connection_close_is_honoured_and_said(door, streams):
    if streams:
        answering(door.gateway, lambda downstream: stream(downstream, b"one"))
    client = await door.client()

    reply = await client.ask(chat(headers=[("Connection", "close")]))

    assert reply.closes
    assert await client.rest() == b""


async def test_a_body_may_end_cleanly_and_take_its_connection_along(door):
    def steps(downstream):
        downstream.commit(200, TEXT)
        downstream.write(b"event: error\n\n")
        downstream.finish(close=True)

    answering(door.gateway, steps)
    client = await door.client()

    reply = await client.ask(chat())

    assert reply.body == b"event: error\n\n"
    assert await client.rest() == b""


async def test_a_cut_body_has_no_last_chunk(door):
    def steps(downstream):
        downstream.commit(200, TEXT)
        downstream.write(b"half")
        downstream.cut()

    answering(door.gateway, steps)
    client = await door.client()
    client.send(chat())
    await client.reader.readuntil(b"\r\n\r\n")

    assert await client.rest() == b"4\r\nhalf\r\n"
    assert [record.ending for record in door.records] == ["cut"]


@pytest.mark.parametrize("status", [204, 304])
async def test_some_answers_have_no_body(door, status):
    answering(door.gateway, lambda downstream: downstream.respond(status, (), b"ignored"))
    client = await door.client()

    reply = await client.ask(chat())

    assert (reply.status, reply.body) == (status, b"")
    assert "content-length" not in reply.headers
    assert (await client.ask(chat())).status == status


async def test_head_has_the_length_of_a_get_and_no_body(door):
    client = await door.client()

    head = await client.ask(request("HEAD", "/livez"), head_only=True)
    get = await client.ask(request("GET", "/livez"))

    assert head.headers["content-length"] == get.headers["content-length"] != "0"
    assert get.body


async def test_framing_and_ids_of_a_caller_are_dropped_for_our_own(door):
    theirs = (
        *JSON,
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "keep-alive"),
        ("x-request-id", "up-77"),
        ("server", "box"),
    )
    answering(door.gateway, lambda downstream: downstream.respond(200, theirs, b"{}"))

    reply = await door.ask(chat())

    assert sorted(reply.headers) == ["content-length", "content-type", "date", "x-request-id"]
    assert (reply.headers["x-request-id"], reply.body) == ("req_0", b"{}")


@pytest.mark.parametrize("begin", ["respond", "commit"])
@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "a\rb", "a\0b", "\u20ac"])
async def test_a_header_that_would_break_its_line_is_never_sent(door, caplog, begin, value):
    headers = (("x-evil", value),)

    def steps(downstream):
        if begin == "respond":
            downstream.respond(200, headers, b"{}")
        else:
            downstream.commit(200, headers)

    answering(door.gateway, steps)
    with caplog.at_level(logging.ERROR):
        reply = await door.ask(chat())

    assert (reply.status, reply.code) == (500, "internal_error")
    assert "x-evil" not in reply.headers


async def test_bytes_are_counted_without_framing(door):
    answering(door.gateway, lambda downstream: stream(downstream, b"x" * 1000, b"y" * 24))

    await door.ask(chat())

    assert door.records[0].bytes == 1024
