"""Whatever was learnt before, a request by express comes to what aiohttp's parser and the general
way make of it, or to nothing."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmgw.core.errors import GatewayError
from llmgw.core.headers import refuse_loop, upstream_headers
from llmgw.core.http import UpstreamRequest
from llmgw.core.policy import token_of
from llmgw.core.types import CLUSTER
from llmgw.upstream.request import render_head
from tests.builders import POOL
from tests.fakes.busy import INSTANCE, TOKENS, Busy
from tests.web.test_plain import parsed

FIRST = b"POST /v1/chat/completions?a=b HTTP/1.1"
BODY = b'{"model":"m1"}'
OWN = re.compile(rb"\r\nx-request-id: (req_\S+)\r\ncontent-length: [0-9]+\r\n\r\n\Z")

NAMES = st.sampled_from(
    [
        *(b"x-a", b"X-A", b"x-a-b", b"x", b"a", b"traceparent", b"TraceParent", b"tracestate"),
        *(b"x-request-id", b"Request-Id", b"idempotency-key", b"x-bench-id", b"x-set"),
        *(b"user-agent", b"x-forwarded-for", b"cf-ray", b"openai-project", b"server"),
    ]
)
FIXED_NAMES = st.sampled_from(
    [
        *(b"accept", b"content-type", b"x-session-id", b"via", b"cookie", b"connection", b"te"),
        *(b"expect", b"transfer-encoding", b"x-stainless-retry-count", b"x-api-key", b"Host"),
        *(b"content-encoding", b"content-length", b"upgrade", b"origin", b"anthropic-beta"),
    ]
)
SEPARATORS = st.sampled_from([b": ", b": ", b":", b":\t", b":  "])
PLAIN = st.sampled_from([b"1", b"2", b"3", b"a b", b"a \t b", b"x-a: 1", b"4" * 60, b"a,b", b'"'])
VALUES = PLAIN | st.sampled_from(
    [
        *(b"", b" ", b" c ", b"\xe9", b"d\re", b"d\ne", b"\x01", b"\x08", b"\0", b"f" * 600),
        *(b"1\r\nx-a: 2", b"1\r\n x", b"keep-alive", b"close", b"1.1 llmgw-" + INSTANCE.encode()),
        *(b"x-a", b"chunked", b"identity", b"req_1", b"gzip", b"\r\n\r\n", b"x\r\n\r\ny"),
    ]
)


def lowered(line):
    return line[0].lower()


@st.composite
def clients(draw):
    """Each with lines that are always the same and lines that are not (None), in its order."""
    varying = st.tuples(NAMES, SEPARATORS, st.none())
    usual = st.tuples(NAMES, SEPARATORS, PLAIN)
    fixed = st.tuples(FIXED_NAMES, SEPARATORS, PLAIN)
    some = st.lists(varying | varying | usual, min_size=1, max_size=5, unique_by=lowered)
    lines = draw(some) + draw(st.just([]) | st.just([]) | st.lists(fixed, max_size=1))
    return draw(st.sampled_from([CLUSTER, POOL])), lines


@st.composite
def requests(draw):
    """Of a few clients that take turns: most of them plain, so that something is learnt."""
    known = draw(st.lists(clients(), min_size=1, max_size=2))
    asked = []
    for _ in range(draw(st.integers(4, 12))):
        pool, lines = draw(st.sampled_from(known))
        values = draw(st.sampled_from([PLAIN, PLAIN, PLAIN, VALUES]))
        lines = [
            name + separator + (draw(values) if value is None else value)
            for name, separator, value in lines
        ]
        if draw(st.integers(0, 9)) == 0:
            odd = draw(NAMES) + draw(st.sampled_from([b": ", b" :", b""])) + draw(VALUES)
            lines.insert(draw(st.integers(0, len(lines))), odd)
        asked.append((pool, lines))
    return asked


def head_of(pool, lines):
    bearer = b"authorization: Bearer " + TOKENS[pool].encode()
    length = b"content-length: %d" % len(BODY)
    return b"\r\n".join((FIRST, b"host: gateway", bearer, *lines, length))


def generally(busy, head, express):
    """What the upstream would get in the general way; None: the request is refused."""
    whole = parsed(head, BODY)
    if whole is None:
        return None
    message, _ = whole
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in message.raw_headers
    )
    try:
        principal = busy.gateway.keyring.authenticate(token_of(headers), now=1.0)
        refuse_loop(headers, instance=busy.gateway.instance)
    except GatewayError:
        return None
    upstreams = busy.nodes if principal.pool == CLUSTER else [busy.account]
    own = OWN.search(express)
    request_id = own[1].decode() if own else ""
    return [
        render_head(
            one.url,
            UpstreamRequest(
                "POST",
                message.path,
                upstream_headers(headers, upstream=one, request_id=request_id, instance=INSTANCE),
                BODY,
            ),
        )
        for one in upstreams
    ]


@pytest.fixture(scope="module")
def busy():
    return Busy(nodes=1, headers=(("x-set", "by the account"),))


@settings(max_examples=300, deadline=None)
@given(asked=requests())
def test_what_is_sent_is_what_the_general_way_sends(busy, asked):
    door = busy.door()

    for pool, lines in asked:
        head = head_of(pool, lines)
        sent = busy.sent(door, head + b"\r\n\r\n" + BODY)
        unlearnt = busy.sent(busy.door(), head + b"\r\n\r\n" + BODY)

        assert (sent is None) == (unlearnt is None), "what was learnt is no reason"
        if sent is not None:
            assert sent in (generally(busy, head, sent) or ())


@pytest.mark.parametrize("pool", [CLUSTER, POOL])
def test_the_right_heads(pool):
    """Rather than the same: values of their own, and those that are not passed on are not."""
    busy = Busy(nodes=1, headers=(("x-set", "by the account"),))
    door = busy.door()
    sent = []
    for number in range(6):
        lines = [
            b"TraceParent: 00-%d" % number,
            b"x-set: %d" % number,
            b"X-Request-Id:%d" % number,
            b"x-a: b",
            b"Idempotency-Key: key %d " % number,
        ]
        sent.append(busy.sent(door, head_of(pool, lines) + b"\r\n\r\n" + BODY))

    assert len(door._heads._waiting) == 2, "two were read"
    for number, head in enumerate(sent):
        lines = head.decode().split("\r\n")
        assert lines[0] == "POST /v1/chat/completions?a=b HTTP/1.1"
        shown = [one for one in lines if str(number) in one.partition(": ")[2][-2:]]
        if pool == CLUSTER:
            assert f"traceparent: 00-{number}" in lines
            assert f"x-set: {number}" in lines
            assert sum(one.startswith("x-request-id: req_") for one in lines) == 1
            assert f"x-request-id: {number}" not in lines
        else:
            assert not any(one.startswith(("traceparent", "x-request-id")) for one in lines)
            assert [one for one in lines if one.startswith("x-set")] == ["x-set: by the account"]
        assert f"idempotency-key: key {number}" in shown
        assert "x-a: b" in lines
        assert lines[-3:] == [f"content-length: {len(BODY)}", "", ""]


def test_a_client_that_says_the_id_of_its_request_keeps_what_it_says():
    """It can foresee it: ids are counted."""
    busy = Busy(nodes=1)
    door = busy.door()
    for _ in range(2):
        own = OWN.search(busy.sent(door, head_of(CLUSTER, []) + b"\r\n\r\n" + BODY))[1]
    number = int(own[-8:], 16)
    foreseen = own[:-8] + b"%08x" % (number + 1)

    heads = [
        busy.sent(door, head_of(CLUSTER, [b"x-a: " + foreseen]) + b"\r\n\r\n" + BODY)
        for _ in range(3)
    ]

    assert OWN.search(heads[0])[1] == foreseen
    assert all(b"\r\nx-a: " + foreseen + b"\r\n" in one for one in heads)
    assert OWN.search(heads[2])[1] != foreseen
