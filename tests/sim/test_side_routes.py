import aiohttp
import pytest

from llmgw.sim.side_routes import SIDE_ROUTES

BODIES = {
    "/v1/embeddings": {"input": ["a", "b"]},
    "/v1/rerank": {"query": "a", "documents": ["b", "a"]},
    "/v1/score": {"text_1": "a", "text_2": ["a", "b"]},
    "/tokenize": {"prompt": "hé"},
    "/detokenize": {"tokens": [104, 105]},
    "/v1/messages/count_tokens": {"messages": [{"role": "user", "content": "hi"}]},
}


async def post(http, node, path, **body):
    response = await http.post(node.url + path, json={"model": "m", **body})
    return response.status, await response.json()


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        (
            "/v1/embeddings",
            lambda body: [len(one["embedding"]) for one in body["data"]] == [16, 16],
        ),
        ("/v1/rerank", lambda body: body["results"][0]["index"] == 1),
        ("/v1/score", lambda body: [one["score"] for one in body["data"]] == [1.0, 0.0]),
        ("/tokenize", lambda body: body["tokens"] == [104, 195, 169] and body["count"] == 3),
        ("/detokenize", lambda body: body == {"prompt": "hi"}),
        ("/v1/messages/count_tokens", lambda body: body == {"input_tokens": 2}),
    ],
)
async def test_each_route_answers_in_its_shape(node, http, path, facts):
    status, body = await post(http, node, path, **BODIES[path])

    assert status == 200
    assert facts(body)
    assert (node.seen[0].path, node.seen[0].outcome) == (path, "served")


async def test_a_single_input_is_one_vector_of_the_asked_size(node, http):
    _, body = await post(http, node, "/v1/embeddings", input="a", dimensions=3)

    assert [len(one["embedding"]) for one in body["data"]] == [3]


async def test_messages_are_tokenized_where_there_is_no_prompt(node, http):
    _, body = await post(http, node, "/tokenize", messages=[{"content": "hi"}])

    assert body["tokens"] == [104, 105]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/embeddings", {"input": "a", "dimensions": 0}, "dimensions"),
        ("/v1/embeddings", {"input": "a", "dimensions": "3"}, "dimensions"),
        ("/detokenize", {"tokens": ["x"]}, "tokens"),
        ("/detokenize", {"tokens": [300]}, "tokens"),
    ],
)
async def test_a_wrong_value_is_refused_by_name(node, http, path, body, param):
    status, answer = await post(http, node, path, **body)

    assert (status, answer["error"]["param"]) == (400, param)


@pytest.mark.parametrize("path", SIDE_ROUTES)
async def test_an_unknown_model_is_refused(node, http, path):
    status, body = await post(http, node, path, model="nope")

    assert (status, body["error"]["type"]) == (404, "NotFoundError")
    assert node.seen[0].outcome == "404"


@pytest.mark.parametrize(
    ("fault", "status"),
    [("status,status=502", 502), ("model_not_found", 404), ("in_band,status=500", 500)],
)
async def test_faults_of_inference_are_met_here_too(node, http, fault, status):
    await node.inject(fault)

    assert (await post(http, node, "/v1/embeddings", input="a"))[0] == status


@pytest.mark.parametrize("fault", ["cut", "reset"])
async def test_a_lost_connection(node, http, fault):
    await node.inject(fault)

    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await post(http, node, "/v1/embeddings", input="a")
    assert node.seen[0].outcome == fault
