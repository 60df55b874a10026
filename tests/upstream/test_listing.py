"""One listing over a real socket: bounded, paged where the provider pages, never half a list."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from llmgw.core.config import BaseUrl
from llmgw.core.listing import Page, Unreadable
from llmgw.upstream.client import WatchClient
from llmgw.upstream.known_lists import KnownLists
from llmgw.upstream.listing import MAX_PAGES, list_models
from tests.builders import account, node
from tests.fakes.descriptors import no_descriptors
from tests.fakes.rawserver import RawServer, answers, json_answer

MAX_BYTES = 4 * 1024 * 1024


@pytest.fixture
async def client():
    made = WatchClient()
    yield made
    await made.close()


def listing(*names: str, **more: object) -> bytes:
    data = [{"id": name, "object": "model"} for name in names]
    return json_answer(json.dumps({"object": "list", "data": data, **more}).encode())


async def ask(client, upstream, *, within=5.0, max_bytes=MAX_BYTES):
    return await list_models(client, KnownLists(), upstream, within=within, max_bytes=max_bytes)


async def test_a_node_is_asked_plainly_with_its_credential_and_prefix(client):
    async with RawServer(answers(listing("b", "a"))) as server:
        url = BaseUrl("http", "127.0.0.1", server.port, "/vllm")
        one = node("a", credential=(("authorization", "Bearer s"),))
        page = await ask(client, type(one)(one.name, url, credential=one.credential))

        assert page == Page(("b", "a"))
        assert server.requests[0].line == "GET /vllm/v1/models HTTP/1.1"
        assert server.requests[0].values("authorization") == ["Bearer s"]
        assert server.requests[0].values("anthropic-version") == []


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        pytest.param(json_answer(b"<html>CANARY</html>"), "the list is not JSON", id="HTML"),
        pytest.param(json_answer(b'{"data":[{"id'), "the list is not JSON", id="truncated"),
        pytest.param(json_answer(b'{"data":["\xff"]}'), "the list is not JSON", id="not UTF-8"),
        pytest.param(json_answer(b'{"error":"CANARY"}'), "the list has no data array", id="error"),
        pytest.param(json_answer(b"", status=301), "status 301", id="a redirect"),
        pytest.param(json_answer(b"CANARY", status=404), "status 404", id="404"),
        pytest.param(json_answer(b"", status=204), "status 204", id="204"),
        pytest.param(b"CANARY\r\n\r\n", "answer that is not HTTP", id="not HTTP"),
    ],
)
async def test_what_is_no_list_is_a_failure_in_words_of_ours(client, sent, error):
    async with RawServer(answers(sent)) as server:
        assert await ask(client, node("a", server.port)) == Unreadable(error)


async def test_a_list_over_the_limit_is_a_failure_even_where_its_beginning_is_json(client):
    async with RawServer(answers(listing("a" * 100))) as server:
        found = await ask(client, node("a", server.port), max_bytes=50)

    assert found == Unreadable("the list is longer than 50 bytes")


async def test_an_upstream_that_hangs_is_given_up(client):
    async def play(peer):
        await peer.request()
        await peer.left()

    async with RawServer(play) as server:
        found = await ask(client, node("a", server.port), within=0.1)

    assert found == Unreadable("no whole answer in time")


async def test_a_listing_that_was_not_made_says_nothing_of_the_upstream(client):
    async with RawServer(answers(listing("a"))) as server:
        with no_descriptors():
            assert await ask(client, node("a", server.port)) is None

        assert await ask(client, node("a", server.port)) == Page(("a",))


async def test_a_list_that_did_not_change_is_the_same_object(client):
    known = KnownLists()
    async with RawServer(answers(listing("a"), listing("a"), listing("a", "b"))) as server:
        one = node("a", server.port)
        first, second, third = [
            await list_models(client, known, one, within=5.0, max_bytes=MAX_BYTES)
            for _ in range(3)
        ]

    assert second is first
    assert third == Page(("a", "b"))


async def test_a_hundred_thousand_models_are_read(client):
    names = [f"model-{n}" for n in range(100_000)]
    async with RawServer(answers(listing(*names))) as server:
        page = await ask(client, node("a", server.port), max_bytes=8 * 1024 * 1024)

    assert isinstance(page, Page)
    assert page.names == tuple(names)


class TestPages:
    def account(self, server: RawServer, **fields: object):
        credential = (("x-api-key", "s"),)
        return account("a", server.port, auth="x-api-key", credential=credential, **fields)

    def query(self, server: RawServer, number: int) -> dict[str, list[str]]:
        return parse_qs(urlsplit(server.requests[number].line.split()[1]).query)

    async def test_an_account_with_x_api_key_is_asked_in_its_provider_s_way(self, client):
        async with RawServer(answers(listing("a"))) as server:
            await ask(client, self.account(server))

            assert server.requests[0].line == "GET /v1/models?limit=1000 HTTP/1.1"
            assert server.requests[0].values("anthropic-version") == ["2023-06-01"]
            assert server.requests[0].values("x-api-key") == ["s"]

    async def test_the_configured_version_stands(self, client):
        headers = (("anthropic-version", "2030-01-01"),)
        async with RawServer(answers(listing("a"))) as server:
            await ask(client, self.account(server, headers=headers))

            assert server.requests[0].values("anthropic-version") == ["2030-01-01"]

    async def test_pages_are_followed_and_put_together(self, client):
        pages = (
            listing("a", "b", has_more=True, last_id="b&c d"),
            listing("b", "c", has_more=False),
        )
        async with RawServer(answers(*pages)) as server:
            page = await ask(client, self.account(server))

            assert page == Page(("a", "b", "c"))
            assert self.query(server, 1) == {"limit": ["1000"], "after_id": ["b&c d"]}

    async def test_lengths_of_all_pages_are_kept_the_first_of_a_name_counting(self, client):
        def page(length: int, **more: object) -> bytes:
            data = [{"id": "a", "max_model_len": length}]
            return json_answer(json.dumps({"data": data, **more}).encode())

        async with RawServer(answers(page(1, has_more=True), page(2))) as server:
            found = await ask(client, self.account(server))

        assert found == Page(("a",), (("a", 1),))

    async def test_at_most_ten_are_followed(self, client):
        async with RawServer(answers(listing("a", has_more=True))) as server:
            page = await ask(client, self.account(server))

            assert page == Page(("a",))
            assert len(server.requests) == MAX_PAGES == 10

    async def test_half_a_list_is_none(self, client):
        pages = (listing("a", has_more=True), json_answer(b"", status=500))
        async with RawServer(answers(*pages)) as server:
            assert await ask(client, self.account(server)) == Unreadable("status 500")

    async def test_all_pages_share_the_time(self, client):
        async def play(peer):
            await peer.request()
            await peer.send(listing("a", has_more=True))
            await peer.request()
            await peer.left()

        async with RawServer(play) as server:
            found = await ask(client, self.account(server), within=0.2)

        assert found == Unreadable("no whole answer in time")

    @pytest.mark.parametrize("auth", ["bearer", "api-key"])
    async def test_other_providers_have_no_pages(self, client, auth):
        async with RawServer(answers(listing("a", has_more=True))) as server:
            page = await ask(client, account("a", server.port, auth=auth))

            assert isinstance(page, Page)
            assert [one.line for one in server.requests] == ["GET /v1/models HTTP/1.1"]
