"""The table of routes: what it offers, and that each row is whole."""

import pytest

from llmgw.core.routes import BY_PATH, ModelIn
from llmgw.core.types import Dialect

JSON_ROUTES = (
    *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"),
    *("/v1/messages/count_tokens", "/v1/embeddings", "/v1/rerank", "/v1/score"),
    *("/v1/moderations", "/v1/images/generations", "/v1/audio/speech"),
    *("/tokenize", "/detokenize", "/v1/responses/compact"),
)


@pytest.mark.parametrize("path", JSON_ROUTES)
def test_a_json_route_is_posted_to_with_a_model_in_its_body(path):
    route = BY_PATH[path]

    assert (route.path, route.method) == (path, "POST")
    assert route.model_in is ModelIn.BODY


@pytest.mark.parametrize(
    ("path", "dialect", "streams"),
    [
        ("/v1/chat/completions", Dialect.CHAT, True),
        ("/v1/completions", Dialect.COMPLETIONS, True),
        ("/v1/responses", Dialect.RESPONSES, True),
        ("/v1/messages", Dialect.MESSAGES, True),
        ("/v1/messages/count_tokens", Dialect.MESSAGES, False),
        ("/v1/embeddings", Dialect.JSON, False),
    ],
)
def test_a_route_speaks_a_dialect_and_streams_where_that_has_a_stream(path, dialect, streams):
    route = BY_PATH[path]

    assert (route.dialect, route.streams) == (dialect, streams)
