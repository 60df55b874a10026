"""How a call is carried, where it is not a plain request with a plain answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from llmgw.core.eligibility import Candidate
from llmgw.core.types import AssignmentId
from llmgw.runtime.answer import Errand, Result, Tools
from llmgw.runtime.attempt import run_attempt


class RunAttempt(Protocol):
    """One try on one candidate; what the upstream does wrong is a value."""

    async def __call__(
        self, tools: Tools, errand: Errand, candidate: Candidate, *, last: bool
    ) -> Result: ...


@dataclass(frozen=True, slots=True)
class Way:
    attempt: RunAttempt = run_attempt
    pin: AssignmentId | None = None  # never leave this assignment
    websocket: bool = False  # only an upstream that takes websockets will do
    commits_early: bool = True  # a status line is owed to a client that waits


HTTP: Final = Way()
