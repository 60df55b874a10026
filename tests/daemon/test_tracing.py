import sys

import pytest

from llmgw.core.config import TracingConfig
from llmgw.daemon.tracing import Tracing
from llmgw.observe import traces
from llmgw.runtime.tasks import Supervisor
from tests.fakes.patience import until

HERE = TracingConfig("http://127.0.0.1:9", 0.5)
THERE = TracingConfig("http://127.0.0.1:10", 0.5)


class FakeTracer:
    def __init__(self, config, instance):
        self.config = config
        self.instance = instance
        self.closed = 0

    def close(self):
        self.closed += 1


@pytest.fixture
def opened(monkeypatch):
    made = []

    def open_tracer(config, *, instance):
        made.append(FakeTracer(config, instance))
        return made[-1]

    monkeypatch.setattr(traces, "open_tracer", open_tracer)
    return made


async def until_closed(tracer):
    await until(lambda: tracer.closed)


@pytest.fixture
async def supervisor():
    made = Supervisor()
    yield made
    await made.stop()


@pytest.fixture
async def tracing(supervisor):
    return Tracing(supervisor, instance="gw1")


async def test_without_an_endpoint_nothing_is_opened(tracing, opened):
    tracing.take(TracingConfig())
    await tracing.close()

    assert tracing.tracer is None
    assert opened == []


async def test_a_reload_that_changes_nothing_of_it_keeps_the_tracer(tracing, opened):
    tracing.take(HERE)
    tracing.take(TracingConfig("http://127.0.0.1:9", 0.5))

    assert [one.config for one in opened] == [HERE]
    assert tracing.tracer.instance == "gw1"


async def test_another_endpoint_replaces_it_and_the_old_one_sends_what_it_has(tracing, opened):
    tracing.take(HERE)
    tracing.take(THERE)
    first, second = opened
    await until_closed(first)

    assert (tracing.tracer, first.closed, second.closed) == (second, 1, 0)
    await tracing.close()
    assert second.closed == 1


async def test_turning_it_off_ends_it(tracing, opened):
    tracing.take(HERE)
    tracing.take(TracingConfig())
    await until_closed(opened[0])

    assert tracing.tracer is None
    assert opened[0].closed == 1


async def test_without_the_packages_the_gateway_serves_and_says_what_is_missing(
    tracing, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, "llmgw.observe.traces", None)

    tracing.take(HERE)

    assert tracing.tracer is None
    [record] = caplog.records
    assert (record.message, record.levelname) == ("traces are not sent", "ERROR")
    assert record.hint == "pip install '.[otel]' in a clone"
