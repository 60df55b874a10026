"""A websocket to a candidate: opened, or refused in words that the table of verdicts takes."""

from __future__ import annotations

from dataclasses import dataclass

from llmgw.core.classify import Fault
from llmgw.core.config import Config
from llmgw.core.eligibility import Candidate
from llmgw.core.errors import FaultKind
from llmgw.core.failures import has_bare_detail, parse_error
from llmgw.core.headers import retry_after_of, upstream_headers
from llmgw.core.http import Rejection
from llmgw.core.turns import session_headers
from llmgw.core.wire import Call
from llmgw.observe.metrics import TIME_TO_HEADERS
from llmgw.runtime.answer import Refused, Tools
from llmgw.runtime.sockets import Sockets, UpstreamSocket
from llmgw.runtime.support import UNSUPPORTED

HANDSHAKE_WITHIN = 30.0  # seconds; no prefill stands before a handshake


@dataclass(frozen=True, slots=True)
class Connecting:
    tools: Tools
    sockets: Sockets
    config: Config
    explained: bool = False  # a refusal with an error in it says more than its status does

    async def open(
        self, candidate: Candidate, call: Call, *, protocols: tuple[str, ...] = ()
    ) -> UpstreamSocket | Refused:
        """Raises `UpstreamError`."""
        began = self.tools.clock()
        opened = await self.sockets.open(
            candidate.upstream,
            target=call.target,
            headers=session_headers(
                upstream_headers(
                    call.headers,
                    upstream=candidate.upstream,
                    request_id=call.request_id,
                    instance=self.tools.instance,
                )
            ),
            protocols=protocols,
            max_bytes=self.config.websocket.max_frame_bytes,
            connect_timeout=self.config.routing.connect_timeout,
            handshake_timeout=self.config.routing.header_timeout or HANDSHAKE_WITHIN,
        )
        if isinstance(opened, Rejection):
            return self._refused(opened)
        TIME_TO_HEADERS.observe(self.tools.clock() - began)
        return opened

    def _refused(self, rejection: Rejection) -> Refused:
        head, body = rejection.head, rejection.body
        if head.status < 400:
            return Refused(Fault(FaultKind.INVALID))
        error = parse_error(body)
        is_told = self.explained and error is not None
        if head.status in UNSUPPORTED and not is_told:
            return Refused(Fault(FaultKind.UNSUPPORTED), head.headers, body, error)
        fault = Fault.from_error(
            FaultKind.STATUS,
            error,
            status=head.status,
            bare_detail=error is None and has_bare_detail(body),
            retry_after=retry_after_of(head.headers, wall=self.tools.wall()),
        )
        return Refused(fault, head.headers, body, error)
