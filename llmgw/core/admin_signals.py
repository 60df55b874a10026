"""Serving signals: what the circuits of one lane say of a model on an assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from llmgw.core.admin_seen import Sighting
from llmgw.core.circuit import CLOSED, Admits, Circuit, CircuitState
from llmgw.core.config import CircuitsConfig
from llmgw.core.types import RouteClass

LANES = (RouteClass.HTTP, RouteClass.SSE, RouteClass.WEBSOCKET)
REFUSALS = frozenset({"upstream_model_unavailable", "upstream_unauthorized"})


class Signal(StrEnum):
    """In the order in which an operator should look at them."""

    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"  # the upstream answers, and refuses the model or our credential
    PROBE_DUE = "probe due"
    PROBING = "probing"
    SERVING = "serving"
    UNVERIFIED = "unverified"  # neither a success nor a failure is known


@dataclass(frozen=True, slots=True)
class LaneSignal:
    """One lane of an assignment over all its models: the word that matters most, and how many
    models each word is true of.
    """

    lane: RouteClass
    signal: Signal
    models: tuple[tuple[Signal, int], ...] = ()

    @property
    def is_mixed(self) -> bool:
        return len(self.models) > 1


Circuits = Mapping[tuple[str, RouteClass], Circuit]
"""The circuits of one assignment that are not quite closed."""


def signal_of(circuit: Circuit, *, has_served: bool, now: float, config: CircuitsConfig) -> Signal:
    """`now` is unix time, as in the circuit."""
    match circuit.state:
        case CircuitState.CLOSED:
            return Signal.SERVING if has_served else Signal.UNVERIFIED
        case CircuitState.HALF_OPEN:
            return _while_probed(circuit, now, config)
        case CircuitState.OPEN:
            if circuit.admits(now, config) is Admits.PROBE:
                return Signal.PROBE_DUE
            return Signal.REJECTED if circuit.reason in REFUSALS else Signal.UNAVAILABLE
        case _:
            assert_never(circuit.state)


def model_signal(
    model: str,
    lane: RouteClass,
    circuits: Circuits,
    seen: Sighting,
    *,
    now: float,
    config: CircuitsConfig,
) -> Signal:
    key = (model, lane)
    circuit = circuits.get(key, CLOSED)
    return signal_of(circuit, has_served=key in seen.served, now=now, config=config)


def lane_signals(
    models: Collection[str],
    circuits: Circuits,
    seen: Sighting,
    *,
    now: float,
    config: CircuitsConfig,
) -> tuple[LaneSignal, ...]:
    """One per lane. `models`: those that the assignment advertises, each once; one that is not
    advertised counts where it has a circuit or a success.
    """
    known = set(circuits) | set(seen.served)
    advertised = set(models) if known else models  # with many quiet nodes a set each is dear
    found = []
    for lane in LANES:
        names = {model for model, where in known if where is lane}
        words = Counter(
            model_signal(model, lane, circuits, seen, now=now, config=config) for model in names
        )
        if silent := len(advertised) - sum(name in advertised for name in names):
            words[Signal.UNVERIFIED] += silent
        found.append(_lane_signal(lane, words))
    return tuple(found)


def _lane_signal(lane: RouteClass, words: Counter[Signal]) -> LaneSignal:
    counts = tuple((word, words[word]) for word in Signal if words[word])
    return LaneSignal(lane, counts[0][0] if counts else Signal.UNVERIFIED, counts)


def _while_probed(circuit: Circuit, now: float, config: CircuitsConfig) -> Signal:
    """Half-open and nobody at work: the next request is a probe."""
    at_work = any(now < lease.taken_at + config.open_for for lease in circuit.leases)
    return Signal.PROBING if at_work else Signal.PROBE_DUE
