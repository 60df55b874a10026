"""What routing derives from a configuration, once."""

from llmgw.core.config import ModelConfig, ModelsConfig
from llmgw.core.types import CLUSTER
from llmgw.runtime.snapshot import build_snapshot
from tests.builders import POOL, account, config, node


def test_pools_know_their_members_and_models_their_rings():
    a, x = node("a"), account("x")
    made = config(a, x)

    snapshot = build_snapshot(made)

    assert snapshot.members == {CLUSTER: (("cluster/a", a),), POOL: (("p/x", x),)}
    assert snapshot.pools[CLUSTER] is made.pools[0]


def test_the_configured_models_are_the_available_ones_then_the_default_each_once():
    models = ModelsConfig(default="m", available=(ModelConfig("n", ring="r"), ModelConfig("m")))

    snapshot = build_snapshot(config_with(models))

    assert snapshot.configured == ("n", "m")
    assert snapshot.rings == {"n": "r", "m": None}


def test_a_default_that_is_not_available_counts_too():
    assert build_snapshot(config_with(ModelsConfig(default="d"))).configured == ("d",)


def config_with(models: ModelsConfig):
    from dataclasses import replace

    return replace(config(node("a")), models=models)
