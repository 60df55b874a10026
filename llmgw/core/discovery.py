"""What one upstream says it serves, and how far the gateway believes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from llmgw.core.types import Provenance

EMPTIES_TO_BELIEVE = 2


class State(StrEnum):
    UNTRIED = "untried"
    KNOWN = "known"
    KNOWN_EMPTY = "known_empty"
    DEGRADED = "degraded"
    EXPIRED = "expired"


class ModelExclusion(StrEnum):
    MISSING = "missing"
    EMPTY = "empty"
    EXPIRED = "expired"


class Recheck(StrEnum):
    """What a node's list, asked once more, says of a model that the node answered 404 for."""

    GONE = "gone"  # a list was read, and the model is not in it
    STILL_LISTED = "still_listed"
    UNKNOWN = "unknown"  # no list could be read


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing was read: `names` in the upstream's order, without duplicates."""

    names: tuple[str, ...]
    now: float
    max_lens: tuple[tuple[str, int], ...] = ()  # `max_model_len` where the upstream tells it


@dataclass(frozen=True, slots=True)
class ListingFailed:
    error: str  # ours and bounded, never upstream text


@dataclass(frozen=True, slots=True)
class ModelDiscovery:
    """The state of one upstream's list; replaced whole, never changed."""

    state: State = State.UNTRIED
    names: tuple[str, ...] | None = None  # None: no list was ever believed
    fails: int = 0
    empties: int = 0
    listed_at: float | None = None  # monotonic seconds of the last success
    last_error: str = ""
    max_lens: tuple[tuple[str, int], ...] = ()

    @property
    def is_believed(self) -> bool:
        """The last answer stands: names, or none at all."""
        return self.state in (State.KNOWN, State.KNOWN_EMPTY)

    def exclusion(self, model: str, *, is_account: bool = False) -> ModelExclusion | None:
        """Why this upstream may not serve the model; None if it may."""
        match self.state:
            case State.UNTRIED:
                return None
            case State.EXPIRED if not is_account:
                return ModelExclusion.EXPIRED
            case State.KNOWN_EMPTY:
                return ModelExclusion.EMPTY
            case State.KNOWN | State.DEGRADED | State.EXPIRED:
                return None if model in (self.names or ()) else ModelExclusion.MISSING
            case _:
                assert_never(self.state)

    def provenance(self, model: str) -> Provenance | None:
        """`observed` by the last listing, or `preserved` from before it failed."""
        if model not in (self.names or ()):
            return None
        return Provenance.OBSERVED if self.state is State.KNOWN else Provenance.PRESERVED


def advance(
    before: ModelDiscovery,
    event: Listed | ListingFailed,
    *,
    fail_threshold: int,
    is_account: bool = False,
) -> ModelDiscovery:
    match event:
        case Listed(names, now, max_lens) if names:
            return ModelDiscovery(State.KNOWN, names, listed_at=now, max_lens=max_lens)
        case Listed(_, now):
            return _after_empty(before, now)
        case ListingFailed(error):
            fails = before.fails + 1
            return replace(
                before,
                state=_state_after_failure(before, fails >= fail_threshold, is_account),
                fails=fails,
                empties=0,
                last_error=error,
            )
        case _:
            assert_never(event)


def _after_empty(before: ModelDiscovery, now: float) -> ModelDiscovery:
    """The node may still be loading: one empty list changes nothing that is known."""
    empties = before.empties + 1
    fresh = replace(before, fails=0, empties=empties, listed_at=now, last_error="")
    if empties < EMPTIES_TO_BELIEVE:
        return fresh
    return replace(fresh, state=State.KNOWN_EMPTY, names=(), max_lens=())


def _state_after_failure(before: ModelDiscovery, at_threshold: bool, is_account: bool) -> State:
    never_listed = before.state is State.UNTRIED
    if at_threshold and not (is_account and never_listed):
        return State.EXPIRED
    return State.DEGRADED if before.state is State.KNOWN else before.state
