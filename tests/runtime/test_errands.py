"""What a request needs on its way, put together from its call and who asks."""

import pytest

from llmgw.core.types import CLUSTER
from llmgw.runtime.journey import Journey
from tests.builders import call, config, principal, streaming
from tests.fakes.downstream import FakeDownstream
from tests.fakes.scene import TWO_NODES, Scene


def made(request, scene=None, **options):
    scene = scene or Scene()
    who = options.pop("who", principal())
    options.setdefault("config", scene.config)
    return scene.gateway.errands.make(request, who, FakeDownstream(), Journey(), **options)


async def test_a_pool_has_one_budget():
    errands = Scene().gateway.errands

    assert errands.budget(CLUSTER) is errands.budget(CLUSTER)
    assert errands.budget(CLUSTER) is not errands.budget("p")


async def test_a_context_says_whose_request_it_is():
    scene = Scene()

    context = scene.gateway.errands.context(call(), principal(labels=(("team", "x"),)))

    assert context.scope.request_id == "req_1"
    assert (context.scope.pool, context.scope.key, context.scope.model) == (CLUSTER, "k", "m")
    assert (context.client.name, context.client.labels) == ("tester", (("team", "x"),))
    assert context.budget is scene.gateway.errands.budget(CLUSTER)


async def test_an_errand_knows_its_model_as_metrics_name_it():
    errand = made(call())

    assert (errand.model_label, errand.journey.model_label) == ("m", "m")
    assert made(call(b'{"model":"SECRET"}')).model_label == "other"


@pytest.mark.parametrize(
    ("request_", "options", "early"),
    [
        pytest.param(streaming(), {}, True, id="a stream"),
        pytest.param(streaming(), {"commits_early": False}, False, id="nobody waits"),
        pytest.param(call(), {}, False, id="a document"),
        pytest.param(streaming("/v1/embeddings"), {}, False, id="a route without streams"),
    ],
)
async def test_a_stream_is_given_its_head_when_its_wait_is_long(request_, options, early):
    scene = Scene()

    errand = made(request_, scene, **options)

    assert (errand.early is not None) is early
    assert len(scene.gateway.wheel) == early


async def test_a_response_is_found_again_where_it_was_made():
    kept = made(call(path="/v1/responses"))

    assert kept.keeper is not None
    assert made(call(b'{"model":"m","store":false}', path="/v1/responses")).keeper is None
    assert made(call()).keeper is None


async def test_a_key_or_the_configuration_may_ask_how_it_went():
    from llmgw.core.config import RoutingConfig

    asks = config(*TWO_NODES, routing=RoutingConfig(explain=True))

    assert made(call(), who=principal(explain=True)).explain
    assert made(call(), config=asks).explain
    assert not made(call()).explain
