"""What an attempt sends, and how a refusal is read: bounded, in time, and whole or not at all."""

import pytest

from llmgw.core.config import Config
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind, UpstreamError
from llmgw.core.http import ResponseHead
from llmgw.core.types import AssignmentId
from llmgw.runtime import answer
from llmgw.runtime.answer import Errand, answer_headers, read_up_to, refused_by_status, request_for
from tests.builders import account, call, node
from tests.fakes.downstream import FakeDownstream
from tests.fakes.exchange import JSON, FakeExchange

NODE = Candidate(AssignmentId("cluster/a"), node("a"))
ACCOUNT = Candidate(AssignmentId("p/x"), account("x"))
ERROR = b'{"error":{"message":"m","type":"t","param":"p","code":"c"}}'
CUT = UpstreamError(FaultKind.CUT)


def errand(**fields) -> Errand:
    return Errand(call(), Config(), FakeDownstream(), "m", **fields)


def test_the_request_goes_up_with_its_target_and_bytes_untouched():
    made = call(b'{"model": "m" }')

    sent = request_for(NODE, made, instance="me")

    assert (sent.method, sent.target, sent.body) == ("POST", made.target, made.body)
    assert ("via", "1.1 llmgw-me") in sent.headers


@pytest.mark.parametrize(("explain", "shown"), [(True, "2"), (False, None)])
def test_only_who_may_know_is_told_how_many_attempts_it_took(explain, shown):
    made = errand(explain=explain)
    for _ in range(2):
        made.journey.attempt(NODE.assignment, now=0.0)

    headers = dict(answer_headers(ResponseHead(200, JSON), NODE, made, stream=False))

    assert headers.get("x-llmgw-attempts") == shown
    assert headers["content-type"] == "application/json"


def test_of_an_account_only_known_headers_are_shown():
    head = ResponseHead(200, (*JSON, ("x-new", "1"), ("x-ratelimit-limit", "9")))

    names = [
        [name for name, _ in answer_headers(head, one, errand(), stream=False)]
        for one in (NODE, ACCOUNT)
    ]

    assert names == [
        ["content-type", "x-new", "x-ratelimit-limit", "x-request-id"],
        ["content-type", "x-ratelimit-limit", "x-request-id"],
    ]


class TestRefused:
    async def test_its_words_are_read_for_the_verdict_and_kept_for_the_client(self):
        headers = (*JSON, ("retry-after", "3"))

        refused = await refused_by_status(FakeExchange(429, headers, (ERROR,)), wall=0.0)

        assert (refused.fault.status, refused.fault.code, refused.fault.param) == (429, "c", "p")
        assert refused.fault.retry_after == 3.0
        assert (refused.headers, refused.body) == (headers, ERROR)
        assert refused.error.message == "m"

    @pytest.mark.parametrize(
        ("body", "bare"),
        [
            pytest.param(b'{"detail":"Not Found"}', True, id="a framework's"),
            pytest.param(b"<html>", False, id="no JSON"),
            pytest.param(b"", False, id="nothing"),
        ],
    )
    async def test_without_an_error_object_only_the_status_speaks(self, body, bare):
        reads = (body,) if body else ()

        refused = await refused_by_status(FakeExchange(404, JSON, reads), wall=0.0)

        assert refused.error is None
        assert (refused.fault.status, refused.fault.code) == (404, None)
        assert refused.fault.bare_detail is bare

    @pytest.mark.parametrize(
        ("exchange", "kind"),
        [
            pytest.param(FakeExchange(500, JSON, (b'{"e',), CUT), FaultKind.CUT, id="cut"),
            pytest.param(
                FakeExchange(500, JSON, (b"x" * 9, b"y" * 9)), FaultKind.INVALID, id="too long"
            ),
            pytest.param(
                FakeExchange(500, JSON, (b"x",), hangs=True), FaultKind.TIMEOUT, id="never ends"
            ),
        ],
    )
    async def test_one_that_is_not_read_whole_is_no_answer(self, monkeypatch, exchange, kind):
        monkeypatch.setattr(answer, "ERROR_BODY_LIMIT", 16)
        monkeypatch.setattr(answer, "ERROR_BODY_TIMEOUT", 0.01)

        with pytest.raises(UpstreamError) as failed:
            await refused_by_status(exchange, wall=0.0)

        assert failed.value.kind is kind


@pytest.mark.parametrize(
    ("reads", "limit", "read"),
    [
        pytest.param((), 4, (b"", True), id="nothing"),
        pytest.param((b"abcd",), 4, (b"abcd", True), id="just so long"),
        pytest.param((b"ab", b"cd"), 4, (b"abcd", True), id="in parts"),
        pytest.param((b"ab", b"cde", b"f"), 4, (b"abcde", False), id="longer"),
    ],
)
async def test_a_body_is_read_until_it_is_too_long(reads, limit, read):
    assert await read_up_to(FakeExchange(reads=reads), limit) == read
