"""Whose fault was it, and may another candidate serve? A table; free text is never seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from llmgw.core.errors import FaultKind
from llmgw.core.types import Provenance, RouteClass

if TYPE_CHECKING:
    from llmgw.core.failures import ErrorObject


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
        raise NotImplementedError


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


def classify(
    fault: Fault,
    *,
    provenance: Provenance | None,
    lane: RouteClass,
    is_account: bool,
    visible: bool = False,
) -> Verdict:
    raise NotImplementedError


def after_recheck(verdict: Verdict, *, gone: bool, lane: RouteClass) -> Verdict:
    """`gone`: a successful list no longer has the model."""
    raise NotImplementedError
