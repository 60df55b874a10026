"""Whose fault was it, and may another candidate serve? A table; free text is never seen.

Rows are tried in order, from the specific to the general; a `code` is looked at before a `type`.
An integer code from 400 to 599 inside a 200 answer stands for the status.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import assert_never

from llmgw.core.circuit import DEMOTED_FOR, demotion_for
from llmgw.core.errors import FaultKind
from llmgw.core.failures import CLIENT_CODES, CLIENT_TYPES, MODEL_NOT_FOUND, ErrorObject
from llmgw.core.types import Provenance, RouteClass


@dataclass(frozen=True, slots=True)
class Fault:
    """What came back, without its free text."""

    kind: FaultKind
    status: int | None = None  # of the response head; None: there was none
    code: str | int | None = None
    type: str | None = None
    param: str | None = None
    bare_detail: bool = False  # {"detail": ...}: the answer of a web framework, not of an engine
    retry_after: float | None = None

    @classmethod
    def from_error(
        cls,
        kind: FaultKind,
        error: ErrorObject | None,
        *,
        status: int | None,
        bare_detail: bool = False,
        retry_after: float | None = None,
    ) -> Fault:
        """`error`: what was found in the body (STATUS) or inside a 200 answer (IN_BAND)."""
        found = error or ErrorObject()
        return cls(kind, status, found.code, found.type, found.param, bare_detail, retry_after)

    @property
    def standing(self) -> int | None:
        """The status it counts as; None where it came in-band and names none."""
        if self.kind is not FaultKind.IN_BAND:
            return self.status
        if isinstance(self.code, int) and 400 <= self.code <= 599:
            return self.code
        return None


class Whose(StrEnum):
    UPSTREAM = "upstream"
    FULL = "full"
    MODEL = "model"  # the assignment does not serve the model
    CREDENTIAL = "credential"  # ours for that account
    CLIENT = "client"


class Effect(StrEnum):
    """What the attempt does to circuit and demotion."""

    NONE = "none"
    DEMOTION = "demotion"
    FAILURE = "failure"  # and demotion
    FAILURE_IF_SERVED = "failure_if_served"  # only if a later candidate then serves


@dataclass(frozen=True, slots=True)
class Verdict:
    whose: Whose
    move_on: bool  # another candidate may serve
    effect: Effect
    reason: str
    demote_for: float | None = None  # seconds; None: not at all
    recheck: bool = False  # ask the node's list whether the model is gone
    budgeted: bool = False  # a handoff after it needs the retry budget


Column = Container[object] | None  # None: anything


@dataclass(frozen=True, slots=True)
class Row:
    """A fault matches where every column that is given holds what it has."""

    whose: Whose
    effect: Effect
    reason: str
    kinds: Column = None
    statuses: Column = None  # of `Fault.standing`
    codes: Column = None
    types: Column = None
    params: Column = None
    no_string_code: bool = False
    with_retry_after: bool = False
    with_provenance: bool = False
    with_detail: bool | None = None
    of_account: bool | None = None
    recheck: bool = False
    budgeted: bool = False

    def matches(self, fault: Fault, provenance: Provenance | None, is_account: bool) -> bool:
        return (
            _holds(self.kinds, fault.kind)
            and _holds(self.statuses, fault.standing)
            and _holds(self.codes, fault.code)
            and _holds(self.types, fault.type)
            and _holds(self.params, fault.param)
            and not (self.no_string_code and isinstance(fault.code, str))
            and not (self.with_retry_after and fault.retry_after is None)
            and not (self.with_provenance and provenance is None)
            and self.with_detail in (None, fault.bare_detail)
            and self.of_account in (None, is_account)
        )


IN_BAND = (FaultKind.IN_BAND,)
ANSWERED = (FaultKind.STATUS, FaultKind.IN_BAND)

CONNECTION = partial(Row, Whose.UPSTREAM, Effect.FAILURE, "upstream_unreachable")
FULL = partial(Row, Whose.FULL, Effect.DEMOTION, "upstream_full", budgeted=True)
ERROR = partial(Row, Whose.UPSTREAM, Effect.FAILURE, "upstream_error", budgeted=True)
TIMEOUT = partial(Row, Whose.UPSTREAM, Effect.FAILURE, "upstream_timeout", budgeted=True)
MAYBE = partial(Row, Whose.UPSTREAM, Effect.FAILURE_IF_SERVED, "upstream_error", budgeted=True)
MODEL = partial(Row, Whose.MODEL, Effect.FAILURE, "upstream_model_unavailable")
CREDENTIAL = partial(Row, Whose.CREDENTIAL, Effect.FAILURE, "upstream_unauthorized")
CLIENT = partial(Row, Whose.CLIENT, Effect.NONE, "client_error")

FULL_NAMES = frozenset(
    {"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_is_overloaded"}
)
MAYBE_NAMES = frozenset({"InternalServerError"})
TIMEOUT_NAMES = frozenset({"timeout_error"})
ERROR_NAMES = frozenset({"ServiceUnavailableError", "api_error", "server_error"})

TABLE: tuple[Row, ...] = (
    CONNECTION(kinds=(FaultKind.CONNECT, FaultKind.LOST, FaultKind.DEAD)),
    TIMEOUT(kinds=(FaultKind.TIMEOUT,)),
    Row(Whose.UPSTREAM, Effect.FAILURE, "upstream_cut", kinds=(FaultKind.CUT,)),
    Row(Whose.UPSTREAM, Effect.FAILURE, "upstream_invalid", kinds=(FaultKind.INVALID,)),
    Row(Whose.UPSTREAM, Effect.FAILURE, "upstream_empty", kinds=(FaultKind.EMPTY,)),
    Row(Whose.UPSTREAM, Effect.FAILURE, "upstream_idle", kinds=(FaultKind.IDLE,)),
    Row(Whose.UPSTREAM, Effect.NONE, "websocket_unsupported", kinds=(FaultKind.UNSUPPORTED,)),
    Row(Whose.UPSTREAM, Effect.NONE, "gateway_exhausted", kinds=(FaultKind.EXHAUSTED,)),
    # from here on there is an answer: STATUS or IN_BAND
    MODEL(codes=(MODEL_NOT_FOUND,)),
    MODEL(
        no_string_code=True,
        types=("invalid_request_error",),
        params=("model",),
        statuses=(404, None),
        with_provenance=True,
    ),
    MODEL(
        codes=(None, 404),
        types=("NotFoundError",),
        params=("model",),
        statuses=(404,),
        with_provenance=True,
    ),
    CLIENT(codes=CLIENT_CODES),
    CREDENTIAL(statuses=(401, 403), of_account=True),
    CLIENT(  # no engine says clearly that it dropped a model: its list does
        statuses=(404,),
        params=(None, "model"),
        with_provenance=True,
        with_detail=False,
        of_account=False,
        recheck=True,
    ),
    FULL(statuses=(429, 529)),
    FULL(statuses=(503,), with_retry_after=True),
    CLIENT(statuses=(*range(400, 500), 501)),
    MAYBE(statuses=(500,)),
    ERROR(kinds=(FaultKind.STATUS,)),
    ERROR(statuses=range(500, 600)),
    # in-band, without a status
    FULL(codes=FULL_NAMES),
    MAYBE(codes=MAYBE_NAMES),
    TIMEOUT(codes=TIMEOUT_NAMES),
    ERROR(codes=ERROR_NAMES),
    FULL(types=FULL_NAMES),
    MAYBE(types=MAYBE_NAMES),
    TIMEOUT(types=TIMEOUT_NAMES),
    ERROR(types=ERROR_NAMES),
    CLIENT(types=CLIENT_TYPES),
    ERROR(),
)


def classify(
    fault: Fault,
    *,
    provenance: Provenance | None,
    lane: RouteClass,
    is_account: bool,
    visible: bool = False,
) -> Verdict:
    """`visible`: the client has seen output, so the answer stands as it is."""
    row = next(one for one in TABLE if one.matches(fault, provenance, is_account))
    effect = row.effect
    if visible and row.whose is not Whose.CLIENT:
        effect = Effect.FAILURE
    may_move = row.whose is not Whose.CLIENT and not visible
    if lane is RouteClass.COMPACT:
        may_move = fault.kind is FaultKind.CONNECT
    return Verdict(
        row.whose,
        may_move,
        effect,
        row.reason,
        demote_for=_demotion(effect, fault),
        recheck=row.recheck and not visible and lane is not RouteClass.COMPACT,
        budgeted=row.budgeted,
    )


def after_recheck(verdict: Verdict, *, gone: bool, lane: RouteClass) -> Verdict:
    """`gone`: a successful list no longer has the model. Otherwise the 404 is the answer."""
    if not gone:
        return replace(verdict, recheck=False)
    miss = Fault(FaultKind.STATUS, 404, code=MODEL_NOT_FOUND)
    return classify(miss, provenance=None, lane=lane, is_account=False)


def _holds(column: Column, value: object) -> bool:
    return column is None or value in column


def _demotion(effect: Effect, fault: Fault) -> float | None:
    match effect:
        case Effect.NONE:
            return None
        case Effect.DEMOTION:
            return demotion_for(fault.retry_after)
        case Effect.FAILURE | Effect.FAILURE_IF_SERVED:
            return DEMOTED_FOR
        case _:
            assert_never(effect)
