"""Usage by model: counts of the last five minutes and what share of all each one is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageCount:
    """What a book of requests has added up for one model."""

    model: str
    requests: int
    failed: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """One model in the last five minutes; shares are those of the pools that are shown."""

    model: str
    requests: int
    failed: int
    tokens_in: int
    tokens_out: int
    request_share: float
    token_share: float


def with_shares(counts: Iterable[UsageCount]) -> tuple[ModelUsage, ...]:
    """The busiest model first."""
    found = sorted(counts, key=lambda one: (-one.requests, one.model))
    requests = sum(one.requests for one in found) or 1
    tokens = sum(one.tokens_in + one.tokens_out for one in found) or 1
    return tuple(
        ModelUsage(
            one.model,
            one.requests,
            one.failed,
            one.tokens_in,
            one.tokens_out,
            request_share=one.requests / requests,
            token_share=(one.tokens_in + one.tokens_out) / tokens,
        )
        for one in found
    )
