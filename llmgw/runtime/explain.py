"""Why a request would go where it would: the plan and every exclusion, without sending any."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from llmgw.core.circuit import Circuit, CircuitKey, CircuitState
from llmgw.core.eligibility import Ask, Candidate, Eligibility
from llmgw.core.errors import GatewayError, InvalidRequest, NotFound
from llmgw.core.fleet import UpstreamState
from llmgw.core.nearest import nearest_model
from llmgw.core.policy import OPEN, KeyRing, Principal
from llmgw.core.routes import BY_PATH, Route
from llmgw.core.types import AssignmentId
from llmgw.core.wire import Call
from llmgw.runtime.gateway import Gateway

DEFAULT_ROUTE = "/v1/chat/completions"

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """`key` is a key's name, its id, or the key itself, which is never shown again."""

    model: str
    key: str | None = None
    route: Route = BY_PATH[DEFAULT_ROUTE]
    stream: bool = False


def parse_question(asked: Document) -> Question:
    """Raises `GatewayError`."""
    model, key, path = asked.get("model"), asked.get("key"), asked.get("route")
    if not isinstance(model, str) or not model:
        raise InvalidRequest("a model must be named")
    route = BY_PATH.get(path) if isinstance(path, str) else BY_PATH[DEFAULT_ROUTE]
    if route is None:
        raise NotFound(f"no such route; there are: {', '.join(BY_PATH)}")
    stream = asked.get("stream") is True and route.streams
    return Question(model, key if isinstance(key, str) else None, route, stream)


def explain(gateway: Gateway, question: Question) -> Document:
    """Raises `GatewayError` for a key that there is not."""
    principal = _principal(gateway.keyring, question.key)
    call = Call(question.route, question.model, question.stream, b"", "", (), "explained")
    document: dict[str, object] = {
        "model": question.model,
        "route": question.route.path,
        "route_class": call.lane,
        "pool": principal.pool,
        "key": principal.name,
        "is_open": gateway.keyring.is_open,
        "allowed": principal.models.allows(question.model),
    }
    ask = gateway.ask_of(call, principal)
    eligibility = gateway.router.eligible(gateway.snapshot, ask)
    snapshot, router = gateway.snapshot, gateway.router
    turn = router.turns(principal.pool, call.model).last + 1  # looked at, not taken
    plan = router.plan(snapshot, eligibility, call, principal, turn=turn).candidates
    demoted = gateway.board.demoted(principal.pool, principal.key, question.model)
    return document | {
        "plan": [_candidate(one, is_demoted=one.assignment in demoted) for one in plan],
        "beyond_plan": [one.assignment for one in eligibility.candidates if one not in plan],
        "excluded": [
            {"assignment": assignment, "reason": reason}
            for assignment, reason in eligibility.reasons.items()
        ],
        "refusal": _refusal(gateway, eligibility),
        "nearest": nearest_model(question.model, gateway.catalog(principal.pool).entries),
        "strategy": snapshot.pools[principal.pool].strategy,
        "standing": _standing(gateway, ask),
    }


def _principal(keyring: KeyRing, key: str | None) -> Principal:
    if keyring.is_open:
        return OPEN
    if key is None:
        raise InvalidRequest("a key must be named (--key): the gateway is not open")
    found = keyring.find(key)
    if found is None:
        raise NotFound("there is no such key")
    return found


def _candidate(candidate: Candidate, *, is_demoted: bool) -> Document:
    return {
        "assignment": candidate.assignment,
        "provenance": candidate.provenance,
        "degraded": candidate.degraded,
        "demoted": is_demoted,
        "untried": candidate.untried,
        "probe": candidate.probe,
    }


def _standing(gateway: Gateway, ask: Ask) -> list[Document]:
    """What the decisions were made of, for each assignment of the pool."""
    members = gateway.snapshot.members.get(ask.pool, ())
    found = ((id, gateway.registry.state(upstream)) for id, upstream in members)
    return [_seen(gateway, ask, id, state) for id, state in found if state is not None]


def _seen(gateway: Gateway, ask: Ask, id: AssignmentId, state: UpstreamState) -> Document:
    now, threshold = time.monotonic(), gateway.config.gateway.request_overload_threshold
    listed_at = state.discovery.listed_at
    key = CircuitKey(ask.pool, id, ask.model or "", ask.lane)
    return {
        "assignment": id,
        "status": state.health.status(now, overload_threshold=threshold),
        "listing": state.discovery.state,
        "listed_ago": None if listed_at is None else round(max(0.0, now - listed_at), 3),
        "load": gateway.registry.load(state.upstream),
        "circuit": _circuit(gateway.board.circuit(key), gateway.board.wall()),
    }


def _circuit(circuit: Circuit, wall: float) -> Document:
    is_open = circuit.state is CircuitState.OPEN
    return {
        "state": circuit.state,
        "failures": circuit.failures,
        "reason": circuit.reason or None,
        "due_in": round(max(0.0, circuit.open_until - wall), 3) if is_open else None,
    }


def _refusal(gateway: Gateway, eligibility: Eligibility) -> Document | None:
    """What a client would be told, where nobody is left."""
    if eligibility.candidates:
        return None
    error: GatewayError = gateway.router.refusal(gateway.snapshot, eligibility)
    return {"status": error.status, "code": error.code, "message": error.message}
