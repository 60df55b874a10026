"""What a client is told when no attempt has served it."""

from __future__ import annotations

from collections.abc import Sequence

from llmgw.core.answers import error_event
from llmgw.core.final import Failure, FinalAnswer, final_failure
from llmgw.runtime.answer import Errand


def answer_failure(failures: Sequence[Failure], errand: Errand) -> int:
    """The last failure is the client's answer, as a status or, after commit, an event; the
    status comes back."""
    call, downstream = errand.call, errand.downstream
    errand.seen()
    answer = final_failure(failures, dialect=call.route.dialect, request_id=call.request_id)
    if downstream.committed:
        downstream.write(_event_of(answer, errand))
        downstream.finish(close=True)
    else:
        downstream.respond(answer.status, (*answer.headers, *errand.explanation), answer.body)
    return answer.status


def _event_of(answer: FinalAnswer, errand: Errand) -> bytes:
    return error_event(
        errand.call.route.dialect,
        status=answer.status,
        message=answer.message,
        type=answer.type,
        code=answer.code,
        param=answer.param,
    )
