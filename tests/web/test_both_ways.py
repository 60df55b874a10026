"""A request that callbacks carry is told from one that goes the general way by nobody."""

import asyncio
import json

import pytest

from llmgw.core.failover import Outcome
from llmgw.core.health import Failed
from tests.fakes.patience import until
from tests.fakes.rawserver import CHUNKED, LAST_CHUNK, chunk, json_answer
from tests.fakes.two_ways import (
    both,
    chat,
    plain,
    streaming,
    unsigned,
)

ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
HI = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
IN_BAND = b'data: {"error":{"message":"no","type":"server_error","code":null}}\n\n'
WHOLE = json.dumps(
    {
        "choices": [{"message": {"content": "hi"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
).encode()
OK = json_answer(WHOLE)


def answer(body, *lines, status=b"200 OK", kind=b"application/json"):
    head = b"\r\n".join((b"HTTP/1.1 " + status, b"content-type: " + kind, *lines))
    return head + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def events(*parts):
    return CHUNKED + b"".join(map(chunk, parts)) + LAST_CHUNK


def sends(*pieces, then=None):
    """Piece after piece, each once the one before was surely read; then maybe `then(peer)`."""

    async def play(peer):
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0.02)
        if then is not None:
            await then(peer)

    return play


async def closes(peer):
    await peer.close()


async def resets(peer):
    peer.reset()


async def waits(peer):
    await peer.left()


def asks(*requests):
    """One after the other on one connection; the replies, and whether it is kept."""

    async def play(ground):
        client = await ground.client()
        told = [plain(await client.ask(one)) for one in requests]
        await ground.settled(len(requests))
        return told

    return play


def outcomes(seen):
    return [[one[3] for one in attempts] for attempts in seen.attempts]


# --- one upstream serves


@pytest.mark.parametrize(
    ("sent", "script"),
    [
        pytest.param(chat(), OK, id="JSON"),
        pytest.param(chat(), sends(OK[:30], OK[30:90], OK[90:]), id="JSON in pieces"),
        pytest.param(
            chat(path="/v1/chat/completions?a=b"), answer(WHOLE, b"x-own: 1"), id="a query"
        ),
        pytest.param(chat(), answer(b"{}", status=b"201 Created"), id="201"),
        pytest.param(chat(), b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n", id="204"),
        pytest.param(chat(), answer(b"hi", kind=b"text/plain"), id="text"),
        pytest.param(chat(), answer(b"", kind=b"text/plain"), id="nothing"),
        pytest.param(chat(), answer(b"null"), id="null"),
        pytest.param(chat(), b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", id="no type"),
        pytest.param(
            chat(),
            CHUNKED.replace(b"text/event-stream", b"application/json")
            + chunk(WHOLE[:9])
            + chunk(WHOLE[9:])
            + LAST_CHUNK,
            id="chunked JSON",
        ),
        pytest.param(
            chat(), answer(b'{"a":"' + b"x" * 70_000 + b'"}'), id="more than is classified"
        ),
        pytest.param(chat(), answer(b'{"a":"' + b"x" * 400_000 + b'"}'), id="more than a read"),
        pytest.param(chat(), answer(WHOLE, b"x-odd:"), id="an odd header"),
        pytest.param(chat(), answer(WHOLE, b"x-odd: \xe9"), id="a latin-1 header"),
        pytest.param(
            chat(), answer(WHOLE, b"connection: keep-alive, x-b", b"x-b: 2"), id="a hop's header"
        ),
        pytest.param(chat(), b"HTTP/1.1 100 Continue\r\n\r\n" + OK, id="an interim answer first"),
        pytest.param(streaming(), events(HI, DONE), id="a stream"),
        pytest.param(streaming(), events(ROLE, HI, HI, USAGE, DONE), id="a stream with usage"),
        pytest.param(
            streaming(),
            sends(CHUNKED, chunk(ROLE), chunk(HI), chunk(USAGE + DONE), LAST_CHUNK),
            id="a stream event by event",
        ),
        pytest.param(
            streaming(),
            sends(CHUNKED + chunk(ROLE), chunk(HI[:9]), chunk(HI[9:] + DONE) + LAST_CHUNK),
            id="a stream cut anywhere",
        ),
        pytest.param(streaming(), events(*[HI] * 300, DONE), id="a long stream"),
        pytest.param(chat(), events(HI, DONE), id="a stream that nobody asked for"),
        pytest.param(streaming(), OK, id="a document where a stream was asked for"),
        pytest.param(streaming(), events(HI), id="no terminal event"),
        pytest.param(streaming(), events(HI[:-2]), id="no end of its event"),
        pytest.param(streaming(), events(HI, IN_BAND), id="an error after output"),
        pytest.param(streaming(), events(HI, IN_BAND, DONE), id="an error in the end"),
        pytest.param(streaming(), sends(CHUNKED + chunk(HI), then=closes), id="cut"),
        pytest.param(streaming(), sends(CHUNKED + chunk(HI), b"zz\r\n"), id="broken framing"),
        pytest.param(streaming(), events(HI, DONE, HI), id="events behind the terminal one"),
        pytest.param(
            chat(
                b'{"model":"m1","stream":true,"max_tokens":5,"messages":[]}', path="/v1/messages"
            ),
            events(
                b'event: message_start\ndata: {"type":"message_start","message":'
                b'{"usage":{"input_tokens":3}}}\n\n',
                b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":'
                b'{"type":"text_delta","text":"x"}}\n\n',
                b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
            ),
            id="messages",
        ),
        pytest.param(
            chat(b'{"model":"m1","input":"x","store":false}', path="/v1/responses"),
            answer(b'{"id":"resp_1","status":"completed","output":[]}'),
            id="a response that is not stored",
        ),
        pytest.param(
            chat(b'{"model":"m1","input":["x"]}', path="/v1/embeddings"), OK, id="embeddings"
        ),
    ],
)
async def test_what_one_upstream_answers(sent, script):
    seen = await both(asks(sent), a=[script])

    assert [len(one) for one in seen.attempts] == [1]


async def test_the_right_values_of_a_plain_success():
    seen = await both(asks(chat()), a=[OK])

    ((status, lines, body),) = seen.told
    assert (status, body) == (200, WHOLE)
    assert dict(lines) == {
        "content-type": "application/json",
        "content-length": str(len(WHOLE)),
    }
    assert outcomes(seen) == [[Outcome.SUCCEEDED]]
    assert seen.asked == {
        "a": [("POST /v1/chat/completions HTTP/1.1", b'{"model":"m1","messages":[]}')],
        "b": [],
    }
    (record,) = seen.records
    assert record[:4] == ("POST", "/v1/chat/completions", 200, len(WHOLE))
    assert seen.circuits == {}


async def test_the_head_that_an_upstream_gets_is_the_same():
    heads = []

    async def play(one):
        client = await one.client()
        for _ in range(2):
            await client.ask(chat(headers=(("X-Title", "a  b"), ("accept", "*/*"))))
        await one.settled(2)
        for number, received in enumerate(one.nodes["a"].server.requests[1:]):
            id = one.rows[number].request_id
            lines = received.head.decode().replace(id, "ID").split("\r\n")
            port = str(one.nodes["a"].server.port)
            heads.append(sorted(line.replace(port, "PORT") for line in lines))

    await both(play, rides=2, a=[OK, OK], b=[OK, OK])

    assert heads[0] == heads[-1]
    assert len({tuple(one) for one in heads}) == 1
    assert any("ID" in line for line in heads[0])


async def to_its_end(ground):
    """One request whose connection is ended by the server; all of its bytes."""
    client = await ground.client()
    client.send(streaming())
    told = await client.rest()
    await ground.settled(1)
    return sorted(unsigned(told).split(b"\r\n"))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(sends(CHUNKED + chunk(HI + HI[:20]), then=closes), id="closed"),
        pytest.param(sends(CHUNKED + chunk(HI), chunk(HI[:20]), then=resets), id="reset"),
        pytest.param(sends(CHUNKED + chunk(HI), b"zz\r\n"), id="broken framing"),
        pytest.param(sends(CHUNKED + chunk(HI + HI[:20]) + LAST_CHUNK), id="ended inside"),
    ],
)
async def test_a_stream_that_breaks_ends_its_connection(script):
    seen = await both(to_its_end, a=[script])

    assert outcomes(seen) == [[Outcome.FAILED]]


# --- the first does not serve


REFUSAL = b'{"error":{"message":"no","type":"x","code":"x"}}'
UNKNOWN = b'{"error":{"message":"no","type":"x","param":"model","code":"model_not_found"}}'


@pytest.mark.parametrize("sent", [chat(), streaming()], ids=["document", "stream"])
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(answer(REFUSAL, status=b"500 No"), id="500"),
        pytest.param(answer(REFUSAL, status=b"502 No"), id="502"),
        pytest.param(answer(REFUSAL, b"retry-after: 7", status=b"503 No"), id="503"),
        pytest.param(answer(REFUSAL, status=b"429 No"), id="429"),
        pytest.param(answer(UNKNOWN, status=b"404 No"), id="an unknown model"),
        pytest.param(answer(REFUSAL, status=b"400 No"), id="a client's fault"),
        pytest.param(answer(b"", b"location: /x", status=b"302 Found"), id="a redirect"),
        pytest.param(answer(b'{"error":{"message":"no","code":"x"}}'), id="an error under 200"),
        pytest.param(answer(b"{nope"), id="no JSON"),
        pytest.param(events(IN_BAND), id="an error as first event"),
        pytest.param(events(ROLE, IN_BAND), id="an error as first visible event"),
        pytest.param(events(), id="an empty stream"),
        pytest.param(sends(CHUNKED + chunk(ROLE), then=closes), id="cut before output"),
        pytest.param(sends(CHUNKED + chunk(ROLE), then=resets), id="reset before output"),
        pytest.param(sends(OK[:-5], then=closes), id="a document cut short"),
        pytest.param(sends(OK[:20], then=closes), id="a head cut short"),
        pytest.param(b"SPAM\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", id="an upgrade"),
    ],
)
async def test_whatever_the_first_answers_the_second_may_serve(sent, script):
    await both(asks(sent), a=[script], b=[events(HI, DONE) if sent != chat() else OK])


async def test_where_all_refuse_the_client_is_told_the_same():
    refusal = answer(REFUSAL, b"retry-after: 7", status=b"503 No")

    seen = await both(asks(chat(), streaming()), rides=2, a=[refusal] * 2, b=[refusal] * 2)

    assert [told[0] for told in seen.told] == [503, 503]
    assert outcomes(seen) == [[Outcome.RETRYABLE_FAILED, Outcome.FAILED]] * 2


@pytest.mark.parametrize("sent", [chat(), streaming()], ids=["document", "stream"])
@pytest.mark.parametrize("ends", [closes, resets], ids=["closed", "reset"])
async def test_a_connection_that_was_stale_is_no_attempt(sent, ends):
    """The node closes instead of answering: it is asked again, on a new connection."""
    whole = events(HI, DONE) if sent != chat() else OK

    seen = await both(asks(sent), a=[ends, whole])

    assert outcomes(seen) == [[Outcome.SUCCEEDED]]
    assert len(seen.asked["a"]) == 2


async def test_a_node_that_is_gone_when_it_is_asked_again():
    async def stops(peer):
        nonlocal node
        node.server.stop()
        await peer.close()

    async def play(one):
        nonlocal node
        node = one.nodes["a"]
        return await asks(chat())(one)

    node = None
    seen = await both(play, a=[stops], b=[OK])

    assert outcomes(seen) == [[Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED]]


@pytest.mark.parametrize("sent", [chat(), streaming()], ids=["document", "stream"])
async def test_a_node_that_is_found_dead_is_left(sent):
    async def play(one):
        client = await one.client()
        client.send(sent)
        await one.nodes["a"].server.asked.wait()
        await until(lambda: one.nodes["a"].asked)
        (node,) = (it for it in one.gateway.config.nodes if it.name == "a")
        for _ in range(3):
            one.gateway.registry.health_event(node, Failed(connection=True))
        told = plain(await client.reply())
        await one.settled(1)
        return told

    seen = await both(play, a=[waits], b=[events(HI, DONE) if sent != chat() else OK])

    assert outcomes(seen) == [[Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED]]


# --- what happens meanwhile


class Gate:
    """Holds up an upstream until the scenario lets it go on; once for each way."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def holds(self, *pieces, then=None):
        async def play(peer):
            await self._event.wait()
            self._event.clear()
            await sends(*pieces, then=then)(peer)

        return play

    def open(self):
        self._event.set()


@pytest.mark.parametrize("sent", [chat(), streaming()], ids=["document", "stream"])
async def test_what_happens_to_its_node_meanwhile_changes_nobody_elses_attempts(sent):
    """It was asked first; demoted since then, it would come last in a plan that is made now."""
    gate = Gate()
    refusal = answer(REFUSAL, status=b"500 No")
    whole = OK if sent == chat() else events(HI, DONE)

    async def play(one):
        slow = await one.client()
        slow.send(sent)
        await until(lambda: one.nodes["a"].asked)
        told = [plain(await one.ask(sent)), plain(await one.ask(sent))]
        gate.open()
        told.append(plain(await slow.reply()))
        await one.settled(3)
        return told

    full = answer(REFUSAL, b"retry-after: 30", status=b"429 No")
    seen = await both(
        play, rides=3, warm=3, a=[gate.holds(refusal), full], b=[whole, whole, whole]
    )

    tried = [[(one[2], one[3]) for one in attempts] for attempts in seen.attempts]
    assert tried[-1] == [
        ("cluster/a", Outcome.RETRYABLE_FAILED),
        ("cluster/b", Outcome.SUCCEEDED),
    ]


@pytest.mark.parametrize("leaves", ["before", "while streaming"])
async def test_a_client_that_leaves_a_demoted_node_has_left_that_one(leaves):
    gate = Gate()

    async def play(one):
        slow = await one.client()
        slow.send(streaming())
        await until(lambda: one.nodes["a"].asked)
        if leaves == "while streaming":
            gate.open()
            await slow.reader.readuntil(b"hi")
        await one.ask(streaming())
        await one.ask(streaming())
        slow.reset()
        await one.settled(3)

    full = answer(REFUSAL, b"retry-after: 30", status=b"429 No")
    whole = events(HI, DONE)
    seen = await both(
        play,
        rides=3,
        warm=3,
        a=[gate.holds(CHUNKED + chunk(HI), then=waits), full],
        b=[whole, whole, whole],
    )

    assert [one[2:4] for one in seen.attempts[-1]] == [("cluster/a", Outcome.CANCELLED)]
