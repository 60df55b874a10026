"""A request that callbacks carry is told from one that goes the general way by nobody."""

import asyncio
import json
from dataclasses import replace
from unittest import mock

import pytest

from llmgw.core.config import Config, GatewayConfig, RoutingConfig, StreamsConfig
from llmgw.core.failover import Outcome
from llmgw.core.health import Failed
from tests.fakes.patience import until
from tests.fakes.raw_client import RawClient
from tests.fakes.rawserver import CHUNKED, LAST_CHUNK, chunk, json_answer
from tests.fakes.two_ways import (
    both,
    by_express,
    chat,
    generally,
    ground,
    keys,
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


LIKE_A_CHUNK = chunk(HI)
PIECES = {
    "event by event": ([chunk(ROLE), chunk(HI), chunk(HI), chunk(HI), chunk(USAGE), chunk(DONE)]),
    "events that come together": [chunk(HI), chunk(HI) * 40, chunk(HI) * 3, chunk(DONE)],
    "events that are cut": [chunk(HI), chunk(HI) + chunk(HI)[:9], chunk(HI)[9:], chunk(DONE)],
    "a chunk cut where its data look like chunks": [
        chunk(HI),
        chunk(b": " + LIKE_A_CHUNK * 2 + b"\n\n")[: len("72\r\n: ")],
        LIKE_A_CHUNK,
        LIKE_A_CHUNK,
        b"\n\n\r\n",
        chunk(HI),
        chunk(DONE),
    ],
    "more than is retained": [
        chunk(HI),
        *[chunk(b": " + b"x" * 9000 + b"\n\n")] * 20,
        chunk(DONE),
    ],
}


@pytest.mark.parametrize("name", PIECES)
async def test_the_right_values_of_a_stream(name):
    pieces = PIECES[name]
    body = dechunked(b"".join(pieces))

    seen = await both(asks(streaming()), a=[sends(CHUNKED, *pieces, LAST_CHUNK)])

    assert [told[0::2] for told in seen.told] == [(200, body)]
    assert outcomes(seen) == [[Outcome.SUCCEEDED]]
    assert [record[2:4] for record in seen.records] == [(200, len(body))]


def dechunked(framed):
    body = b""
    while framed:
        line, _, framed = framed.partition(b"\r\n")
        size = int(line, 16)
        body, framed = body + framed[:size], framed[size + 2 :]
    return body


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


def traced(number, **options):
    return chat(
        headers=(
            ("traceparent", f"00-{number:032x}-{number:016x}-01"),
            ("X-Request-Id", f"mine-{number}"),
            ("X-Title", "a  b"),
        ),
        **options,
    )


async def test_an_upstream_gets_the_lines_of_each_request_as_they_are():
    """Those that were new with each request, be they known to be so by then."""
    heads = []

    async def play(one):
        client = await one.client()
        for number in range(6):
            await client.ask(traced(number))
        await one.settled(6)
        asked = [it for name in "ab" for it in one.nodes[name].server.requests]
        got = sorted(it.values("traceparent")[0] for it in asked if "/v1/" in it.line)
        assert got == [f"00-{number:032x}-{number:016x}-01" for number in range(6)]
        for node in one.nodes.values():
            for row in one.rows:
                node.server.requests = [
                    it._replace(head=it.head.replace(row.request_id.encode(), b"ID"))
                    for it in node.server.requests
                ]
            own = b"127.0.0.1:%d" % node.server.port
            heads.append(
                [
                    sorted(it.head.replace(own, b"NODE").split(b"\r\n"))
                    for it in node.server.requests
                    if "/v1/" in it.line
                ]
            )

    await both(play, rides=6, a=[OK] * 3, b=[OK] * 3)

    assert heads[:2] == heads[2:]
    assert all(b"x-request-id: ID" in lines for one in heads for lines in one)


@pytest.mark.parametrize("script", [answer(b"", status=b"500 No"), closes], ids=["500", "stale"])
async def test_whoever_takes_over_sends_the_lines_of_this_request(script):
    async def play(one):
        client = await one.client()
        told = [plain(await client.ask(traced(number))) for number in range(6)]
        await one.settled(6)
        last = [it for name in "ab" for it in one.nodes[name].server.requests]
        seen = [it.values("traceparent")[0][-4:-3] for it in last if "/v1/" in it.line]
        assert sorted(seen) == ["0", "1", "2", "3", "4", "4", "5"]
        return told

    seen = await both(play, rides=6, a=[OK, OK, script, OK, OK], b=[OK] * 4)

    assert [told[0] for told in seen.told] == [200] * 6


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


# --- more than one request


async def test_answers_by_express_and_others_come_in_turn_on_one_connection():
    async def play(one):
        client = await one.client()
        usual, waiting = chat(), chat(headers=(("Expect", "x-nothing"),))
        told = []
        for sent in (usual, waiting, usual, usual, chat(headers=(("a", ""),)), streaming()):
            reply = await client.ask(sent)
            told.append(plain(reply))
        await one.settled(5)
        return told

    await both(play, rides=4, a=[OK] * 6, b=[OK] * 6)


@pytest.mark.parametrize("first", ["document", "stream", "refused"])
@pytest.mark.parametrize("second", ["whole", "in pieces", "general"])
async def test_a_request_that_comes_behind_another_is_answered_behind_it(first, second):
    gate = Gate()
    ask = streaming() if first == "stream" else chat()
    bad = answer(REFUSAL, status=b"400 No")
    start = {
        "document": (OK,),
        "stream": (CHUNKED + chunk(HI), chunk(HI) + chunk(DONE), LAST_CHUNK),
    }

    async def play(one):
        client = await one.client()
        client.send(ask)
        await until(lambda: one.nodes["a"].asked)
        behind = chat(path="/v1/completions", headers=(("a", ""),) if second == "general" else ())
        if second == "in pieces":
            client.send(behind[:40])
            await asyncio.sleep(0.02)
            client.send(behind[40:])
        else:
            client.send(behind)
        await asyncio.sleep(0.02)
        assert len(one.nodes["b"].asked) == 0
        gate.open()
        told = [plain(await client.reply()), plain(await client.reply())]
        await one.settled(2)
        return told

    third = answer(b'{"third":1}')
    seen = await both(
        play, rides=None, a=[gate.holds(*start.get(first, (bad,)))], b=[third, third]
    )

    assert seen.told[1][2] == b'{"third":1}'


async def test_many_requests_at_once_are_answered_in_order():
    async def play(one):
        client = await one.client()
        client.send(b"".join(chat(b'{"model":"m1","n":%d}' % n) for n in range(7)))
        told = [plain(await client.reply()) for _ in range(7)]
        await one.settled(7)
        return told

    numbers = [answer(b"%d" % n) for n in range(7)]
    seen = await both(play, rides=None, a=numbers[0::2], b=numbers[1::2])

    assert [told[2] for told in seen.told] == [b"%d" % n for n in range(7)]


async def test_what_comes_behind_a_stream_is_bounded_and_its_end_is_noticed():
    """More than may wait: the socket is left alone, and the client's end is seen all the same."""

    async def play(one):
        client = await one.client()
        client.send(streaming())
        await client.reader.readuntil(b"hi")
        client.send(chat(b'{"model":"m1","x":"' + b"y" * 6_000_000 + b'"}'))
        await asyncio.sleep(0.1)
        client.reset()
        await one.settled(1)

    seen = await both(play, a=[sends(CHUNKED + chunk(HI), then=waits)])

    assert outcomes(seen) == [[Outcome.CANCELLED]]


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


# --- the client


@pytest.mark.parametrize("how", ["resets", "closes", "shuts"])
@pytest.mark.parametrize(
    ("sent", "script"),
    [
        pytest.param(chat(), sends(then=waits), id="before the head"),
        pytest.param(chat(), sends(OK[:-5], then=waits), id="inside a document"),
        pytest.param(streaming(), sends(then=waits), id="before the stream"),
        pytest.param(streaming(), sends(CHUNKED, then=waits), id="before an event"),
        pytest.param(streaming(), sends(CHUNKED + chunk(ROLE), then=waits), id="withheld"),
        pytest.param(streaming(), sends(CHUNKED + chunk(HI), then=waits), id="in the stream"),
        pytest.param(
            chat(), sends(answer(REFUSAL, status=b"500 No")[:-5], then=waits), id="handed over"
        ),
        pytest.param(
            chat(), sends(answer(b"x" * 100_000)[:-5], then=waits), id="handed over, large"
        ),
    ],
)
async def test_a_client_that_leaves_is_noticed(how, sent, script):
    async def play(one):
        client = await one.client()
        client.send(sent)
        await until(lambda: one.nodes["a"].asked)
        await asyncio.sleep(0.06)
        {"resets": client.reset, "closes": client.close, "shuts": client.shut_sending}[how]()
        await one.settled(1)
        await until(lambda: all(peer.over.is_set() for peer in one.nodes["a"].peers))

    seen = await both(play, a=[script], b=[OK])

    assert outcomes(seen) == [[Outcome.CANCELLED]]
    assert [record[6] for record in seen.records] == ["left"]


@pytest.mark.parametrize("status", [b"500 No", b"200 OK"])
async def test_a_client_that_leaves_just_as_it_is_handed_over_is_settled_once(status):
    """Between the callback that hands over and the task's first step."""
    async with ground(True, a=[answer(b"[" * 9, status=status)], b=[OK]) as one:
        client = await one.client()
        (connection,) = one.server._made.live
        hand_over = type(connection).hand_over

        def and_leave(self, ride):
            hand_over(self, ride)
            transport = self.transport
            transport.abort()
            self.connection_lost(None)
            self.transport = None
            assert transport.is_closing()

        with mock.patch.object(type(connection), "hand_over", and_leave):
            client.send(chat())
            await one.settled(1)
        await until(lambda: not one.running)
        seen = one.seen(None)

    assert outcomes(seen) == [[Outcome.CANCELLED]]
    assert [record[6] for record in seen.records] == ["left"]
    assert seen.asked["b"] == []


STALLS = Config(streams=StreamsConfig(client_stall=0.2))
LONG = chunk(b'data: {"choices":[{"delta":{"content":"' + b"x" * 100_000 + b'"}}]}\n\n')


async def test_a_client_that_takes_nothing_is_given_up():
    async def play(one):
        client = await RawClient.connect(one.address, limit=1024)
        one.clients.append(client)
        await asyncio.sleep(0.02)
        client.send(streaming())
        await one.settled(1)

    script = {"config": STALLS, "a": [sends(CHUNKED, LONG * 200, then=waits)]}
    express, general = await by_express(play, **script), await generally(play, **script)

    for seen in (express, general):  # how much the sockets hold differs
        assert outcomes(seen) == [[Outcome.CANCELLED]]
        assert [record[6] for record in seen.records] == ["cut"]
    assert replace(express, records=[]) == replace(general, records=[])


async def test_a_client_that_is_slow_gets_all_of_it():
    async def play(one):
        client = await one.client()
        client.send(streaming())
        await asyncio.sleep(0.2)
        told = plain(await client.reply())
        await one.settled(1)
        return told

    seen = await both(play, a=[sends(CHUNKED, LONG * 100, chunk(DONE) + LAST_CHUNK)])

    assert seen.told[2].endswith(DONE)
    assert len(seen.told[2]) > 10_000_000


# --- the body


async def pieces(one, whole, *cuts, then=b""):
    client = await one.client()
    for start, end in zip((0, *cuts), (*cuts, len(whole)), strict=True):
        client.send(whole[start:end] + (then if end == len(whole) else b""))
        await asyncio.sleep(0.02)
    return client


HEAD = chat().index(b"\r\n\r\n") + 4


@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param((HEAD,), id="behind its head"),
        pytest.param((HEAD + 1, HEAD + 5, HEAD + 12), id="in pieces"),
        pytest.param((len(chat()) - 1,), id="before its last byte"),
        pytest.param((HEAD - 1,), id="in its head"),
        pytest.param((1, HEAD - 3, HEAD + 2), id="everywhere"),
    ],
)
@pytest.mark.parametrize("then", [b"", chat(path="/v1/completions"), chat()[:50]])
async def test_a_body_in_pieces_is_put_together(cuts, then):
    async def play(one):
        client = await pieces(one, chat(), *cuts, then=then)
        told = [plain(await client.reply())]
        count = 1
        if then:
            client.send(b"" if then[-1:] == b"}" else chat()[50:])
            told.append(plain(await client.reply()))
            count = 2
        told.append(plain(await client.ask(chat())))
        await one.settled(count + 1)
        return told

    whole = [answer(b"%d" % n) for n in range(3)]
    seen = await both(play, rides=None, a=whole, b=whole)

    assert {body for one in seen.asked.values() for _, body in one} == {
        b'{"model":"m1","messages":[]}'
    }


async def test_a_large_body_arrives_as_it_was():
    body = b'{"model":"m1","x":"' + bytes(range(35, 91)) * 20_000 + b'"}'

    async def play(one):
        told = plain(await one.ask(chat(body)))
        await one.settled(1)
        return told

    seen = await both(play, a=[OK])

    assert seen.asked["a"][0][1] == body


@pytest.mark.parametrize("given", [0, 5])
async def test_a_body_that_ends_early_is_told(given):
    async def play(one):
        client = await pieces(one, chat()[: HEAD + given], HEAD - 5 if not given else HEAD)
        client.shut_sending()
        told = plain(await client.reply())
        assert await client.rest() == b""
        return told

    seen = await both(play, rides=None)

    assert seen.told[0] == 400
    assert seen.rows == []


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr("llmgw.web.riding.BODY_SILENCE", 0.1)
    monkeypatch.setattr("llmgw.web.body.BODY_SILENCE", 0.1)

    async def play(one):
        client = await pieces(one, chat()[:-5], HEAD)
        told = plain(await client.reply())
        assert await client.rest() == b""
        return told

    seen = await both(play)

    assert seen.told[0] == 408


async def test_a_body_that_is_slow_is_read_on_by_the_parser(monkeypatch):
    monkeypatch.setattr("llmgw.web.riding.BODY_SILENCE", 0.05)

    async def play(one):
        client = await pieces(one, chat()[:-5], HEAD)
        await asyncio.sleep(0.2)
        client.send(chat()[-5:])
        told = [plain(await client.reply()), plain(await client.ask(chat()))]
        await one.settled(2)
        return told

    await both(play, rides=None, a=[OK], b=[OK])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"nope", id="no JSON"),
        pytest.param(b'{"model":"m1","model":"m2"}', id="the model twice"),
        pytest.param(b'{"messages":[]}', id="no model"),
        pytest.param(b'{"model":"m9"}', id="an unknown model"),
        pytest.param(b'{"model":"m1","x":"' + b"y" * 3000 + b'"}', id="more than is allowed"),
    ],
)
@pytest.mark.parametrize("cut", [False, True], ids=["at once", "in pieces"])
async def test_what_is_refused_is_refused_alike(body, cut):
    async def play(one):
        client = await pieces(one, chat(body), *((HEAD + 3,) if cut and body else ()))
        told = [plain(await client.reply())]
        if not told[0][1] or ("connection", "close") not in told[0][1]:
            told.append(plain(await client.ask(chat())))
            await one.settled(1)
        return told

    allowed = Config(gateway=GatewayConfig(max_request_body_bytes=2000))
    seen = await both(play, rides=None, config=allowed, a=[OK], b=[OK])

    assert seen.told[0][0] in (400, 404, 413, 503)


# --- what changes meanwhile


@pytest.mark.parametrize("change", ["revoked", "expired", "no such model"])
async def test_a_key_that_ended_is_refused_at_once(change, monkeypatch):
    """Its head is known by then."""
    now = 1000.0
    monkeypatch.setattr("llmgw.web.express.time.time", lambda: now)

    async def play(one):
        nonlocal now
        now = 1000.0
        client = await one.client()
        told = [plain(await client.ask(chat()))]
        if change == "revoked":
            one.gateway.keyring = keys(labels=(("a", "b"),)).from_keys([])
        elif change == "expired":
            now = 2000.0
        else:
            one.gateway.keyring = keys(models=("other",))
        told.append(plain(await client.ask(chat())))
        return told

    seen = await both(play, rides=1, keyring=keys(expires_at=1500.0), a=[OK])

    assert [told[0] for told in seen.told] == [200, 403 if change == "no such model" else 401]


async def test_a_key_that_comes_is_let_in_at_once():
    async def play(one):
        client = await one.client()
        told = [plain(await client.ask(chat()))]
        one.gateway.keyring = keys(labels=(("team", "x"),))
        told += [plain(await client.ask(chat())), plain(await client.ask(chat()))]
        await one.settled(2)
        return told

    empty = keys().from_keys([])
    seen = await both(play, rides=2, keyring=empty, a=[OK], b=[OK])

    assert [told[0] for told in seen.told] == [401, 200, 200]
    assert seen.rows[0][-1].labels == (("team", "x"),)


async def test_a_model_that_goes_and_comes():
    async def play(one):
        client = await one.client()
        told = []
        for models in (("m1",), ("other",), ("m1", "other")):
            one.offer(*models)
            told.append(plain(await client.ask(chat())))
        await one.settled(2)
        return told

    seen = await both(play, rides=2, a=[OK, OK], b=[OK, OK])

    assert [told[0] for told in seen.told][::2] == [200, 200]


async def test_a_reload_in_the_middle_leaves_what_runs_as_it_was():
    gate = Gate()

    async def play(one):
        client, other = await one.client(), await one.client()
        client.send(chat())
        await until(lambda: one.nodes["a"].asked)
        gone = replace(
            one.config,
            nodes=one.config.nodes[:1],  # b alone
            pools=(replace(one.config.pools[0], upstreams=("b",)), *one.config.pools[1:]),
        )
        one.gateway.replace(gone, keys(labels=(("new", "1"),)))
        told = [plain(await other.ask(chat()))]
        gate.open()
        told += [plain(await client.reply()), plain(await client.ask(chat()))]
        await one.settled(3)
        return told

    seen = await both(play, rides=None, a=[gate.holds(OK)], b=[OK, OK])

    assert [told[0] for told in seen.told] == [200] * 3
    assert [len(one) for one in seen.asked.values()] == [1, 2]


async def test_a_pool_that_goes_while_a_body_comes():
    async def play(one):
        client = await pieces(one, chat()[:-5], HEAD)
        one.gateway.replace(replace(one.config, nodes=(), pools=()), keys())
        client.send(chat()[-5:])
        return plain(await client.reply())

    seen = await both(play)

    assert seen.told[0] >= 400
    assert seen.rows == []


async def test_where_origins_are_told_a_request_with_one_goes_through_the_loop():
    cross = Config(gateway=GatewayConfig(cors_origins=("https://a.example",)))
    sent = chat(headers=(("Origin", "https://a.example"),))

    seen = await both(asks(sent, chat()), rides=1, config=cross, a=[OK], b=[OK])

    assert "access-control-allow-origin" in dict(seen.told[0][1])
    assert "access-control-allow-origin" not in dict(seen.told[1][1])


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        pytest.param((chunk(HI + DONE) + LAST_CHUNK,), Outcome.SUCCEEDED, id="served"),
        pytest.param((chunk(IN_BAND) + LAST_CHUNK,), Outcome.RETRYABLE_FAILED, id="refused"),
    ],
)
@pytest.mark.parametrize("headed", [False, True])
async def test_a_stream_that_is_long_in_coming_has_its_head_early(script, outcome, headed):
    """And keepalives; who then fails is replaced all the same."""
    gate = Gate()

    async def play(one):
        client = await one.client()
        client.send(streaming())
        head = await client.reader.readuntil(b"\r\n\r\n")
        await client.reader.readuntil(b": ")  # a keepalive
        gate.open()
        rest = await client.reader.readuntil(DONE)
        await one.settled(1)
        return unsigned(head), HI in rest

    early = Config(streams=StreamsConfig(commit_after=0.05, keepalive=0.05))
    first = (CHUNKED, *script) if not headed else script

    async def late(peer):
        if headed:
            await peer.send(CHUNKED)
        await gate.holds(*first)(peer)

    seen = await both(play, config=early, a=[late], b=[events(HI, DONE)])

    assert outcomes(seen)[0][0] is outcome
    assert seen.told[1]


async def test_a_document_that_is_long_in_coming_where_a_stream_was_asked_for():
    gate = Gate()

    async def play(one):
        client = await one.client()
        client.send(streaming())
        await client.reader.readuntil(b": ")
        gate.open()
        await client.reader.readuntil(DONE)
        await one.settled(1)

    early = Config(streams=StreamsConfig(commit_after=0.05, keepalive=0.05))
    seen = await both(play, config=early, a=[gate.holds(OK)], b=[events(HI, DONE)])

    assert outcomes(seen) == [[Outcome.RETRYABLE_FAILED, Outcome.SUCCEEDED]]


async def test_a_stream_that_falls_silent_is_ended():
    silent = Config(streams=StreamsConfig(idle_timeout=0.1))  # no keepalives: how many varies

    async def play(one):
        client = await one.client()
        client.send(streaming())
        told = await client.rest()
        await one.settled(1)
        return b"upstream_timeout" in told

    seen = await both(play, config=silent, a=[sends(CHUNKED + chunk(HI), then=waits)])

    assert seen.told
    assert outcomes(seen) == [[Outcome.FAILED]]


@pytest.mark.parametrize(
    "routing", [RoutingConfig(header_timeout=0.1), RoutingConfig(explain=True)]
)
async def test_what_callbacks_can_not_do_is_left_to_the_loop(routing):
    async def play(one):
        told = await one.ask(chat())
        await one.settled(1)
        return told.status, told.body

    seen = await both(play, rides=0, config=Config(routing=routing), a=[OK])

    assert seen.told == (200, WHOLE)


# --- the end


@pytest.mark.parametrize("sent", [chat(), streaming()], ids=["document", "stream"])
async def test_while_it_drains_a_request_ends_its_connection(sent):
    gate = Gate()
    script = (OK,) if sent == chat() else (CHUNKED + chunk(HI), chunk(DONE) + LAST_CHUNK)

    async def play(one):
        client = await one.client()
        client.send(sent)
        await until(lambda: one.nodes["a"].asked)
        drain = asyncio.create_task(one.server.drain(20))
        await asyncio.sleep(0.1)
        gate.open()
        told = plain(await client.reply())
        assert await client.rest() == b""
        await drain
        return told

    seen = await both(play, a=[gate.holds(*script)])

    assert dict(seen.told[1])["connection"] == "close"


async def test_a_body_that_has_begun_to_come_when_it_drains_is_served(monkeypatch):
    monkeypatch.setattr("llmgw.web.server.IDLE_GRACE", 0.05)

    async def play(one):
        client = await pieces(one, chat()[:-5], HEAD)
        drain = asyncio.create_task(one.server.drain(20))
        await asyncio.sleep(0.3)
        client.send(chat()[-5:])
        told = plain(await client.reply())
        assert await client.rest() == b""
        await drain
        return told

    seen = await both(play, a=[OK])

    assert seen.told[0] == 200


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(sends(then=waits), id="before the head"),
        pytest.param(sends(CHUNKED + chunk(HI), then=waits), id="in the stream"),
        pytest.param(sends(answer(REFUSAL, status=b"500 No")[:-5], then=waits), id="handed over"),
    ],
)
async def test_what_runs_when_the_server_closes_is_settled(script):
    async def play(one):
        client = await one.client()
        client.send(streaming())
        await until(lambda: one.nodes["a"].asked)
        await asyncio.sleep(0.05)
        await one.server.close()
        await one.settled(1)

    seen = await both(play, a=[script], b=[OK])

    assert outcomes(seen) == [[Outcome.CANCELLED]]


@pytest.mark.parametrize("kind", ["document", "stream", "handed over", "gathered"])
async def test_the_keepalive_timer_leaves_alone_what_runs_and_ends_what_idles(kind):
    gate = Gate()
    script = {
        "document": (OK,),
        "gathered": (OK,),
        "stream": (CHUNKED + chunk(HI), chunk(DONE) + LAST_CHUNK),
        "handed over": (answer(REFUSAL, status=b"400 No"),),
    }[kind]

    async def play(one):
        client = await one.client()
        told = [plain(await client.ask(chat()))]  # it arms the timer
        sent = streaming() if kind == "stream" else chat()
        client.send(sent[:-5] if kind == "gathered" else sent)
        await asyncio.sleep(0.4)
        client.send(sent[-5:] if kind == "gathered" else b"")
        await until(lambda: one.nodes["b"].asked)
        await asyncio.sleep(0.4)
        gate.open()
        told.append(plain(await client.reply()))
        assert await client.rest() == b""
        await one.settled(2)
        return told

    await both(play, rides=2, options={"keepalive_timeout": 0.15}, a=[OK], b=[gate.holds(*script)])


async def test_a_connection_whose_first_request_was_handed_over_ends_when_it_idles():
    async def play(one):
        client = await one.client()
        told = plain(await client.ask(chat()))
        assert await client.rest() == b""
        return told

    await both(
        play,
        options={"keepalive_timeout": 0.1},
        a=[answer(REFUSAL, status=b"400 No")],
    )


# --- what is kept


async def test_a_request_that_runs_long_has_one_open_row_however_it_goes_on(monkeypatch):
    monkeypatch.setattr("llmgw.runtime.settler.OPEN_AFTER", 0.0)
    first, second = Gate(), Gate()

    async def play(one):
        client = await one.client()
        client.send(chat())
        await until(lambda: one.nodes["a"].asked)
        one.gateway.settler.open_rows()
        first.open()
        await until(lambda: one.nodes["b"].asked)
        one.gateway.settler.open_rows()
        second.open()
        told = plain(await client.reply())
        await one.settled(1)
        opened = [scope for scope, _ in one.database.requests.opened]
        assert [scope.request_id for scope in opened] == [one.rows[0].request_id]
        return told, opened[0]._replace(request_id="")

    await both(play, a=[first.holds(answer(REFUSAL, status=b"500 No"))], b=[second.holds(OK)])
