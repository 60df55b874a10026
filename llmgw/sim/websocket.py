"""A simulated node's websockets, as a provider has them: responses by turns, and realtime."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import orjson
from aiohttp import WSMsgType, web

from llmgw.sim import answers
from llmgw.sim.answers import Json, Refused
from llmgw.sim.ask import Api, Ask, model_of, parse_ask
from llmgw.sim.breaks import HANG, cut, reset
from llmgw.sim.faults import INFERENCE, Fault, FaultKind
from llmgw.sim.inference import paced
from llmgw.sim.script import Reply, build_body, build_script
from llmgw.sim.state import Seen, SimState, now

MAX_FRAME: Final = 64 * 1024 * 1024 + 1
PROTOCOLS: Final = ("realtime",)


async def serve_responses(request: web.Request, state: SimState) -> web.StreamResponse:
    """Each `response.create` is answered by the events of its response."""
    socket = await _accept(request)
    async for message in socket:
        if message.type is not WSMsgType.TEXT:
            await socket.close(code=1003)
            break
        await _Turn(request, state, socket).answer(message.data)
    return socket


async def serve_realtime(request: web.Request, state: SimState) -> web.StreamResponse:
    """A session that says back how much it heard, in text or, for binary, in kind."""
    model = request.query.get("model", "")
    if model not in state.models:
        raise Refused(404, answers.unknown_model(request.path))
    fault = state.faults.take(INFERENCE, model)
    if fault is not None and fault.kind is FaultKind.STATUS:
        raise Refused(fault.status, answers.engine_died(fault.status))
    socket = await _accept(request)
    seen = Seen(request.path, model=model, stream=True)
    state.seen.append(seen)
    await socket.send_str(_event("session.created", session={"id": "sess_sim", "model": model}))
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
            continue
        for event in _realtime_answers(message.data, state, model):
            await socket.send_str(event)
    seen.end("served")
    return socket


def _realtime_answers(frame: str, state: SimState, model: str) -> list[str]:
    kind = _object(frame).get("type")
    if kind == "session.update":
        return [_event("session.updated", session={"id": "sess_sim", "model": model})]
    if kind != "response.create":
        return []
    response_id = state.new_id("resp_")
    words = answers.text(state.settings.name, state.settings.tokens)
    about = {"response_id": response_id, "item_id": "item_sim"}
    at = {"output_index": 0, "content_index": 0}
    deltas = [_event("response.output_text.delta", **about, **at, delta=word) for word in words]
    response: Json = {"id": response_id, "object": "realtime.response", "output": []}
    return [
        _event("response.created", response={**response, "status": "in_progress"}),
        *deltas,
        _event("response.output_text.done", **about, **at, text="".join(words)),
        _event("response.done", response={**response, "status": "completed"}),
    ]


class _Turn:
    """One turn of a responses websocket."""

    def __init__(
        self, request: web.Request, state: SimState, socket: web.WebSocketResponse
    ) -> None:
        self._request = request
        self._state = state
        self._socket = socket

    async def answer(self, frame: str) -> None:
        body = _object(frame)
        nested = body.get("response")
        body = nested if isinstance(nested, dict) else body
        seen = Seen(self._request.path, model=model_of(body, self._state.models), stream=True)
        self._state.seen.append(seen)
        with self._state.at_work():
            try:
                await self._answer(body, seen)
            except Refused as refused:
                seen.end(str(refused.status))
                await self._refuse(refused.status, refused.body)
        seen.end("served")

    async def _answer(self, body: Mapping[str, object], seen: Seen) -> None:
        model = seen.model or ""
        fault = self._state.faults.take(INFERENCE, model)
        if fault is not None:
            seen.end(fault.kind.value)
            await self._fail_before(fault)
        if model not in self._state.models:
            raise Refused(404, answers.coded_model_not_found())
        ask = parse_ask(body, model, self._state.settings)
        if ask.previous and ask.previous not in self._state.responses:
            raise Refused(400, _unknown_previous(ask.previous))
        await self._stream(ask, seen, fault)

    async def _stream(self, ask: Ask, seen: Seen, fault: Fault | None) -> None:
        state = self._state
        words = answers.text(state.settings.name, ask.tokens)
        reply = Reply(Api.RESPONSES, ask, words, state.new_id("resp_"), now())
        state.keep_response(build_body(reply))
        script = build_script(reply)
        for event in script.preamble:
            await self._send(event)
        last = None if fault is None else min(fault.after, ask.tokens - 1)
        if last == 0:
            await self._break(fault)
            return
        async for event in paced(script.tokens, state.settings):
            await self._send(event)
            seen.tokens += 1
            if seen.tokens == last:
                await self._break(fault)
                return

    async def _fail_before(self, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.HANG:
                await asyncio.sleep(HANG)
            case FaultKind.RESET:
                await reset(self._request)
            case FaultKind.STATUS:
                raise Refused(fault.status, answers.engine_died(fault.status))
            case FaultKind.MODEL_NOT_FOUND:
                raise Refused(404, answers.coded_model_not_found())
            case FaultKind.ENGINE_NOT_FOUND:
                raise Refused(404, answers.unknown_model(self._request.path))

    async def _break(self, fault: Fault | None) -> None:
        if fault is None or fault.kind is FaultKind.CUT:
            await cut(self._request)
        else:
            await self._refuse(fault.status, answers.engine_died(fault.status))

    async def _send(self, events: bytes) -> None:
        """The events of the stream, each its own frame."""
        for block in filter(None, events.split(b"\n\n")):
            await self._socket.send_str(block.partition(b"data: ")[2].decode())

    async def _refuse(self, status: int, body: Json) -> None:
        await self._socket.send_str(_event("error", status=status, error=body["error"]))


async def _accept(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False, max_msg_size=MAX_FRAME, protocols=PROTOCOLS)
    await socket.prepare(request)
    return socket


def _event(kind: str, **members: object) -> str:
    return orjson.dumps({"type": kind, "event_id": "event_sim", **members}).decode()


def _object(frame: str) -> Json:
    try:
        found = orjson.loads(frame)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _unknown_previous(response_id: str) -> Json:
    return {
        "error": {
            "message": f"Previous response with id '{response_id}' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        }
    }
