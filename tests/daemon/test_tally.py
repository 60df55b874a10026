import pytest

from llmgw.daemon.tally import Tally
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


def test_a_page_that_is_no_inference_is_logged_and_not_counted(caplog):
    before = counted("other")

    with caplog.at_level("INFO", "llmgw.access"):
        Tally(FakeGateway())(record(route="/health", model=None))

    assert counted("other") == before
    assert [one.message for one in caplog.records] == ["request"]


def test_a_name_that_a_client_made_up_is_not_logged(caplog):
    with caplog.at_level("INFO", "llmgw.access"):
        Tally(FakeGateway())(record(model="made-up-by-a-client"))

    assert caplog.records[0].model == "other"
