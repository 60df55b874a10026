"""What the log is told of one listing after the other."""

import pytest

from llmgw.core.discovery import Listed, ListingFailed
from llmgw.runtime.listing_log import ListingLog
from llmgw.runtime.registry import Registry
from tests.builders import account, config, node
from tests.fakes.clock import Clock

A = node("a", 1)
NOT_SERVED = "configured model not served by node"
FAILED = ListingFailed("status 404")
EMPTY = Listed((), 0.0)
QWEN = Listed(("qwen",), 0.0)


class Told:
    """A registry and the log of what happens to it."""

    def __init__(self, *upstreams, models=()) -> None:
        self.config = config(*upstreams, models=models)
        self.registry = Registry(self.config, clock=Clock())
        self.log = ListingLog()

    def hear(self, upstream, *events) -> None:
        for event in events:
            step = self.registry.discovery_event(upstream, event)
            assert step is not None
            self.log.changed(step, self.config.models)


@pytest.fixture(autouse=True)
def everything(caplog):
    caplog.set_level("INFO", "llmgw")


def messages(caplog) -> list[str]:
    return [record.message for record in caplog.records]


def test_missing_models_are_told_with_the_first_list(caplog):
    Told(A, models=("llama", "qwen")).hear(A, QWEN, QWEN)

    assert messages(caplog) == ["models discovered", NOT_SERVED]


def test_and_with_names_that_were_dropped(caplog):
    Told(A, models=("qwen",)).hear(A, QWEN, EMPTY, EMPTY)

    assert messages(caplog) == ["models discovered", "node reports no models", NOT_SERVED]


@pytest.mark.parametrize("event", [EMPTY, FAILED], ids=["a first empty list", "a failure"])
def test_but_not_where_the_list_stands(caplog, event):
    Told(A, models=("llama",)).hear(A, event)

    assert messages(caplog) == []


def test_an_account_is_not_expected_to_serve_configured_models(caplog):
    one = account("acct")
    Told(one, models=("llama",)).hear(one, QWEN)

    assert messages(caplog) == ["models discovered"]


class TestAnAccountThatListsNothing:
    def test_is_told_of_its_models_key_once(self, caplog):
        one = account("acct")
        Told(one).hear(one, *[FAILED] * 9)

        (record,) = caplog.records
        assert (record.message, record.node, record.levelname) == (
            "account never listed",
            "acct",
            "WARNING",
        )
        assert "`models`" in record.hint

    def test_once_means_once_even_after_an_empty_list(self, caplog):
        one = account("acct")
        Told(one).hear(one, FAILED, EMPTY, FAILED)

        assert messages(caplog) == ["account never listed"]

    def test_is_told_nothing_where_the_key_is_set(self, caplog):
        one = account("acct", models=("gpt",))
        Told(one).hear(one, *[FAILED] * 9)

        assert messages(caplog) == []

    def test_is_told_again_when_it_was_gone_meanwhile(self, caplog):
        one = account("acct")
        told = Told(one)
        told.hear(one, FAILED)
        told.log.keep_only(config())
        told.hear(one, FAILED)

        assert messages(caplog) == ["account never listed"] * 2

    def test_one_that_has_listed_before_degrades_and_expires_like_a_node(self, caplog):
        one = account("acct")
        Told(one).hear(one, QWEN, FAILED, FAILED, FAILED)

        assert messages(caplog) == [
            "models discovered",
            "model discovery failed",
            "model discovery expired",
        ]
