"""A realtime session as a call: the model stands in the query, and nothing in it is changed."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from llmgw.core.config import ModelsConfig
from llmgw.core.routes import ModelIn, Route
from llmgw.core.types import Dialect, Headers, RouteClass
from llmgw.core.wire import SESSION_HEADERS, Call, default_model

REALTIME = Route("/v1/realtime", Dialect.JSON, RouteClass.WEBSOCKET, ModelIn.QUERY, method="GET")


def parse_realtime(query: str, *, headers: Headers, models: ModelsConfig, request_id: str) -> Call:
    """`query` with its "?", or empty. Raises `InvalidRequest`."""
    pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True)
    model = next((value for name, value in pairs if name == "model"), "")
    if not model:
        model = default_model(models)
        rest = [pair for pair in pairs if pair[0] != "model"]
        query = "?" + urlencode([("model", model), *rest])
    named = dict(reversed(headers))
    return Call(
        route=REALTIME,
        model=model,
        stream=False,
        body=b"",
        target=REALTIME.path + query,
        headers=headers,
        request_id=request_id,
        session=next((named[one] for one in SESSION_HEADERS if named.get(one)), None),
    )
