"""Which page answers a path, and which URL was probably meant."""

import pytest

from llmgw.core.errors import MethodNotAllowed
from llmgw.core.types import Dialect
from llmgw.web.pages import public_pages
from llmgw.web.table import Page, Table, dialect_of
from tests.fakes.gateway import FakeGateway


async def handler(incoming):
    return None


@pytest.fixture
def table():
    return Table(public_pages(FakeGateway()))


@pytest.mark.parametrize(
    ("path", "page", "tail"),
    [
        ("/", "/", ""),
        ("", "/", ""),
        ("/v1/chat/completions", "/v1/chat/completions", ""),
        ("/v1/chat/completions/", "/v1/chat/completions", ""),
        ("/v1/chat%2Fcompletions", "/v1/chat/completions", ""),
        ("/v1/models", "/v1/models", ""),
        ("/v1/models/", "/v1/models", ""),
        ("/v1/models/org/mix-7b:q4", "/v1/models", "org/mix-7b:q4"),
        ("/v1/models/org%2Fmix-7b%3Aq4", "/v1/models", "org/mix-7b:q4"),
        ("/v1/models/a+b%20c", "/v1/models", "a+b c"),
    ],
)
def test_a_path_finds_its_page(table, path, page, tail):
    match = table.find(path)

    assert (match.page.path, match.tail) == (page, tail)


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/modelsx", "/V1/models", "/v1//chat/completions", "/v1/completion%", "*"]
)
def test_no_other_path_does(table, path):
    assert table.find(path) is None


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
        ("/openai/v1/responses/", "/v1/responses"),
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("/V1/Messages", "/v1/messages"),
        ("/v1/embedding", "/v1/embeddings"),
        ("/models", "/v1/models"),
        ("/v1/messages/count_token", "/v1/messages/count_tokens"),
        ("/heath", "/health"),
        ("/v1/tokenize", "/tokenize"),
        ("/wp-login.php", "/v1/chat/completions"),
        ("/" + "x" * 100_000, "/v1/chat/completions"),
    ],
)
def test_an_unknown_path_is_told_which_one_was_probably_meant(table, path, meant):
    assert table.missing(path).message == f"unknown URL; did you mean {meant}?"


def test_whoever_looks_for_metrics_is_told_where_they_are(table):
    assert table.missing("/metrics").message.endswith("served at gateway.metrics_listen")


def test_a_page_answers_head_with_its_get():
    page = Page("/p", {"GET": handler})

    assert page.handler("HEAD") is page.handler("GET") is handler


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PROPFIND"])
def test_another_method_is_told_those_that_are_allowed(method):
    with pytest.raises(MethodNotAllowed) as caught:
        Page("/p", {"POST": handler}).handler(method)

    assert caught.value.headers == (("allow", "OPTIONS, POST"),)


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/messages/none", Dialect.MESSAGES),
        ("/v1/messages", Dialect.MESSAGES),
        ("/v1/messagesx", Dialect.JSON),
        ("/x", Dialect.JSON),
    ],
)
def test_an_unknown_path_is_refused_in_the_dialect_around_it(path, dialect):
    assert dialect_of(path) is dialect
