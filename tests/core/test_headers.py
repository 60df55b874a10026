"""Which header lines pass, in both directions."""

import pytest

from llmgw.core.errors import LoopDetected
from llmgw.core.headers import (
    downstream_headers,
    own_headers,
    refuse_loop,
    retry_after_of,
    upstream_headers,
)
from llmgw.core.types import Dialect
from tests import builders

NODE = builders.node("a", credential=(("authorization", "Bearer node"),))
ACCOUNT = builders.account("acct", credential=(("x-api-key", "account"),))


def up(*client, upstream=NODE):
    return upstream_headers(client, upstream=upstream, request_id="req_1", instance="me")


def down(*answer, upstream=NODE, dialect=Dialect.CHAT, stream=False):
    return downstream_headers(
        answer, upstream=upstream, request_id="req_1", dialect=dialect, stream=stream
    )


KEPT = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta", "x-new")
NODES_ONLY = ("openai-organization", "openai-project", "traceparent")
DROPPED = (
    *("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"),
    *("proxy-authorization", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
    *("host", "content-length", "content-encoding", "expect", "x-request-id", "request-id"),
    *("forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "x-openwebui-user-email"),
    *("x-llmgw-debug", "cf-ray", "cf-connecting-ip"),
)


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("upstream", [NODE, ACCOUNT], ids=["node", "account"])
def test_client_headers_go_upstream_as_they_are(name, upstream):
    assert (name, "v") in up((name, "v"), upstream=upstream)


@pytest.mark.parametrize("name", DROPPED)
@pytest.mark.parametrize("upstream", [NODE, ACCOUNT], ids=["node", "account"])
def test_some_client_headers_never_go_upstream(name, upstream):
    assert (name, "v") not in up((name, "v"), upstream=upstream)


@pytest.mark.parametrize("name", NODES_ONLY)
def test_what_names_an_organisation_or_a_trace_stays_in_the_house(name):
    assert (name, "v") in up((name, "v"))
    assert (name, "v") not in up((name, "v"), upstream=ACCOUNT)


def test_the_upstream_gets_its_own_credential_identity_and_our_id():
    assert up(("accept-encoding", "gzip, br")) == (
        ("accept-encoding", "identity"),
        ("via", "1.1 llmgw-me"),
        ("authorization", "Bearer node"),
        ("x-request-id", "req_1"),
    )
    assert up(upstream=ACCOUNT) == (
        ("accept-encoding", "identity"),
        ("via", "1.1 llmgw-me"),
        ("x-api-key", "account"),
    )


def test_an_accounts_own_headers_replace_the_clients():
    account = builders.account("a", headers=(("anthropic-version", "2023-06-01"),))

    sent = up(("anthropic-version", "old"), ("accept", "*/*"), upstream=account)

    assert [value for name, value in sent if name == "anthropic-version"] == ["2023-06-01"]
    assert ("accept", "*/*") in sent


def test_what_connection_names_is_dropped_both_ways():
    lines = (
        ("x-hop", "1"),
        ("connection", "keep-alive, X-Hop"),
        ("connection", "x-two, content-type"),
        ("x-two", "2"),
        ("content-type", "application/json"),
    )

    for passed in (up(*lines), down(*lines)):
        names = [name for name, _ in passed]
        assert "x-hop" not in names
        assert "x-two" not in names
        assert "connection" not in names
        assert "content-type" in names


def test_via_is_kept_and_appended_to():
    sent = up(("via", "1.1 edge"), ("via", "2 proxy (x)"))

    assert [value for name, value in sent if name == "via"] == [
        "1.1 edge, 2 proxy (x), 1.1 llmgw-me"
    ]


@pytest.mark.parametrize(
    ("via", "looped"),
    [
        ("1.1 llmgw-me", True),
        ("1.1 edge, 1.1 llmgw-me (llmgw)", True),
        ("HTTP/1.1 llmgw-me", True),
        ("1.1 llmgw-me2", False),
        ("1.1 llmgw-other", False),
        ("llmgw-me", False),
        ("", False),
    ],
)
def test_a_request_that_was_here_before_is_refused(via, looped):
    headers = (("x-note", "1.1 llmgw-me"), ("via", via))
    if not looped:
        refuse_loop(headers, instance="me")
        return
    with pytest.raises(LoopDetected) as refused:
        refuse_loop(headers, instance="me")
    assert refused.value.status == 508


NODE_DROPS = (
    *("set-cookie", "server", "date", "www-authenticate", "x-request-id", "request-id"),
    *("keep-alive", "transfer-encoding", "content-length", "proxy-authenticate"),
    *("access-control-allow-origin", "access-control-allow-credentials"),
)
ACCOUNT_KEEPS = (
    *("content-type", "retry-after", "retry-after-ms", "x-should-retry"),
    *("x-ratelimit-remaining-requests", "anthropic-ratelimit-tokens-limit"),
    *("openai-processing-ms", "openai-version", "x-codex-primary-used-percent"),
)


@pytest.mark.parametrize("name", NODE_DROPS)
@pytest.mark.parametrize("upstream", [NODE, ACCOUNT], ids=["node", "account"])
def test_some_answer_headers_never_reach_the_client(name, upstream):
    assert (name, "v") not in down((name, "v"), upstream=upstream)


@pytest.mark.parametrize("name", ACCOUNT_KEEPS)
@pytest.mark.parametrize("upstream", [NODE, ACCOUNT], ids=["node", "account"])
def test_limits_and_retry_hints_reach_the_client(name, upstream):
    assert (name, "v") in down((name, "v"), upstream=upstream)


@pytest.mark.parametrize("name", ["x-new-thing", "openai-organization", "cf-ray", "via"])
def test_of_an_accounts_answer_only_known_headers_pass(name):
    assert (name, "v") in down((name, "v"))
    assert (name, "v") not in down((name, "v"), upstream=ACCOUNT)


def test_streams_are_neither_cached_nor_buffered_nor_encoded():
    lines = (("cache-control", "max-age=5"), ("content-encoding", "gzip"))

    passed = down(*lines, stream=True)

    assert passed == (
        ("x-request-id", "req_1"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    )
    assert set(lines) <= set(down(*lines))


def test_messages_routes_repeat_the_id_under_their_own_name():
    assert own_headers(request_id="r", dialect=Dialect.MESSAGES) == (
        ("x-request-id", "r"),
        ("request-id", "r"),
    )
    assert own_headers(request_id="r", dialect=Dialect.JSON) == (("x-request-id", "r"),)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ((), None),
        ((("retry-after", "3"),), 3.0),
        ((("retry-after", "0"),), 0.0),
        ((("retry-after", "-3"),), 0.0),
        ((("retry-after", "1.5"),), 1.5),
        ((("retry-after", "inf"),), None),
        ((("retry-after", "soon"),), None),
        ((("retry-after", ""),), None),
        ((("retry-after", "9"), ("retry-after-ms", "1500")), 1.5),
        ((("retry-after", "9"), ("retry-after-ms", "x")), 9.0),
        ((("retry-after", "Thu, 01 Jan 1970 00:01:40 GMT"),), 40.0),
        ((("retry-after", "Thu, 01 Jan 1970 00:00:40 GMT"),), 0.0),
        ((("retry-after", "Thu, 01 Jan 99999 00:00:40 GMT"),), None),
    ],
)
def test_how_long_an_upstream_asks_to_wait(headers, seconds):
    assert retry_after_of(headers, wall=60.0) == seconds
