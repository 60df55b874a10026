"""What an attempt has shown of its node, told to whom it concerns."""

from __future__ import annotations

from typing import Protocol

from llmgw.core.classify import Fault
from llmgw.core.config import Upstream
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.observe.metrics import TIMEOUTS, child
from llmgw.runtime.answer import Broken, Refused, Result, Served

UNREACHED = (FaultKind.CONNECT, FaultKind.LOST)
TIMED_OUT = {FaultKind.TIMEOUT: "answer", FaultKind.IDLE: "event"}  # what was waited for


class Watch(Protocol):
    """Who is told what requests see of the nodes."""

    def connection_failed(self, upstream: Upstream) -> None: ...

    def answered(self, upstream: Upstream, status: int) -> None: ...

    async def model_is_gone(self, upstream: Upstream, model: str) -> bool:
        """Ask the node's list, bounded; True only if a successful list no longer has it."""


def note(watch: Watch, candidate: Candidate, result: Result) -> None:
    if result.fault is not None and result.fault.kind in TIMED_OUT:
        child(TIMEOUTS, TIMED_OUT[result.fault.kind]).inc()
    match result:
        case Refused(fault) if fault.kind in UNREACHED:
            watch.connection_failed(candidate.upstream)
        case Refused(Fault(status=int(status))) | Served(status) | Broken(_, status):
            watch.answered(candidate.upstream, status)
