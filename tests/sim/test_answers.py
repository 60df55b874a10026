import base64
import struct

import pytest

from llmgw.sim import answers


def test_an_unknown_model_is_told_with_the_status_as_code():
    error = answers.unknown_model("/v1/chat/completions")["error"]

    assert (error["type"], error["param"], error["code"]) == ("NotFoundError", "model", 404)


def test_an_unknown_model_on_messages_has_neither_param_nor_code():
    body = answers.unknown_model("/v1/messages")

    assert body["type"] == "error"
    assert set(body["error"]) == {"type", "message"}


def test_a_hosted_providers_code_is_a_string():
    assert answers.coded_model_not_found()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, "InternalServerError"), (503, "ServiceUnavailableError"), (429, "RateLimitError")],
)
def test_a_failure_of_the_engine_says_its_status_twice(status, kind):
    error = answers.engine_died(status)["error"]

    assert (error["type"], error["code"]) == (kind, status)


def test_an_answer_tells_its_node_and_has_the_asked_length():
    words = answers.text("node-a", 100)

    assert "".join(words[:3]) == "Hello from node-a. "
    assert len(words) == 100


def test_a_list_carries_what_the_engine_lists():
    body = answers.model_list(["m", "n"], 1_700_000_000, 4096)

    assert body["object"] == "list"
    assert [one["id"] for one in body["data"]] == ["m", "n"]
    assert {one["max_model_len"] for one in body["data"]} == {4096}
    assert {one["owned_by"] for one in body["data"]} == {"vllm"}


def test_a_vector_is_the_same_for_the_same_text_and_in_both_encodings():
    plain = answers.embeddings("e", "m", 1, ["a", "b", "a"], 8, encoded=False)["data"]
    packed = answers.embeddings("e", "m", 1, ["a"], 8, encoded=True)["data"]

    assert plain[0]["embedding"] == plain[2]["embedding"] != plain[1]["embedding"]
    unpacked = struct.unpack("<8f", base64.b64decode(packed[0]["embedding"]))
    assert unpacked == pytest.approx(plain[0]["embedding"])


def test_documents_are_ranked_by_what_they_share_with_the_query():
    results = answers.rerank("r", "m", "red fox", ["blue sea", "a red fox", "red"])["results"]

    assert [one["index"] for one in results] == [1, 2, 0]
    assert results[0]["document"]["text"] == "a red fox"


@pytest.mark.parametrize(
    ("one", "other", "value"), [("a b", "A B", 1.0), ("a", "b", 0.0), ("", "", 0.0)]
)
def test_similarity_lies_between_nothing_and_all(one, other, value):
    assert answers.similarity(one, other) == value
