import io
import json
import logging

import pytest

from llmgw.core.config import LogConfig
from llmgw.daemon.tally import Tally
from llmgw.observe import logs
from llmgw.observe.metrics import REQUESTS
from llmgw.web.access import AccessRecord, Ending


class Catalog:
    def knows(self, model):
        return model == "llama"


class Pool:
    name = "cluster"


class FakeGateway:
    """A catalog of one model, in one pool."""

    class config:
        pools = (Pool(),)

    def catalog(self, pool):
        return Catalog()


def record(route="/v1/chat/completions", model="llama"):
    return AccessRecord("POST", route, 200, 2, 0.5, "req_1", Ending.WHOLE, "key", model)


@pytest.fixture
def lines():
    """What the log says, line by line."""
    stream = io.StringIO()
    before = logging.root.level, logging.getLogger("llmgw").level, logging.raiseExceptions
    logs.setup(LogConfig(), stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logging.root.removeHandler(logs._handler)
    logs._handler = None
    logging.root.setLevel(before[0])
    logging.getLogger("llmgw").setLevel(before[1])
    logging.raiseExceptions = before[2]


def counted(model):
    return REQUESTS.labels(model, "200")._value.get()


@pytest.mark.parametrize(
    ("model", "label"),
    [
        pytest.param("llama", "llama", id="a model that the catalog knows"),
        pytest.param("made-up-by-a-client", "other", id="any other name"),
        pytest.param(None, "other", id="none at all"),
    ],
)
def test_a_request_counts_under_a_model_that_is_known(model, label):
    before = counted(label)

    Tally(FakeGateway())(record(model=model))

    assert counted(label) == before + 1


def test_a_page_that_is_no_inference_is_logged_and_not_counted(lines):
    before = counted("other")

    Tally(FakeGateway())(record(route="/health", model=None))

    assert counted("other") == before
    assert [line["message"] for line in lines()] == ["request"]


def test_a_name_that_a_client_made_up_is_not_logged(lines):
    Tally(FakeGateway())(record(model="made-up-by-a-client"))

    assert lines()[0]["model"] == "other"


def test_the_line_says_who_served_it_and_what_the_gateway_took_of_the_time(lines):
    Tally(FakeGateway())(record()._replace(assignment="p/a", attempts=2, overhead=0.00012349))

    (line,) = lines()
    assert (line["assignment"], line["attempts"], line["overhead"]) == ("p/a", 2, 0.000123)
    assert (line["request_id"], line["status"], line["bytes"]) == ("req_1", 200, 2)


@pytest.mark.parametrize(
    "other",
    [
        {"method": "GET"},
        {"route": "/v1/messages"},
        {"status": 502},
        {"ending": Ending.CUT},
        {"key": None},
        {"model": "made-up"},
        {"model": None},
        {"assignment": "p/b"},
        {"attempts": 2},
    ],
    ids=lambda other: "-".join(other),
)
def test_records_that_differ_in_one_thing_are_told_apart(lines, other):
    tally = Tally(FakeGateway())

    for _ in range(2):
        tally(record())
        tally(record()._replace(**other))

    name, value = next(iter(other.items()))
    shown = "other" if value == "made-up" else value
    usual = record()._asdict()[name]
    assert [line[name] for line in lines()] == [usual, shown] * 2


def test_the_socket_that_carries_turns_is_no_request_of_its_own():
    before = REQUESTS.labels("llama", "101")._value.get()

    Tally(FakeGateway())(record(route="/v1/responses")._replace(status=101))

    assert REQUESTS.labels("llama", "101")._value.get() == before


def test_kinds_are_forgotten_when_there_are_too_many(lines, monkeypatch):
    monkeypatch.setattr("llmgw.daemon.tally.MAX_KINDS", 3)
    tally = Tally(FakeGateway())
    before = counted("llama")

    for number in range(10):
        tally(record()._replace(attempts=number))

    assert [line["attempts"] for line in lines()] == list(range(10))
    assert counted("llama") == before + 10
    assert len(tally._kinds) <= 3
