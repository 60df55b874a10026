"""The request's body on a real connection: its limit, its coding, and who is asked to send it."""

import asyncio
import gzip
from dataclasses import replace

import pytest

from llmgw.core.config import Config, GatewayConfig
from llmgw.web import body, protocol
from tests.fakes.gateway import keyring
from tests.fakes.patience import WITHIN
from tests.fakes.raw_client import chat, request

LIMIT = 10_000
BODY = b'{"model":"m1","messages":[]}'


@pytest.fixture
def gateway(gateway):
    gateway.config = replace(
        Config(), gateway=replace(GatewayConfig(), max_request_body_bytes=LIMIT)
    )
    return gateway


def padded(size: int) -> bytes:
    return b'{"model":"m1","x":"%s"}' % (b"a" * (size - 21))


def chunked(*parts: bytes, headers=()) -> bytes:
    lines = request(
        "POST", "/v1/chat/completions", headers=[*headers, ("Transfer-Encoding", "chunked")]
    )
    return lines + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))


async def test_a_body_of_the_limit_is_accepted_and_forwarded_as_it_came(door):
    reply = await door.ask(chat(padded(LIMIT)))

    assert reply.status == 200
    assert door.gateway.calls[0].body == padded(LIMIT)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(chat(padded(LIMIT + 1)), id="by its length"),
        pytest.param(chunked(padded(LIMIT), b" "), id="while it is read"),
        pytest.param(
            chat(gzip.compress(padded(LIMIT + 1)), headers=[("Content-Encoding", "gzip")]),
            id="decoded",
        ),
    ],
)
async def test_a_body_over_the_limit_is_too_large(door, data):
    reply = await door.ask(data)

    assert (reply.status, reply.code) == (413, "request_too_large")
    assert not door.gateway.calls


async def test_a_length_over_the_limit_is_refused_before_the_body_comes(door):
    reply = await door.ask(
        request("POST", "/v1/embeddings", headers=[("Content-Length", "99999")])
    )

    assert (reply.status, reply.code, reply.closes) == (413, "request_too_large", True)


async def test_a_chunked_body_is_put_together(door):
    reply = await door.ask(chunked(BODY[:5], BODY[5:6], BODY[6:]))

    assert reply.status == 200
    assert door.gateway.calls[0].body == BODY


async def test_an_encoded_body_is_forwarded_decoded_without_its_coding(door):
    reply = await door.ask(chat(gzip.compress(BODY), headers=[("Content-Encoding", "gzip")]))

    [call] = door.gateway.calls
    assert reply.status == 200
    assert call.body == BODY


@pytest.mark.parametrize(
    ("coding", "status"),
    [("gzip", 400), ("br", 400), ("zstd", 400), ("deflate", 400), ("snappy", 415)],
)
async def test_a_body_that_can_t_be_decoded_is_refused(door, coding, status):
    client = await door.client()

    reply = await client.ask(chat(b"\xff" + BODY, headers=[("Content-Encoding", coding)]))

    assert reply.status == status
    assert (await client.ask(chat())).status == 200


async def test_a_client_that_waits_is_told_to_go_on(door):
    client = await door.client()
    whole = chat(headers=[("Expect", "100-continue")])
    head, _, body = whole.partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"

    reply = await client.ask(body)

    assert reply.status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param([("Content-Length", "28")], 401, id="without a key"),
        pytest.param([("Content-Length", "99999"), ("api-key", "k")], 413, id="too large"),
        pytest.param(
            [("Content-Length", "28"), ("api-key", "k"), ("Content-Encoding", "lzw")],
            415,
            id="in a coding that is not known",
        ),
    ],
)
async def test_a_client_that_waits_is_refused_without_being_asked_for_its_body(
    door, monkeypatch, headers, status
):
    monkeypatch.setattr(protocol, "BRIEF_LINGER", 0.02)
    door.gateway.keyring = keyring("k")
    client = await door.client()

    reply = await client.ask(
        request("POST", "/v1/responses", headers=[*headers, ("Expect", "100-continue")])
    )

    assert (reply.status, reply.closes) == (status, True)
    async with asyncio.timeout(WITHIN):
        assert await client.rest() == b""


async def test_http_1_0_is_not_told_to_go_on(door):
    client = await door.client()

    reply = await client.ask(chat(headers=[("Expect", "100-continue")], version="1.0"))

    assert reply.status == 200


async def test_another_expectation_fails(door):
    client = await door.client()

    reply = await client.ask(chat(headers=[("Expect", "sk-CANARY")]))

    assert (reply.status, reply.code) == (417, "expectation_failed")
    assert b"CANARY" not in reply.body
    assert (await client.ask(chat())).status == 200


async def test_a_body_that_stops_coming_times_out(door, monkeypatch):
    monkeypatch.setattr(body, "BODY_SILENCE", 0.05)
    client = await door.client()

    reply = await client.ask(chat()[:-3])

    assert (reply.status, reply.code, reply.closes) == (408, "request_timeout", True)


@pytest.mark.parametrize(
    "coding", [pytest.param("gzip, chunked", id="known"), pytest.param("x, chunked", id="unknown")]
)
async def test_a_transfer_coding_below_the_chunks_is_not_passed_over(door, coding):
    lines = request("POST", "/v1/chat/completions", headers=[("Transfer-Encoding", coding)])

    reply = await door.ask(lines + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY))

    assert (reply.status, reply.code) == (501, "unsupported_transfer_coding")
    assert not door.gateway.calls
