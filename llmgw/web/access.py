"""What is remembered of an answered request: for the access log and whoever counts."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class Ending(StrEnum):
    WHOLE = "whole"
    CUT = "cut"  # the gateway ended the body early
    LEFT = "left"  # the client went away first


class AccessRecord(NamedTuple):
    """One request and its answer: ids, names of ours, counts and times, no byte of a client."""

    method: str
    route: str  # the path of the route table, never the client's path or query
    status: int  # 0: the client left before an answer began
    bytes: int  # of the body
    seconds: float
    request_id: str
    ending: Ending
    key: str | None = None  # the name of the client's key
    model: str | None = None  # as the client wrote it: not yet a metrics label
    label: str | None = None  # of the model in metrics, where it is known already
    assignment: str | None = None  # of the last attempt
    attempts: int = 0
    overhead: float = 0.0  # of the seconds, the gateway's own


OnComplete = Callable[[AccessRecord], None]


def forget(_: AccessRecord) -> None:
    """The hook of a server that nobody listens to."""
