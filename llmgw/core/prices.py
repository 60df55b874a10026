"""What tokens cost, where the configuration says it. Nobody is stopped by it."""

from __future__ import annotations

from dataclasses import dataclass

from llmgw.core.config import ModelsConfig

TOKENS = 1_000_000  # that a price is for


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens; those in that the upstream's cache knew may be cheaper."""

    tokens_in: float
    tokens_out: float
    tokens_cached: float

    def of(self, tokens_in: int, tokens_out: int, tokens_cached: int) -> float:
        """`tokens_cached` is a part of `tokens_in`."""
        fresh = max(tokens_in - tokens_cached, 0)
        paid = fresh * self.tokens_in + tokens_cached * self.tokens_cached
        return (paid + tokens_out * self.tokens_out) / TOKENS


def prices_of(models: ModelsConfig) -> dict[str, Price]:
    """Of the models that have one; a direction without a price costs nothing."""
    found = {}
    for one in models.available:
        if (one.price_in, one.price_out, one.price_cached) != (None, None, None):
            into = one.price_in or 0.0
            cached = into if one.price_cached is None else one.price_cached
            found[one.name] = Price(into, one.price_out or 0.0, cached)
    return found
