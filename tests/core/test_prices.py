import pytest

from llmgw.core.config import ModelConfig, ModelsConfig
from llmgw.core.prices import Price, prices_of


def priced(**prices: float) -> dict[str, Price]:
    return prices_of(ModelsConfig(available=(ModelConfig("m", **prices), ModelConfig("free"))))


@pytest.mark.parametrize(
    ("prices", "price"),
    [
        pytest.param({"price_in": 2.0, "price_out": 8.0}, Price(2.0, 8.0, 2.0), id="both ways"),
        pytest.param({"price_out": 8.0}, Price(0.0, 8.0, 0.0), id="one way"),
        pytest.param(
            {"price_in": 2.0, "price_cached": 0.5}, Price(2.0, 0.0, 0.5), id="a cheaper cache"
        ),
        pytest.param(
            {"price_cached": 0.0, "price_in": 2.0}, Price(2.0, 0.0, 0.0), id="free cache"
        ),
    ],
)
def test_a_model_with_a_price(prices, price):
    assert priced(**prices) == {"m": price}


def test_models_without_a_price_have_none():
    assert priced() == {}


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        pytest.param((1_000_000, 0, 0), 2.0, id="in"),
        pytest.param((0, 500_000, 0), 4.0, id="out"),
        pytest.param((1_000_000, 0, 1_000_000), 0.5, id="all from the cache"),
        pytest.param((1_000_000, 0, 400_000), 1.4, id="a part from the cache"),
        pytest.param((10, 0, 1_000_000), 0.5, id="more cached than there were"),
    ],
)
def test_what_tokens_cost(tokens, cost):
    assert Price(2.0, 8.0, 0.5).of(*tokens) == pytest.approx(cost)
