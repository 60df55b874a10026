import pytest

from llmgw.core.config import ModelsConfig
from llmgw.core.errors import InvalidRequest
from llmgw.core.realtime import parse_realtime
from llmgw.core.types import RouteClass


def realtime(query: str, default: str | None = None, headers=()):
    return parse_realtime(
        query, headers=headers, models=ModelsConfig(default=default), request_id="req_1"
    )


def test_the_model_stands_in_the_query_and_the_query_stays_what_it_was():
    call = realtime("?intent=a%20b&model=org%2Fm&model=second")

    assert call.model == "org/m"
    assert call.target == "/v1/realtime?intent=a%20b&model=org%2Fm&model=second"
    assert (call.lane, call.stream) == (RouteClass.WEBSOCKET, False)


@pytest.mark.parametrize(
    ("query", "target"),
    [
        pytest.param("", "/v1/realtime?model=d%2Fe", id="no query"),
        pytest.param("?model=", "/v1/realtime?model=d%2Fe", id="an empty model"),
        pytest.param("?x=1&y=", "/v1/realtime?model=d%2Fe&x=1&y=", id="beside others"),
    ],
)
def test_the_default_takes_the_place_of_a_missing_model(query, target):
    assert realtime(query, default="d/e").target == target


def test_without_a_model_and_a_default_it_is_refused():
    with pytest.raises(InvalidRequest):
        realtime("?x=1")


def test_a_session_header_ties_it_to_others():
    assert realtime("?model=m", headers=(("x-session-id", "s"),)).session == "s"
    assert realtime("?model=m").session is None
