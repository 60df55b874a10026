"""Which assignments of a pool can serve a request now, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from llmgw.core.catalog import Catalog
from llmgw.core.circuit import Circuit, CircuitKey
from llmgw.core.config import Account, CircuitsConfig, Upstream
from llmgw.core.errors import GatewayError
from llmgw.core.fleet import UpstreamState
from llmgw.core.types import AssignmentId, PoolName, Provenance, RouteClass, UpstreamName


class Exclusion(StrEnum):
    """In the order in which they are looked for."""

    RING = "ring"
    MISSING = "missing"
    EMPTY = "empty"
    EXPIRED = "expired"
    DEAD = "dead"
    SKIPPED = "skipped"
    CIRCUIT_OPEN = "circuit_open"
    CAPABILITY = "capability"
    DRAINING = "draining"
    PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class Ask:
    """All of a request that eligibility depends on."""

    pool: PoolName
    model: str | None  # None: the route goes where an id lives, whatever serves there
    route: str  # its path
    lane: RouteClass
    ring: str | None = None  # of the model, by configuration
    pin: AssignmentId | None = None
    websocket: bool = False  # only an upstream that takes websockets will do


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assignment that may be tried."""

    assignment: AssignmentId
    upstream: Upstream
    provenance: Provenance | None = None
    degraded: bool = False
    untried: bool = False
    probe: bool = False  # its circuit wants a lease first
    seed: int = 0  # for rendezvous

    @property
    def is_account(self) -> bool:
        return isinstance(self.upstream, Account)


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Valid until an input changes or `valid_until` (monotonic), so it may be kept and shared."""

    ask: Ask
    candidates: tuple[Candidate, ...]
    reasons: Mapping[AssignmentId, Exclusion]
    valid_until: float = float("inf")

    @property
    def excluded(self) -> Mapping[Exclusion, int]:
        raise NotImplementedError


def select_eligible(
    ask: Ask,
    assignments: Sequence[tuple[AssignmentId, UpstreamState]],
    circuits: Mapping[CircuitKey, Circuit],
    *,
    now: float,
    wall: float,
    overload_threshold: int,
    config: CircuitsConfig,
    draining: AbstractSet[UpstreamName] = frozenset(),
) -> Eligibility:
    """Filter in the order of `Exclusion`. `now` is monotonic, `wall` unix time.

    Skip-listed ones serve when nothing else is left; for a hard pin the skip list does not count.
    """
    raise NotImplementedError


def refusal(eligibility: Eligibility, catalog: Catalog, *, now: float) -> GatewayError:
    """The answer where nothing is eligible."""
    raise NotImplementedError


def nearest_model(model: str, known: Sequence[str]) -> str | None:
    """What the client may have meant, for the log."""
    raise NotImplementedError
