"""Settled requests, as the runtime hands them to the store."""

from llmgw.core.failover import Outcome
from llmgw.core.settle import NOTHING, AttemptRow, RequestRow, Scope, Settlement
from llmgw.core.types import AssignmentId, KeyId, PoolName, RouteClass
from llmgw.core.usage import Usage

POOL = PoolName("blue")
KEY = KeyId("00112233aabbccdd")


def scope(request_id: str = "r1", *, model: str = "llama", pool: str = POOL) -> Scope:
    return Scope(
        request_id,
        PoolName(pool),
        KEY,
        model,
        RouteClass.SSE,
        "/v1/chat/completions",
        True,
    )


def settled(
    request_id: str = "r1",
    *,
    model: str = "llama",
    pool: str = POOL,
    started: float = 1000.0,
    outcomes: tuple[Outcome, ...] = (Outcome.SUCCEEDED,),
    usage: Usage = Usage(10, 20, 5),  # noqa: B008 - a frozen value
) -> Settlement:
    """Attempt n went to assignment a, b, c..."""
    attempts = tuple(
        AttemptRow(
            request_id,
            ordinal,
            AssignmentId(f"{pool}/{'abc'[ordinal - 1]}"),
            outcome,
            None if outcome is Outcome.SUCCEEDED else "upstream_model_unavailable",
            200 if outcome is Outcome.SUCCEEDED else 404,
            started + ordinal - 1,
            started + ordinal,
        )
        for ordinal, outcome in enumerate(outcomes, start=1)
    )
    row = RequestRow(
        request_id,
        PoolName(pool),
        KEY,
        model,
        RouteClass.SSE,
        "/v1/chat/completions",
        True,
        outcomes[-1],
        200,
        len(outcomes) - 1,
        started,
        started + len(outcomes),
        usage,
    )
    return Settlement(NOTHING, row, attempts)
