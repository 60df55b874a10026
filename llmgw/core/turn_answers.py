"""The gateway's own frames on a responses websocket: failures, and the answer to a warm-up."""

from __future__ import annotations

from llmgw.core import document
from llmgw.core.errors import GatewayError
from llmgw.core.failures import find_error, in_band_status
from llmgw.core.types import Dialect, Headers

PREVIOUS_NOT_FOUND = "previous_response_not_found"
TOLD = ("retry-after", "retry-after-ms", "x-should-retry", "x-llmgw-excluded")

Json = dict[str, object]


def error_frame(status: int, error: object, headers: Headers = ()) -> bytes:
    """A failed turn. Header lines that say when to come back are told, where there are any."""
    frame: Json = {"type": "error", "status": status, "error": error}
    told = {name: value for name, value in headers if name in TOLD}
    if told:
        frame["headers"] = told
    return document.dump(frame)


def frame_of_error(error: GatewayError) -> bytes:
    words = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
    }
    return error_frame(error.status, words, error.headers)


def frame_of_answer(status: int, headers: Headers, body: bytes) -> bytes:
    """An HTTP error answer as a frame. An engine that does not know the response before this
    one says so in its own way; clients know one code, at which they send all of it again."""
    answer = document.parse(body)
    found = find_error(answer)
    if status == 404 and found is not None and found.param == "response_id":
        return previous_not_found()
    error = document.member(answer, "error")
    if not isinstance(error, dict):
        words = ("the upstream refused this request", "invalid_request_error", None, None)
        error = dict(zip(("message", "type", "param", "code"), words, strict=True))
    return error_frame(status, error, headers)


def frame_of_event(data: bytes) -> bytes:
    """An error event of a stream as a frame: there it is flat, or an engine's envelope."""
    answer = document.parse(data)
    error = document.member(answer, "error")
    if not isinstance(error, dict):
        members = answer if isinstance(answer, dict) else {}
        error = {name: members.get(name) for name in ("message", "param", "code")}
        error = {"type": "server_error", **error}
    return error_frame(in_band_status(find_error(answer), Dialect.RESPONSES), error)


def previous_not_found() -> bytes:
    return error_frame(400, previous_not_found_error())


def previous_not_found_error() -> Json:
    return {
        "message": "the previous response is not known here; send the whole input",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": PREVIOUS_NOT_FOUND,
    }


def warm_up_frames(response_id: str, model: str, *, created: int) -> tuple[bytes, bytes]:
    """What a warm-up is answered: a response without output."""
    response: Json = {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "model": model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    used = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    return (
        document.dump(
            {
                "type": "response.created",
                "sequence_number": 0,
                "response": {**response, "status": "in_progress", "usage": None},
            }
        ),
        document.dump(
            {
                "type": "response.completed",
                "sequence_number": 1,
                "response": {
                    **response,
                    "status": "completed",
                    "usage": {
                        **used,
                        "input_tokens_details": {"cached_tokens": 0},
                        "output_tokens_details": {"reasoning_tokens": 0},
                    },
                },
            }
        ),
    )
