"""The client's side of one turn: whatever answers it, the client sees frames.

An upstream without websockets is asked by a streaming POST, and each event of its stream is one
frame. A failure is an error frame, and the socket stays open.
"""

from __future__ import annotations

from collections.abc import Callable

from llmgw.core import document
from llmgw.core.failures import find_error
from llmgw.core.sight import kind_of
from llmgw.core.sse import DONE, Event, EventCutter
from llmgw.core.turn_answers import error_frame, frame_of_answer, frame_of_event
from llmgw.core.types import Headers
from llmgw.runtime.sockets import ClientSocket

PINNED_UNAVAILABLE = "pinned_assignment_unavailable"
UNREACHABLE = "no_reachable_backend"


class Spoken:
    """What a bridged turn's response said, for the transcript."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._items: list[object] = []
        self.response_id: str | None = None  # once it is complete
        self.output: object = []

    def hear(self, kind: str | None, answer: object, size: int) -> None:
        if kind == "response.output_item.done":
            self._room -= size
            if self._room >= 0:
                self._items.append(document.member(answer, "item"))
        elif kind in ("response.completed", "response.incomplete"):
            self.response_id = document.text(answer, "response", "id")
            # some servers tell the items one by one and leave them out here
            self.output = document.member(answer, "response", "output") or self._items


class FrameDownstream:
    """Satisfies `llmgw.runtime.ports.Downstream`: bytes of an event stream in, frames out."""

    def __init__(self, client: ClientSocket, *, pinned: bool, transcript_bytes: int) -> None:
        self._client = client
        self._is_pinned = pinned
        self._cutter = EventCutter()
        self._ended = False
        self.was_cut = False
        self.spoken = Spoken(transcript_bytes)
        self.status = 0
        self.bytes_sent = 0

    @property
    def committed(self) -> bool:
        return self.status != 0

    @property
    def paused(self) -> bool:
        return self._client.paused

    def on_pause(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._client.on_pause(pause, resume)

    async def drained(self) -> None:
        await self._client.drained()

    def send(self, frame: bytes) -> None:
        """A frame of the answer, as it is."""
        self.status = self.status or 200
        self.bytes_sent += len(frame)
        self._client.write(frame)

    def fail(self, frame: bytes, status: int) -> None:
        """The turn ends with an error frame."""
        self._ended = True
        self.status = status
        self.bytes_sent += len(frame)
        self._client.write(frame)

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        if status < 400:
            self._respond_whole(body)
        elif self._is_pinned and _code_of(body) == UNREACHABLE:
            self.fail(_pinned_unavailable(headers), 503)
        else:
            frame = frame_of_answer(status, headers, body)
            self.fail(frame, document.count(document.parse(frame), "status") or status)

    def commit(self, status: int, headers: Headers) -> None:
        self.status = status

    def write(self, data: bytes, chunk: bytes | None = None) -> None:
        for event in self._cutter.feed(data):
            self._take(event)

    def bypass(self, kept: bytearray, most: int) -> None:
        """There is none: frames are made of events."""

    def cork(self) -> None:
        """Frames go out one by one."""

    def uncork(self) -> None: ...

    def finish(self, *, close: bool = False) -> None:
        event = self._cutter.close()
        if event is not None:
            self._take(event)
        self._ended = True

    def cut(self) -> None:
        """Frames go out whole, so that there is always something to say, unless to a client
        that takes nothing."""
        if self._client.paused:
            self.was_cut = True
            self._client.abort()
        elif not self._ended:
            self.fail(ended_early(), 502)

    def _take(self, event: Event) -> None:
        if not event.data or event.data == DONE or self._ended:
            return
        answer = document.parse(event.data)
        kind = kind_of(event, answer)
        if kind == "error" or (kind is None and find_error(answer)):
            frame = frame_of_event(event.data)
            self.fail(frame, document.count(document.parse(frame), "status") or 502)
            return
        self.spoken.hear(kind, answer, len(event.data))
        self.send(event.data)

    def _respond_whole(self, body: bytes) -> None:
        """It was asked for a stream and gave the whole response."""
        response = document.parse(body)
        completed = {"type": "response.completed", "sequence_number": 0, "response": response}
        self.spoken.hear("response.completed", completed, 0)
        self.send(document.dump(completed))


def ended_early(*, silent: bool = False) -> bytes:
    """One error frame instead of the rest of the answer."""
    status = 504 if silent else 502
    error = {
        "message": "the upstream went silent" if silent else "the upstream ended early",
        "type": "server_error",
        "param": None,
        "code": "upstream_timeout" if silent else "upstream_error",
    }
    return error_frame(status, error)


def _code_of(body: bytes) -> str | None:
    return document.text(document.parse(body), "error", "code")


def _pinned_unavailable(headers: Headers) -> bytes:
    error = {
        "message": "the assignment that this websocket continues on is not available",
        "type": "service_unavailable",
        "param": None,
        "code": PINNED_UNAVAILABLE,
    }
    return error_frame(503, error, headers)
