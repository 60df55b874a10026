"""The gateway's own errors: one root, each with the status and code that a client sees."""

from __future__ import annotations

from enum import StrEnum

from llmgw.core.types import Headers


class GatewayError(Exception):
    """An answer of ours; `message` is safe to show and never quotes a client or an upstream."""

    status = 500
    code: str | None = "internal_error"
    type = "server_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        type: str | None = None,
        param: str | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.headers = headers
        if status is not None:
            self.status = status
        if code is not None:
            self.code = code
        if type is not None:
            self.type = type


class InvalidRequest(GatewayError):
    """The client's request can't be understood: 400."""

    status = 400
    code = "invalid_request"
    type = "invalid_request_error"


class AuthenticationFailed(GatewayError):
    """No key, or one that is not known: 401."""

    status = 401
    code = "invalid_api_key"
    type = "invalid_request_error"


class PermissionDenied(GatewayError):
    """A known key that may not do this: 403."""

    status = 403
    code = "model_not_allowed"
    type = "invalid_request_error"


class NotFound(GatewayError):
    """404."""

    status = 404
    code = "not_found"
    type = "invalid_request_error"


class MethodNotAllowed(GatewayError):
    """405; `headers` carries `allow`."""

    status = 405
    code = "method_not_allowed"
    type = "invalid_request_error"


class Conflict(GatewayError):
    """409: no upstream has all that the request refers to."""

    status = 409
    code = "conflict"
    type = "invalid_request_error"


class TooLarge(GatewayError):
    """413."""

    status = 413
    code = "request_too_large"
    type = "invalid_request_error"


class UnsupportedMedia(GatewayError):
    """415."""

    status = 415
    code = "unsupported_media_type"
    type = "invalid_request_error"


class LimitReached(GatewayError):
    """429; `headers` carries `retry-after`."""

    status = 429
    code = "rate_limit_exceeded"
    type = "rate_limit_error"


class Unavailable(GatewayError):
    """503."""

    status = 503
    code = "no_eligible_backend"
    type = "service_unavailable"


class LoopDetected(GatewayError):
    """508: the request has been through this gateway before (RFC 9110, section 7.6.3)."""

    status = 508
    code = "loop_detected"
    type = "invalid_request_error"


class FaultKind(StrEnum):
    """What went wrong on the way to an upstream or back, before it is anybody's fault."""

    CONNECT = "connect"  # refused, DNS, TLS, connect timeout: nothing was sent
    EXHAUSTED = "exhausted"  # this process has no descriptor or memory left for a connection
    LOST = "lost"  # reset or closed after the request was sent, before any response byte
    TIMEOUT = "timeout"  # header timeout or first-event timeout
    DEAD = "dead"  # the node's health turned dead while the attempt had had no byte
    CUT = "cut"  # closed or reset inside the answer
    INVALID = "invalid"  # a malformed head or framing; not JSON where JSON was said
    EMPTY = "empty"  # a stream that ended before any visible event and any terminal one
    IDLE = "idle"  # silence after visible output
    STATUS = "status"  # an answer with an error status
    IN_BAND = "in_band"  # an error inside a 200 answer
    UNSUPPORTED = "unsupported"  # it takes no websocket, and nothing else will do


class UpstreamError(Exception):
    """The only error that `upstream/` raises; `detail` is ours and bounded, no upstream text."""

    def __init__(self, kind: FaultKind, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else str(kind))
        self.kind = kind
        self.detail = detail
