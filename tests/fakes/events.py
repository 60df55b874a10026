"""The bytes of event streams as engines and providers write them."""

from __future__ import annotations

import json
import re

DONE = b"data: [DONE]\n\n"


def data(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def named(kind: str, **members: object) -> bytes:
    """An event of the typed dialects: its name is also the `type` of its data."""
    return f"event: {kind}\n".encode() + data({"type": kind, **members})


def chunk(*, index: int = 0, finish: str | None = None, **delta: object) -> bytes:
    """A chat chunk with one choice."""
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return data({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


ROLE = chunk(role="assistant", content="")
HELLO = chunk(content="Hello")
STOP = chunk(finish="stop")
USAGE = data({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
ENGINE_DIED = data({"error": {"message": "m", "type": "InternalServerError", "code": 500}})

CREATED = named("response.created", sequence_number=0, response={"id": "r", "output": []})
TEXT_DELTA = named("response.output_text.delta", sequence_number=1, delta="Hel")
COMPLETED = named("response.completed", sequence_number=2, response={"error": None})
FAILED = named("response.failed", response={"error": {"code": "server_error", "message": "m"}})

MESSAGE_START = named("message_start", message={"usage": {"input_tokens": 5, "output_tokens": 1}})
MESSAGE_DELTA = named("message_delta", delta={}, usage={"output_tokens": 7})
MESSAGE_STOP = named("message_stop")
OVERLOADED = named("error", error={"type": "overloaded_error", "message": "m"})


def reframed(stream: bytes, line_end: bytes) -> bytes:
    """The same stream with other line ends."""
    return re.sub(rb"\r\n|\r|\n", lambda _: line_end, stream)
