"""The text exposition."""

from prometheus_client.parser import text_string_to_metric_families

from llmgw.observe import metrics
from tests.fakes.raw_client import request


async def test_the_exposition_parses_and_counts_open_connections(metrics_door):
    before = metrics.OPEN_CONNECTIONS._value.get()
    client = await metrics_door.client()

    reply = await client.ask(request("GET", "/metrics"))

    families = {one.name: one for one in text_string_to_metric_families(reply.body.decode())}
    [sample] = families["gateway_open_connections"].samples
    assert reply.headers["content-type"] == metrics.CONTENT_TYPE
    assert sample.value == before + 1
