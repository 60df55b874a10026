import asyncio

import aiohttp
import pytest

SHORT = aiohttp.ClientTimeout(total=0.2)


async def test_a_living_engine_answers_health_with_nothing(node, http):
    async with http.get(f"{node.url}/health") as response:
        assert (response.status, await response.read()) == (200, b"")
        assert response.headers["content-length"] == "0"
        assert response.headers["server"] == "uvicorn"


async def test_models_are_listed_in_their_order(node, http):
    async with http.get(f"{node.url}/v1/models") as response:
        assert [one["id"] for one in (await response.json())["data"]] == ["m", "n"]


@pytest.mark.parametrize(
    ("path", "body"),
    [("/version", {"version": "0.32.0"}), ("/load", {"server_load": 0})],
)
async def test_small_facts(node, http, path, body):
    async with http.get(node.url + path) as response:
        assert await response.json() == body


async def test_the_scrape_counts_what_was_generated(node, http):
    await http.post(f"{node.url}/v1/completions", json={"model": "m", "prompt": "abc"})

    async with http.get(f"{node.url}/metrics") as response:
        text = await response.text()

    assert 'vllm:generation_tokens_total{engine="0",model_name="m"} 4.0' in text
    assert 'vllm:prompt_tokens_total{engine="0",model_name="m"} 3.0' in text


@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        ("GET", "/nope", 404, "Not Found"),
        ("GET", "/v1/chat/completions", 405, "Method Not Allowed"),
        ("GET", "/v1/responses", 405, "Method Not Allowed"),
    ],
)
async def test_an_unknown_route_is_answered_by_the_framework(
    node, http, method, path, status, detail
):
    async with http.request(method, node.url + path) as response:
        assert (response.status, await response.json()) == (status, {"detail": detail})


async def test_a_websocket_handshake_is_refused_and_the_connection_closed(node, http):
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await http.ws_connect(f"{node.url}/v1/responses")

    assert refused.value.status == 403
    assert refused.value.headers["connection"] == "close"


async def test_health_fails_when_told_to(node, http):
    await node.inject("health_error,times=1")

    statuses = [(await http.get(f"{node.url}/health")).status for _ in range(2)]

    assert statuses == [503, 200]


@pytest.mark.parametrize(
    ("fault", "path", "other"),
    [("hang_health", "/health", "/v1/models"), ("hang_list", "/v1/models", "/health")],
)
async def test_one_lane_hangs_and_the_other_goes_on(node, http, fault, path, other):
    await node.inject(fault)

    with pytest.raises(asyncio.TimeoutError):
        await http.get(node.url + path, timeout=SHORT)
    assert (await http.get(node.url + other)).status == 200


@pytest.mark.parametrize(
    ("fault", "status", "models"),
    [
        pytest.param("empty_list", 200, [], id="empty"),
        pytest.param("list_error,status=502", 502, None, id="error"),
        pytest.param("unload,model=m", 200, ["n"], id="a model gone"),
        pytest.param("hang", 200, ["m", "n"], id="a fault of inference"),
    ],
)
async def test_a_list_is_wrong_when_told_to(node, http, fault, status, models):
    await node.inject(fault)

    async with http.get(f"{node.url}/v1/models") as response:
        assert response.status == status
        data = (await response.json()).get("data")
        assert (data and [one["id"] for one in data]) == models or data == models


async def test_faults_are_switched_shown_and_cleared_over_http(node, http):
    url = f"{node.url}/_sim/faults"

    async with http.post(
        url, json=[{"fault": "hang", "times": 2}, {"fault": "list_error"}]
    ) as sent:
        assert sent.status == 200
    async with http.get(url) as shown:
        faults = (await shown.json())["faults"]
    async with http.delete(url) as cleared:
        assert await cleared.json() == {"faults": []}

    assert [(one["fault"], one["times"]) for one in faults] == [("hang", 2), ("list_error", None)]
    assert node.faults.active == ()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b'{"fault": "explode"}', "unknown fault", id="unknown"),
        pytest.param(b'{"fault": "hang", "times": 0}', "times must be", id="setting"),
        pytest.param(b"hang", "a JSON object", id="no JSON"),
        pytest.param(b'"hang"', "a JSON object", id="no object"),
        pytest.param(b"\xff", "a JSON object", id="no UTF-8"),
    ],
)
async def test_a_fault_that_cannot_be_read_changes_nothing(node, http, body, why):
    async with http.post(f"{node.url}/_sim/faults", data=body) as response:
        assert response.status == 400
        assert why in (await response.json())["error"]

    assert node.faults.active == ()


async def test_what_was_seen_is_told_without_the_prompt(node, http):
    body = {"model": "m", "prompt": "a secret", "stream": True}
    await http.post(f"{node.url}/v1/completions", json=body, headers={"x-request-id": "r1"})

    async with http.get(f"{node.url}/_sim/requests") as response:
        text = await response.text()
        (one,) = (await response.json())["requests"]

    assert one == {
        "path": "/v1/completions",
        "model": "m",
        "stream": True,
        "request_id": "r1",
        "outcome": "served",
        "tokens": 4,
    }
    assert "secret" not in text
